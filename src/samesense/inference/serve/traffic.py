"""What a server knows of its requests, whatever it serves."""

from __future__ import annotations

import asyncio

from samesense.inference.serve.errors import RequestError
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.metrics import Metrics


class Traffic:
    """The requests of a server, and whether it still takes any.

    Attributes:
        limits: on what callers may ask.
        metrics: what is counted.
        stopping: set when nothing new is taken any more.
        running: requests accepted and not answered.
        arriving: the deadlines of those whose body is not there yet.
        body_bytes: of the requests that are read or answered, where they are large.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.metrics = limits, Metrics()
        self.stopping, self.running = False, 0
        self.body_bytes = 0
        self.arriving: set[asyncio.Timeout] = set()
        self.metrics.running.set_function(lambda: self.running)

    async def start(self) -> None:
        """Be ready to answer; called before every request: an application that mounts this one may not start it."""

    def give_up_arriving(self) -> None:
        """Wait no longer for bodies of requests."""
        for deadline in self.arriving:
            deadline.reschedule(asyncio.get_running_loop().time())


SMALL_BODY = 2**16
"""Bytes of a body that always finds room, and is read at once."""

VALUE_BYTES = 200
"""Bytes that a value of JSON takes once it is parsed, about."""


class BodyBytes:
    """The bytes of one request among those of all: many large ones together would fill the memory."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic, self._size = traffic, 0

    def grow(self, size: int) -> None:
        """Count a body of so many bytes; RequestError 429 if there is no room for it beside the others."""
        if size <= SMALL_BODY:
            return
        most = self._traffic.limits.max_bodies
        other_bytes = self._traffic.body_bytes - self._size
        if other_bytes and other_bytes + size > most:
            raise RequestError(
                429,
                f"Requests of {most} bytes together are read and answered at a time. Come again later, or send less. "
                "The limit is that of `samesense serve --max-bodies`.",
                code="busy",
                retry_after=1,
            )
        self._traffic.body_bytes += size - self._size
        self._size = size

    def release(self) -> None:
        """Count the body no more."""
        self._traffic.body_bytes -= self._size
        self._size = 0
