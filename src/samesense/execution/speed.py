"""Measures comparable speeds: rounds of all candidates in turn, their range, and whether the machine was quiet."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from samesense.execution.threads import cores

ROUNDS = 5
"""Rounds of a measurement; each times every candidate once."""

QUIET_SPREAD = 0.25
"""Largest range of a speed, as a share of its median, on a quiet machine."""


@dataclass(frozen=True)
class Speed:
    """Work per second in each round, three rounds or more."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def low(self) -> float:
        """The slowest round."""
        return min(self.rounds)

    @property
    def high(self) -> float:
        """The fastest round."""
        return max(self.rounds)

    @property
    def spread(self) -> float:
        """The range as a share of the median."""
        return (self.high - self.low) / self.median

    def overlaps(self, speed: Speed) -> bool:
        """Return whether the ranges overlap, so that neither is known to be faster."""
        return self.low <= speed.high and speed.low <= self.high


def time_in_turns(
    runs: Sequence[Callable[[], int]], *, rounds: int = ROUNDS, seconds: float = 0.0
) -> tuple[list[Speed], str]:
    """Time candidates in turns.

    Args:
        runs: a function for each candidate, which does some work and returns its amount.
        rounds: how often each is timed; the order is reversed from one round to the next.
        seconds: minimum time of a candidate in a round; its work is repeated until then.

    Returns:
        The speed of each candidate, and in words why the machine was not quiet; ``""`` if it was.
    """
    load = _load()
    measured: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        turns = list(zip(measured, runs, strict=True))
        if number % 2:
            turns.reverse()  # a machine that slows down slows all alike
        for speeds, run in turns:
            speeds.append(_done_a_second(run, seconds))
    results = [Speed(tuple(speeds)) for speeds in measured]
    return results, _disturbance(load, results)


def _done_a_second(run: Callable[[], int], seconds: float) -> float:
    started = time.perf_counter()
    done = run()
    while time.perf_counter() - started < seconds:
        done += run()
    # A coarse clock may not have moved at all.
    return done / max(time.perf_counter() - started, 1e-9)


def _load() -> float | None:
    """Return the load average of the last minute; ``None`` where the system has none."""
    if not hasattr(os, "getloadavg"):
        return None
    return os.getloadavg()[0]


def _disturbance(load: float | None, speeds: Sequence[Speed]) -> str:
    """Return in words why a machine was not quiet: its load was high, or rounds differ; ``""`` if it was quiet."""
    reasons = []
    if load is not None and load > cores():
        reasons.append(f"{load:.1f} processes wanted {cores()} processors when it began")
    spread = max((speed.spread for speed in speeds), default=0.0)
    if spread > QUIET_SPREAD:
        reasons.append(f"rounds of one model differ by up to {100 * spread:.0f} %")
    return " and ".join(reasons)
