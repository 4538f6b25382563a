"""A start that is kept, whitened by the training texts where that is shown to help.

A map is fitted without labels, so that few labelled pairs can judge it. A language model has 51.9 on SICK-R as it is,
and 56.1 to 57.9 whitened by the texts of 200 pairs, where training on their labels harms it (``benchmarks/LOG.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer

from samesense.data import PairData
from samesense.encoder.maps.standardize import NARROW, standardize
from samesense.evaluation.argument import Fold
from samesense.execution.progress import stage
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.recipes.held_out.sets import ComparedSet, Sets
from samesense.recipes.run.job import Job
from samesense.recipes.run.model_adapters import adapter_of
from samesense.recipes.run.outcome.measure import Measured, UnbiasedScores, compared, measure
from samesense.recipes.run.run_folder import STANDARDIZED
from samesense.reports.run_verdict import OUT_OF_FOLD
from samesense.types import Precision

PRECISION: Precision = "float32"
"""Arithmetic of the figures of a start."""


@dataclass(frozen=True)
class StandardizedStart:
    """A start with a map behind it.

    Attributes:
        model: the encoder.
        measured: its figures on the sets of the run.
        description: what was done, in words.
        reason: that, and what it gains.
    """

    model: Any
    measured: Measured
    description: str
    reason: str


def better_standardized_start(
    job: Job[Any, Any], sets: Sets, start: Measured, training_texts: Callable[[], Sequence[str]]
) -> StandardizedStart | None:
    """Return the standardized start of a narrow cone if its verdict beside the plain start is "better"; else ``None``.

    ``training_texts`` is called only for a narrow cone. The user's test pairs choose nothing. Out of fold, the map that
    scores a pair is fitted on the texts of the other folds.
    """
    first = sets.verdict
    if not isinstance(first, ComparedSet) or first.role == "test":
        return None
    if start.cosines is None or float(start.cosines.mean()) < NARROW:
        return None
    with stage("standardizing the start"):
        model, description = _standardized(job, training_texts())
        if not description:
            return None
        unbiased = {}
        if first.role == OUT_OF_FOLD and job.cross_validation is not None:
            unbiased[first.name] = _scores_out_of_fold(job, job.cross_validation.folds)
        measured = measure(_scorer(job, model), sets.compared, unbiased=unbiased)
    verdict = compared(start, measured, sets, job.data)
    if verdict.word != "better" or verdict.task is None:
        return None
    before, after = (100 * figure for figure in (verdict.task.start, verdict.task.end))
    gain = f"whose figure on {verdict.task.dataset} is better ({after:.2f}; as it was {before:.2f})"
    return StandardizedStart(model, measured, description, f"{description}, {gain}")


def _standardized(job: Job[Any, Any], texts: Sequence[str]) -> tuple[Any, str]:
    """Return a start with its map, and in words what was done; nothing if it needs none."""
    model = adapter_of(job.settings).build(job.settings)
    if not isinstance(model, SentenceTransformer):
        return model, ""
    modules = len(model)
    method = job.settings.standardize
    # What hinders a training does not hinder a start that is kept.
    description = standardize(model, texts, "whiten" if method == "none" else method, precision=PRECISION)
    if len(model) == modules:
        return model, ""
    return model, description.partition(":")[0]


def _scorer(job: Job[Any, Any], model: SentenceTransformer) -> Model:
    # A name of its own, as figures of one model are not compared with each other.
    return load(model, name=f"{job.settings.model} {STANDARDIZED}", precision=PRECISION, cache=True)


def _scores_out_of_fold(job: Job[Any, Any], folds: Sequence[Fold]) -> UnbiasedScores:
    """Return scores of all pairs, each by a map that was fitted on the texts of the other folds."""
    data: PairData = job.data
    scores = np.empty(len(data))
    for train_rows, held_rows in folds:
        train = data.take(train_rows)
        model, _ = _standardized(job, [*train.sentences1, *train.sentences2])
        scores[held_rows] = _scorer(job, model).scores(data.take(held_rows).pairs())
    return UnbiasedScores(scores, "the start, standardized on the texts of the other folds")
