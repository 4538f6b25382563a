"""Connections that hold a place and send or read nothing, and a system that has no room for more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection
from typing import Any

from samesense.inference.serve.limits import Limits

logger = logging.getLogger(__name__)

EVERY = 60.0
"""Seconds between two complaints of one kind."""

TIMES = 3
"""How often ``max_seconds`` a request may take from its head to the last byte read: to send, to answer, to read."""


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
