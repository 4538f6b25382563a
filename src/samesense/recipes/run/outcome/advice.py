"""Advice where a run has made its model worse, or its verdict cannot see all, based on observations of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from samesense.data import PairData, examine
from samesense.data.examples import Examples
from samesense.recipes.settings import EncoderSettings
from samesense.reports.figures.curves import Curve
from samesense.reports.run_verdict import Verdict

COLLAPSED = 0.2
"""Rise of the mean cosine of random pairs above which the embeddings have collapsed. On STS-B it rose by 0.04 in a run
that helped, 0.17 in one that made no difference, and 0.96 in one that ruined the model."""

LOWER = 10
"""A learning rate that ruins a model at once is too high by about this factor."""

EARLY = 1 / 3
"""Share of the steps up to which a best checkpoint counts as early."""


OUT_OF_FOLD_PAIRS = "Spearman out of fold"
"""Name of the curve of a cross-validated run."""


@dataclass(frozen=True)
class Observations:
    """Settings, data and measurements of a run."""

    settings: EncoderSettings
    data: Examples
    steps: int
    curve: Curve | None = None  # Spearman on dev along the steps, the untouched start first
    cones: tuple[float, float] | None = None  # mean cosine of random pairs before and after
    selecting: str = "dev"  # the pairs of the curve, in words


def advice(verdict: Verdict, run: Observations) -> tuple[str, ...]:
    """Return suggestions, the likeliest first; none if nothing got worse and the verdict sees what was taught."""
    failed = any("has no figure" in message for message in (verdict.reason, *verdict.problems))
    if not verdict.harmed and not failed:
        return tuple(_of_nli(verdict, run))
    task_worse = failed or (verdict.task is not None and verdict.task.word == "worse")
    suggestions: list[str] = []
    if task_worse:
        suggestions += _of_training(run)
    suggestions += _of_both(verdict, run)
    if task_worse:
        suggestions += _of_data(run)
    return tuple(suggestions)


def _of_nli(verdict: Verdict, run: Observations) -> Iterator[str]:
    """Yield how the similarity is measured that was taught beside NLI labels, where these show no difference."""
    task = verdict.task
    if task is None or task.role == "test" or task.word == "better":
        return
    if run.settings.teaches_beyond_labels(run.data):
        yield "give scored pairs as `test`: NLI labels, on which the verdict is, do not measure similarity"


def _of_training(run: Observations) -> Iterator[str]:
    """Yield suggestions on the training, from the dev curve and the cone."""
    rate = run.settings.learning_rate
    lower = f"a lower learning rate: `learning_rate` {rate / LOWER:.2g} in place of {rate:.2g}"
    before, after = run.cones or (0.0, 0.0)
    collapsed = after - before > COLLAPSED
    dev = _course(run.curve)
    if collapsed:
        yield (
            f"take {lower}, as random texts have moved together (mean cosine {before:.2f} before, {after:.2f} after)"
        )
    if run.curve is None:
        yield "give `dev` FILE: nothing selected, and the last state was kept"
    if dev is None:
        if not collapsed:
            yield f"take {lower}, or fewer `epochs` than {run.settings.epochs:g}"
    elif dev.best < dev.start:
        if not collapsed:
            yield (
                f"take {lower}, as {run.selecting} fell and never came back ({100 * dev.start:.1f} at the start, "
                f"{100 * dev.first:.1f} at the first evaluation, {100 * dev.best:.1f} at best)"
            )
    elif dev.step <= EARLY * run.steps:
        yield (
            f"take fewer `epochs` than {run.settings.epochs:g}: {run.selecting} was best at step {dev.step:.0f} of "
            f"{run.steps}"
        )
    elif run.selecting != OUT_OF_FOLD_PAIRS:  # the pairs of the verdict themselves
        yield (
            f"look at dev: it rose from {100 * dev.start:.1f} to {100 * dev.best:.1f} while the verdict's pairs lost, "
            "so it is of another kind; take dev pairs like those that the model is for"
        )


class _Course(NamedTuple):
    """The dev curve: at the start, at the first evaluation after it, and at its best with the step."""

    start: float
    first: float
    best: float
    step: float


def _course(curve: Curve | None) -> _Course | None:
    # Without its start, a curve does not tell whether dev fell.
    if curve is None or curve.steps[0] != 0 or len(curve.steps) < 2:
        return None
    step, best = curve.best
    return _Course(curve.values[0], curve.values[1], best, step)


def _of_both(verdict: Verdict, run: Observations) -> Iterator[str]:
    """Yield suggestions that preserve more of the start."""
    hurt = [guard.dataset for guard in verdict.guards if guard.word == "worse"]
    explanation = ""
    if hurt:
        explanation = f", which keeps more of what the start did on {' and '.join(hurt)}"
    if verdict.merge is None and run.curve is not None:
        yield f"try `merge`{explanation or ', which goes back towards the start as far as dev says'}"
    if hurt and not (verdict.task is not None and verdict.task.word == "worse"):
        yield f"train on pairs like {' and '.join(hurt)} too, or take a lower `learning_rate` or fewer `epochs`"


def _of_data(run: Observations) -> Iterator[str]:
    """Yield the doctor's warnings on the training data."""
    if isinstance(run.data, PairData):
        yield from (f"see to the data: {warning}" for warning in examine(run.data).warnings)
