"""Figures of scores and labels that are resampled: correlations, average precision and F1, under one interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb, factorial
from typing import Literal

from samesense.metrics.classification import average_precision, check_binary, f1_at
from samesense.metrics.correlation import pearson, spearman
from samesense.metrics.inputs import Numbers, check_correlates, matching_vectors
from samesense.metrics.resampling import average_precisions, correlations, f1_scores
from samesense.types import Floats, Indices

PairStatistic = Literal["spearman", "pearson", "average_precision", "f1"]
"""Name of a figure of scores and labels; the scores of ``f1`` are decisions, 1 for a pair called positive, else 0."""


@dataclass(frozen=True)
class Resampling:
    """A figure of scores and labels, as it is and on resamples of the pairs."""

    check: Callable[[Numbers, Numbers], tuple[Floats, Floats]]  # both sides as vectors, or DataError
    value: Callable[[Numbers, Numbers], float]
    resample: Callable[[Indices, Floats, Floats], Floats]  # rows of each resample, scores, labels; NaN if undefined
    least: Callable[[Floats], float]  # p-value that a comparison over these labels can reach


def least_of_correlations(labels: Floats) -> float:
    """Return the least p-value that a comparison of correlations may have: that of one order among all, both ways."""
    return min(1.0, 2.0 / factorial(min(len(labels), 20)))


def least_of_binary(labels: Floats) -> float:
    """Return the least p-value with labels 0 and 1: that of one way among all to place the positives, both ways."""
    return min(1.0, 2.0 / comb(len(labels), int(labels.sum())))


def _check_binary(scores: Numbers, labels: Numbers) -> tuple[Floats, Floats]:
    left, right = matching_vectors(scores, labels)
    check_binary(right)
    return left, right


STATISTICS: dict[PairStatistic, Resampling] = {
    "spearman": Resampling(check_correlates, spearman, partial(correlations, ranked=True), least_of_correlations),
    "pearson": Resampling(check_correlates, pearson, partial(correlations, ranked=False), least_of_correlations),
    "average_precision": Resampling(_check_binary, average_precision, average_precisions, least_of_binary),
    "f1": Resampling(_check_binary, partial(f1_at, threshold=0.5), f1_scores, least_of_binary),
}
"""Every figure that is resampled, by name."""
