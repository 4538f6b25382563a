"""The requests in progress of a server, independent of what it serves."""

from __future__ import annotations

import asyncio

from samesense.inference.serve.errors import RequestError
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.metrics import Metrics


class Traffic:
    """The requests in progress of a server, and whether it still accepts any.

    Attributes:
        limits: limits on requests.
        metrics: what is counted, for Prometheus.
        stopping: whether new requests are refused because the server stops.
        running: number of requests accepted and not yet answered.
        arriving: deadlines of the requests whose body has not arrived completely.
        body_bytes: bytes of the large requests in progress.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.metrics = Metrics()
        self.stopping = False
        self.running = 0
        self.body_bytes = 0
        self.arriving: set[asyncio.Timeout] = set()
        self.metrics.running.set_function(lambda: self.running)

    async def start(self) -> None:
        """Get ready to answer; called before every request, as an application that mounts this one may not start it."""

    def give_up_arriving(self) -> None:
        """Stop waiting for the bodies of requests that have not arrived."""
        for deadline in self.arriving:
            # A deadline of now ends the wait at once.
            deadline.reschedule(asyncio.get_running_loop().time())


SMALL_BODY = 2**16
"""Bytes of a body up to which it is always accepted, and checked without another thread."""

VALUE_BYTES = 200
"""Approximate bytes of a parsed JSON value."""


class BodyBytes:
    """Counts the bytes of one request towards those of all: many large requests together would fill the memory."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._size = 0

    def grow(self, size: int) -> None:
        """Set the size of the body in bytes; RequestError 429 if the requests in progress leave no room for it."""
        if size <= SMALL_BODY:
            return
        most = self._traffic.limits.max_bodies
        other_bytes = self._traffic.body_bytes - self._size
        # The only large request is always let in.
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
        """Stop counting the body."""
        self._traffic.body_bytes -= self._size
        self._size = 0
