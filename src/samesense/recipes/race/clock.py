"""The time of a race: what is left of the budget, what a run may take, and how many steps that is."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from samesense.errors import ConfigError
from samesense.recipes.race.entrants import Entrant

LEAST = 30.0
"""Seconds of the smallest budget: below, nothing is trained."""

KEPT = 3
"""One entrant in this number goes on into the next rung. Source: Li et al. 2017 (Hyperband), who take 3 or 4."""

FEW_STEPS = 20
"""Steps below which a run says nothing: fewer entrants take part where time does not suffice for that."""

STARTS_SHARE = 0.4
"""Share of the budget after which no further start model is opened or evaluated."""

FORMS_SHARE = 0.2
"""Share of the budget for smaller forms of the winner."""

RESERVE_SHARE = 0.04
"""Share of the budget for what comes last: timing the best models in turns."""

now = time.perf_counter

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds_of(budget: str | float) -> float:
    """Return the seconds of a budget, as in ``"90s"``, ``"30m"``, ``"2h"`` or ``"90"``, a number of seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(budget).strip())
    if match is None:
        raise ConfigError(
            f"`budget` is a time, as in 90s, 30m or 2h, or a number of seconds; received {str(budget)!r}."
        )
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds < LEAST:
        raise ConfigError(f"`budget` is {LEAST:.0f} seconds or more; received {budget}.")
    return seconds


@dataclass
class Clock:
    """Counts the seconds of all calls together: those of earlier ones, and since this one began.

    ``test`` are those that the evaluation on test will take.
    """

    budget: float
    before: float = 0.0
    begun: float = field(default_factory=lambda: now())
    test: float = 0.0

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return self.before + now() - self.begun

    @property
    def for_starts(self) -> float:
        """Seconds left for start models."""
        return STARTS_SHARE * self.budget - self.spent

    @property
    def for_rungs(self) -> float:
        """Seconds left for rungs."""
        return self.for_forms - FORMS_SHARE * self.budget

    @property
    def for_forms(self) -> float:
        """Seconds left for smaller forms."""
        return (1 - RESERVE_SHARE) * self.budget - self.test - self.spent


@dataclass
class Costs:
    """Seconds of a step and of all else in a run: guessed from how fast a model encodes until a run has been timed."""

    texts_a_step: float
    dev_texts: int
    step: dict[str, float] = field(default_factory=dict)
    overhead: dict[str, float] = field(default_factory=dict)
    rate: dict[str, float] = field(default_factory=dict)

    @property
    def steps_an_evaluation(self) -> float:
        """Steps that take as long as an evaluation on dev: each is forward, and twice that backward, and more."""
        return self.dev_texts / (4 * self.texts_a_step)

    def step_of(self, entrant: Entrant) -> float:
        """Return the seconds of a step; the update of the weights is part of it."""
        start = entrant.start
        guess = self.evaluation_of(entrant) / self.steps_an_evaluation + 1e-3 * start.megabytes
        return self.step.get(entrant.name, self.step.get(start.name, guess))

    def overhead_of(self, entrant: Entrant) -> float:
        """Return the seconds of a run beside its steps: loading, saving, evaluation on dev."""
        start = entrant.start
        return self.overhead.get(start.name, 2.0 + self.evaluation_of(entrant)) + 0.01 * start.megabytes

    def evaluation_of(self, entrant: Entrant) -> float:
        """Return the seconds of an evaluation on dev."""
        return self.dev_texts / self._rate_of(entrant)

    def _rate_of(self, entrant: Entrant) -> float:
        """Return the texts a second: as measured, or as in the evaluation of the start, whichever was more."""
        return max(entrant.start.speed, self.rate.get(entrant.start.name, 0.0))

    def steps_in(self, entrant: Entrant, seconds: float) -> int:
        """Return the steps that a run of ``seconds`` may have; below 1 if there is no time for one."""
        return int((seconds - self.overhead_of(entrant)) / self.step_of(entrant))

    def learn(self, name: str, start: str, steps: int, training: float, whole: float) -> None:
        """Take what a finished run took; the evaluation of an untrained start is one of no steps."""
        # The whole is rounded, and may come out below the training.
        self.overhead[start] = max(0.0, whole - training)
        if not steps:
            self.rate[start] = self.dev_texts / max(whole, 1e-3)
        else:
            seconds = max(training, 1e-3) / steps
            self.step[name] = seconds
            # For the entrants of this start that have no time of their own yet.
            self.step[start] = seconds


def rungs(count: int) -> int:
    """Return the number of rungs for the entrants of the first; the last rung has one entrant."""
    if count <= 1:
        return 1
    # Rounded up, as the best third of a rung is.
    return 1 + rungs(-(-count // KEPT))


def that_fit(entrants: Sequence[Entrant], costs: Costs, seconds: float) -> list[Entrant]:
    """Return the first entrants for which a first rung has time."""
    for count in range(len(entrants), 0, -1):
        need = sum(costs.overhead_of(entrant) + FEW_STEPS * costs.step_of(entrant) for entrant in entrants[:count])
        # All rungs have the same time, so that the first one has its part only.
        if need <= seconds / rungs(count):
            return list(entrants[:count])
    return []
