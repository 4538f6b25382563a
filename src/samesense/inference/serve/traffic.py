"""What a server knows of its requests, whatever it serves."""

from __future__ import annotations

import asyncio

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
    """

    def __init__(self, limits: Limits) -> None:
        self.limits, self.metrics = limits, Metrics()
        self.stopping, self.running = False, 0
        self.arriving: set[asyncio.Timeout] = set()
        self.metrics.running.set_function(lambda: self.running)

    def give_up_arriving(self) -> None:
        """Wait no longer for bodies of requests."""
        for deadline in self.arriving:
            deadline.reschedule(asyncio.get_running_loop().time())
