"""Unbiased scores for a verdict whose pairs trained the model or chose its checkpoint, and their file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from samesense.data import PairData
from samesense.data.pairs.data import concat
from samesense.errors import SamesenseError
from samesense.inference.calibration.fit import CalibrationSettings, check_labels
from samesense.inference.models.model import Model
from samesense.recipes.held_out.choose_share import ScoredFold, choose_scores
from samesense.recipes.held_out.cross_validation import OutOfFold
from samesense.recipes.held_out.scores import HeldOutScores, write_held_out
from samesense.recipes.held_out.sets import LEAST, ComparedSet, Sets, folds_of_dev
from samesense.recipes.run.job import Job
from samesense.recipes.run.outcome.measure import Measured, UnbiasedScores, standing_in
from samesense.reports.run_verdict import CROSS_FITTED, OUT_OF_FOLD
from samesense.training.step_scores import STEP_SCORES, read_step_scores
from samesense.types import Result

SELECTING = "selecting pairs"
"""Name of the scores of dev pairs that chose the checkpoint, where the verdict is on other pairs."""


def unbiased_scores(job: Job[Any, Any], sets: Sets, out_of_fold: OutOfFold | None) -> dict[str, UnbiasedScores]:
    """Return scores that replace those of the trained model, by the name of the set.

    Training pairs have out-of-fold scores. Dev pairs have the scores of the step that pairs of other folds chose; if
    the verdict is on other pairs, these are under :data:`SELECTING`, for the calibration.
    """
    first = sets.verdict
    if out_of_fold is not None and first is not None:
        return {first.name: UnbiasedScores(out_of_fold.scores, out_of_fold.protocol)}
    # A merged model is none of the steps whose scores were kept.
    if not job.concludes or sets.selecting is None or len(sets.selecting) < LEAST or job.settings.merge:
        return {}
    scores = _cross_fitted(job, sets.selecting)
    if scores is None:
        return {}
    return {first.name if first is not None and first.role == CROSS_FITTED else SELECTING: scores}


def _cross_fitted(job: Job[Any, Any], selecting: PairData) -> UnbiasedScores | None:
    """Return the score of each selecting pair at the step that the other folds chose; ``None`` if none are stored."""
    by_step = read_step_scores(job.output / STEP_SCORES)
    steps = [step for step, scores in sorted(by_step.items()) if step > 0 and len(scores) == len(selecting)]
    if not steps:
        return None
    numbers, apart = folds_of_dev(selecting)
    labels = np.asarray(selecting.labels, dtype=np.float64)
    matrix = np.stack([by_step[step] for step in steps])
    shares = np.array(steps) / steps[-1]
    groups = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    folds = [ScoredFold(rows, labels[rows], shares, matrix[:, rows]) for rows in groups]
    protocol = f"each pair scored at the step that others chose, which share no {apart} with it"
    return UnbiasedScores(choose_scores(folds), protocol)


def results_by_fold(job: Job[Any, Any], model: Model, unbiased: Mapping[str, UnbiasedScores]) -> list[Result]:
    """Return the results over requested folds: those of argument similarity, overall and by topic."""
    dealt = job.cross_validation
    if dealt is None or dealt.task is None:
        return []
    return list(dealt.task.evaluate(standing_in(model, unbiased[job.data.name])).results)


def keep_held_out(job: Job[Any, Any], held_out: HeldOutScores | None) -> int:
    """Write the scores of pairs that the model is independent of; return how many of them a calibration can use."""
    if held_out is None:
        return 0
    write_held_out(job.output, held_out)
    try:
        check_labels(held_out.data, CalibrationSettings())
    except SamesenseError:  # too few, or too few of one label
        return 0
    return len(held_out.data)


def scores_of_start(job: Job[Any, Any], sets: Sets, start: Measured) -> HeldOutScores | None:
    """Return the start's scores of the pairs of the verdict, where it is kept; never of the user's test pairs."""
    first = sets.verdict
    if not isinstance(first, ComparedSet) or first.role == "test" or first.name not in start.by_set:
        return None
    numbers = [-1] * len(first.data)
    if first.role == OUT_OF_FOLD and job.cross_validation is not None:
        numbers = job.cross_validation.numbers()
    values = start.by_set[first.name].evidence[0].values
    return HeldOutScores(first.data, values, numbers, "the start, which was trained on none of these pairs")


def held_out_scores(
    job: Job[Any, Any], sets: Sets, end: Measured, unbiased: Mapping[str, UnbiasedScores]
) -> HeldOutScores | None:
    """Return the scores of pairs that the trained model is independent of; never of the user's test pairs."""
    first = sets.verdict
    if first is not None and first.role == OUT_OF_FOLD and job.cross_validation is not None:
        scored = unbiased[first.name]
        return HeldOutScores(job.data, scored.scores, job.cross_validation.numbers(), scored.protocol)
    scored_sets: list[tuple[PairData, UnbiasedScores]] = []
    for name in (SELECTING, "" if first is None else first.name):
        if name in unbiased and sets.selecting is not None:
            scored_sets.append((sets.selecting, unbiased[name]))
    if isinstance(first, ComparedSet) and first.role == "dev" and first.name in end.by_set:
        scores = end.by_set[first.name].evidence[0].values
        scored_sets.append((first.data, UnbiasedScores(scores, "pairs that neither trained nor selected")))
    if not scored_sets:
        return None
    data = concat([pairs for pairs, _ in scored_sets])
    protocol = "; ".join(dict.fromkeys(scored.protocol for _, scored in scored_sets))
    scores = np.concatenate([scored.scores for _, scored in scored_sets])
    # These pairs were in no fold of a cross-validation.
    return HeldOutScores(data, scores, [-1] * len(data), protocol)
