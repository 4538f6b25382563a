"""The results of a model on the sets of a run, and the narrowness of the cone that its vectors lie in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.data.overlap import count_trained_anchors, count_trained_pairs
from samesense.encoder.cosine import unit
from samesense.errors import DataError, ModelError
from samesense.inference.models.model import Model
from samesense.recipes.held_out.sets import ComparedSet, Sets, VerdictSet
from samesense.recipes.held_out.unlabelled_sets import AnchorSet, ClassSet
from samesense.reports.run_verdict import OUT_OF_FOLD, Finding, Verdict, compare
from samesense.results.measures import measure_of
from samesense.types import Floats, Result, Scores, TaskResult

CONE = 500
"""Texts whose pairwise cosines measure the cone; their mean is then exact to about 0.01."""

SHOWN_PAIRS = 20_000
"""Most cosines to keep for the report."""


NO_START = "the start has no score of its own, as its head is new"
"""Why a cross-encoder with a new head is not compared with its start."""


@dataclass(frozen=True)
class Measured:
    """A model on the sets of a run."""

    by_set: dict[str, TaskResult]  # results by the name of the set, where there are any
    failures: dict[str, str]  # the reason why there is no result, by the name of the set
    model: Model
    cosines: Floats | None = None  # of random pairs of different texts (pairs,); None for models without embeddings
    untuned: bool = False  # of a start: never tuned for sentences


@dataclass(frozen=True, eq=False)
class UnbiasedScores:
    """Scores that replace those of the trained model on pairs that it was trained on or selected by.

    Attributes:
        scores: by models or checkpoints that are independent of the pair ``(pairs,)``.
        protocol: how they were made, in words.
    """

    scores: Scores
    protocol: str


def measure(
    model: Model,
    sets: Sequence[VerdictSet],
    texts: Sequence[str] = (),
    unbiased: Mapping[str, UnbiasedScores] | None = None,
) -> Measured:
    """Evaluate a model on every set, and measure its cone on ``texts``, if it has embeddings.

    On the sets in ``unbiased``, those scores are evaluated instead. A set whose scores are constant or not finite is
    among the failures.
    """
    by_set: dict[str, TaskResult] = {}
    failures: dict[str, str] = {}
    for compared_set in sets:
        scored = (unbiased or {}).get(compared_set.name)
        try:
            by_set[compared_set.name] = compared_set.task.evaluate(
                model if scored is None else standing_in(model, scored)
            )
        except (DataError, ModelError) as error:
            failures[compared_set.name] = str(error)
    return Measured(by_set, failures, model, random_cosines(model, texts))


def standing_in(model: Model, unbiased: UnbiasedScores) -> Model:
    """Return a model that gives these scores in place of its own."""
    return Model(score=lambda pairs: unbiased.scores, name=model.name, protocol=unbiased.protocol, seed=model.seed)


def random_cosines(model: Model, texts: Sequence[str]) -> Floats | None:
    """Return the cosines of pairs of texts ``(pairs,)``; ``None`` without embeddings, or of fewer than two texts."""
    if not model.embeds or len(texts) < 2:
        return None
    rows = unit(np.asarray(model.encode(texts), dtype=np.float32)).astype(np.float64)
    cosines: Floats = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    if not np.isfinite(cosines).all():
        return None
    # Thinned evenly, as the page holds every one of them.
    return cosines[:: max(1, -(-len(cosines) // SHOWN_PAIRS))]


def rows_of(measured: Measured, sets: Sequence[VerdictSet]) -> list[Result]:
    """Return the results of a model set by set; those of guards have the task ``guard``."""
    return [
        replace(row, task="guard") if compared_set.role == "guard" else row
        for compared_set in sets
        if compared_set.name in measured.by_set
        for row in measured.by_set[compared_set.name].results
    ]


def _without_start(compared_set: VerdictSet, end: Measured) -> str:
    """Return why a set is not compared, and the result of the trained model on it, if there is one."""
    if compared_set.name not in end.by_set:
        return f"{NO_START}; on {compared_set.name} the trained model has no figure: {end.failures[compared_set.name]}"
    row = end.by_set[compared_set.name].results[0]
    statistic = measure_of(row.metric)
    interval = ""
    if row.low is not None and row.high is not None:
        interval = f" (95 % interval {statistic.text(row.low)} to {statistic.text(row.high)})"
    examples = f"{row.n:,} examples"
    if compared_set.description:
        examples += f" {compared_set.description}"
    return f"{NO_START}; {statistic.label} of the trained model {statistic.text(row.value)}{interval} on {examples}"


def _count_rarer(pairs: PairData) -> int | None:
    """Return the number of pairs of the rarer label, where labels are yes or no."""
    if pairs.kind != "binary":
        return None
    return int(np.unique(pairs.labels, return_counts=True)[1].min())


def compared(start: Measured | None, end: Measured, sets: Sets, train: Examples) -> Verdict:
    """Compare the end with the start, set by set; without a start, as for a cross-encoder with a new head, nothing.

    The verdict counts how many of its pairs were trained on.
    """
    findings: dict[VerdictSet, Finding] = {}
    problems: dict[VerdictSet, str] = {}
    for compared_set in sets.compared:
        if start is None:
            problems[compared_set] = _without_start(compared_set, end)
        elif compared_set.name in start.failures:
            problems[compared_set] = (
                f"the start has no figure on {compared_set.name}: {start.failures[compared_set.name]}"
            )
        elif compared_set.name in end.failures:
            problems[compared_set] = (
                f"the trained model has no figure on {compared_set.name}: {end.failures[compared_set.name]}"
            )
        else:
            try:
                findings[compared_set] = compare(
                    compared_set.role,
                    start.by_set[compared_set.name],
                    end.by_set[compared_set.name],
                    description=compared_set.description,
                )
            except DataError as error:
                problems[compared_set] = str(error)
    first = sets.verdict
    reason = sets.reason if first is None else problems.pop(first, "")
    task = None
    if first is not None:
        # What then remains are the guards.
        task = findings.pop(first, None)
    if isinstance(first, ComparedSet) and task is not None:
        task = replace(task, rarer=_count_rarer(first.data))
        # Out of fold, every pair is trained on, though never by the model that scores it.
        if first.role != OUT_OF_FOLD:
            task = replace(task, trained_on=count_trained_pairs(first.data, train))
    if isinstance(first, AnchorSet | ClassSet) and first.role == "test" and task is not None:
        task = replace(task, trained_on=count_trained_anchors(first.tested, train))
    return Verdict(
        task=task,
        guards=tuple(findings.values()),
        reason=reason,
        problems=tuple(f"guard {compared_set.name}: not compared, {why}" for compared_set, why in problems.items()),
    )
