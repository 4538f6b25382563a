"""Speeds that can be compared: several rounds in turns, with their range, and whether the machine was quiet."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS = 5
"""Rounds of a measurement; in each of them every candidate is timed once."""

QUIET_SPREAD = 0.25
"""Largest range of a speed, as a share of its median, on a machine that is called quiet."""


@dataclass(frozen=True)
class Speed:
    """What was done a second in each round, three rounds or more."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.rounds)

    @property
    def low(self) -> float:
        """The slowest one."""
        return min(self.rounds)

    @property
    def high(self) -> float:
        """The fastest one."""
        return max(self.rounds)

    @property
    def spread(self) -> float:
        """The range as a share of the median."""
        return (self.high - self.low) / self.median

    def overlaps(self, other: Speed) -> bool:
        """Return whether the ranges overlap, so that neither is known to be the faster one."""
        return self.low <= other.high and other.low <= self.high


def time_in_turns(
    runs: Sequence[Callable[[], int]], *, rounds: int = ROUNDS, seconds: float = 0.0
) -> tuple[list[Speed], str]:
    """Time candidates in turns.

    Args:
        runs: of each candidate, what does some work and returns how much it was.
        rounds: how often each is timed; the order is reversed from one round to the next.
        seconds: least time of a candidate in a round, in which its work is repeated.

    Returns:
        The speed of each candidate, and in words why the machine was not quiet, or nothing.
    """
    load = _load()
    measured: list[list[float]] = [[] for _ in runs]
    for number in range(rounds):
        turns = list(zip(measured, runs, strict=True))
        for speeds, run in turns if number % 2 == 0 else reversed(turns):
            speeds.append(_done_a_second(run, seconds))
    found = [Speed(tuple(speeds)) for speeds in measured]
    return found, _disturbance(load, found)


def _done_a_second(run: Callable[[], int], seconds: float) -> float:
    started = time.perf_counter()
    done = run()
    while time.perf_counter() - started < seconds:
        done += run()
    return done / max(time.perf_counter() - started, 1e-9)


def _load() -> float | None:
    """Return the processes that wanted a processor in the last minute, where the system says so."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _processors() -> int:
    """Return the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _disturbance(load: float | None, speeds: Sequence[Speed]) -> str:
    """Return in words why a machine was not quiet: others wanted its processors, or rounds differ; else nothing."""
    reasons = []
    if load is not None and load > _processors():
        reasons.append(f"{load:.1f} processes wanted {_processors()} processors when it began")
    spread = max((speed.spread for speed in speeds), default=0.0)
    if spread > QUIET_SPREAD:
        reasons.append(f"rounds of one model differ by up to {100 * spread:.0f} %")
    return " and ".join(reasons)
