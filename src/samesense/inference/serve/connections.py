"""Connections that hold a place and send or read nothing, and a system that has no room for more."""

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
"""Seconds between two complaints of one kind."""

TIMES = 3
"""How often ``max_seconds`` a request may take from its head to the last byte read: to send, to answer, to read."""


MOST_HEAD = 2**16
"""Bytes of the head of a request."""

FREE_PIECES = 1000
"""Pieces of a body that may have any size."""

SMALLEST_PIECE = 64
"""Bytes that the pieces of a body have at least, on average."""


class BoundedConnection(h11.Connection):
    """The HTTP/1.1 of one connection: refuses a body in tiny pieces, each of which costs as much as a large one.

    A body of a megabyte in chunks of one byte holds up every other request for seconds.
    """

    _pieces = 0
    _size = 0

    def next_event(self) -> Any:
        """Return the next event, as h11 does; RemoteProtocolError for a body in tiny pieces."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._size = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._size += len(event.data)
            if self._pieces > FREE_PIECES and self._size < SMALLEST_PIECE * self._pieces:
                raise h11.RemoteProtocolError(f"The pieces of a body have {SMALLEST_PIECE} bytes or more on average.")
        return event


class BoundedProtocol(H11Protocol):
    """The protocol of uvicorn with a :class:`BoundedConnection`, also where httptools is installed."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.conn = BoundedConnection(h11.SERVER, MOST_HEAD)


class Patience:
    """Closes the connections on which nothing moves: uvicorn waits for ever for a head, and for slow readers."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._since: dict[Any, tuple[Any, bool, float]] = {}

    def check(self, connections: Collection[Any]) -> None:
        """Close the connections on which the same has been waited for for too long."""
        now, before = time.monotonic(), self._since
        self._since = {}
        for connection in list(connections):
            cycle = connection.cycle  # of the request that is answered, or was answered last
            idle = cycle is None or cycle.response_complete
            old = before.get(connection, (None, not idle, now))
            since = old[2] if (old[0], old[1]) == (cycle, idle) else now
            if now - since > (self._limits.max_header_seconds if idle else TIMES * self._limits.max_seconds):
                connection.transport.abort()
            else:
                self._since[connection] = (cycle, idle, since)


class Complaints:
    """An exception handler of a loop which says once a minute what may come thousands of times a second.

    Where a process may open no more files, asyncio reports every connection that it cannot accept, with a traceback.
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say what went wrong, or nothing."""
        message, now = f"{context.get('message')}: {context.get('exception')}", time.monotonic()
        if now - self._last.get(message, -EVERY) < EVERY:
            return
        self._last[message] = now
        if isinstance(context.get("exception"), OSError):
            logger.warning(f"{message}. Connections wait; is `ulimit -n` too low?")
        else:
            loop.default_exception_handler(context)
