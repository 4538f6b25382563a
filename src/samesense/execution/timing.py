"""Seconds by what they were spent on, and durations in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


class Laps:
    """Adds up seconds by what they were spent on; each lap starts where the last one ended."""

    def __init__(self, since: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if since is None else since

    def count(self, what: str | None) -> None:
        """End a lap and add it to ``what``; ``None`` discards it."""
        ended = time.perf_counter()
        if what is not None:
            self.seconds[what] = round(self.seconds.get(what, 0.0) + ended - self._last, 2)
        self._last = ended

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add laps that were counted elsewhere, in place of the present lap, which contains them."""
        for what, spent in seconds.items():
            self.seconds[what] = round(self.seconds.get(what, 0.0) + spent, 2)
        self.count(None)


def seconds_taken(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def time_summary(seconds: Mapping[str, float]) -> str:
    """Return a line with the total time and its parts."""
    laps = ", ".join(f"{what} {clock_time(spent)}" for what, spent in seconds.items())
    return f"time: {clock_time(sum(seconds.values()))} in all: {laps}"


def clock_time(seconds: float) -> str:
    """Return a duration as ``m:ss``, or ``h:mm:ss`` from an hour on."""
    minutes, remainder = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{remainder:02d}"
    return f"{minutes}:{remainder:02d}"
