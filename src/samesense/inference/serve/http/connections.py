"""Protection against slow or hostile connections, and against a flood of log lines when file handles run out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from samesense.inference.serve.limits import Limits

logger = logging.getLogger(__name__)

EVERY = 60.0
"""Seconds between two log lines with the same message."""

TIMES = 3
"""A connection may take this multiple of ``max_seconds``: once each for the body, the computation and the answer."""


MOST_HEAD = 2**16
"""Most bytes of a request's head."""

FREE_PIECES = 1000
"""Number of chunks up to which the size of a body's chunks is not checked."""

SMALLEST_PIECE = 64
"""Least mean size of a body's chunks, in bytes."""


class BoundedConnection(h11.Connection):
    """An HTTP/1.1 connection that refuses a body in tiny chunks, because each chunk costs as much as a large one.

    A body of a megabyte in chunks of one byte blocks every other request for seconds.
    """

    _pieces = 0
    _size = 0

    def next_event(self) -> Any:
        """Return the next event, as h11 does; RemoteProtocolError for a body in tiny chunks."""
        event = super().next_event()
        # One connection may bring several requests, each with a body of its own.
        if isinstance(event, h11.Request):
            self._pieces = self._size = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._size += len(event.data)
            if self._pieces > FREE_PIECES and self._size < SMALLEST_PIECE * self._pieces:
                raise h11.RemoteProtocolError(f"The pieces of a body have {SMALLEST_PIECE} bytes or more on average.")
        return event


class BoundedProtocol(H11Protocol):
    """uvicorn's h11 protocol with a :class:`BoundedConnection`; used even where httptools is installed."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        # After uvicorn's own, which it replaces.
        self.conn = BoundedConnection(h11.SERVER, MOST_HEAD)


class Patience:
    """Closes stalled connections: uvicorn waits forever for the head of a request and for slow readers."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._since: dict[Any, tuple[Any, bool, float]] = {}

    def check(self, connections: Collection[Any]) -> None:
        """Close the connections that have been in the same state for too long."""
        now = time.monotonic()
        before = self._since
        self._since = {}
        for connection in list(connections):
            cycle = connection.cycle  # uvicorn's state of the current request, or of the last one
            idle = cycle is None or cycle.response_complete
            old_cycle, old_idle, old_since = before.get(connection, (None, not idle, now))
            since = old_since if (old_cycle, old_idle) == (cycle, idle) else now
            if idle:
                limit = self._limits.max_header_seconds
            else:
                limit = TIMES * self._limits.max_seconds
            if now - since > limit:
                # abort, because close would wait until a stalled client has read the rest.
                connection.transport.abort()
            else:
                self._since[connection] = (cycle, idle, since)


class Complaints:
    """An exception handler of an event loop that logs each message at most once a minute.

    When a process has run out of file handles, asyncio reports every connection that it cannot accept, with a
    traceback, thousands of times a second.
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log the error of ``context``, unless the same was logged within the last minute."""
        message = f"{context.get('message')}: {context.get('exception')}"
        now = time.monotonic()
        if now - self._last.get(message, -EVERY) < EVERY:
            return
        self._last[message] = now
        if isinstance(context.get("exception"), OSError):
            logger.warning(f"{message}. Connections wait; is `ulimit -n` too low?")
        else:
            loop.default_exception_handler(context)
