"""The figures that can be resampled (correlations, average precision and F1), behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb, factorial
from typing import Any, Literal

from samesense.metrics.classification import average_precision, binary_vectors, f1_at
from samesense.metrics.correlation import centred, pearson, spearman
from samesense.metrics.inputs import Numbers, check_correlates
from samesense.metrics.resampling import (
    average_precisions,
    dense_ranks,
    f1_scores,
    rank_correlations,
    rank_values,
    value_correlations,
)
from samesense.types import Floats, Indices

PairStatistic = Literal["spearman", "pearson", "average_precision", "f1"]
"""Name of a figure of scores and labels; the scores of ``f1`` are decisions, 1 for a pair called positive, else 0."""


@dataclass(frozen=True)
class Resampling:
    """How a figure of scores and labels is checked, computed, and computed on resamples of the pairs."""

    check: Callable[[Numbers, Numbers], tuple[Floats, Floats]]  # returns both sides as vectors, or raises DataError
    value: Callable[[Numbers, Numbers], float]
    # What of scores and of labels is resampled: computed once for all resamples.
    prepare_scores: Callable[[Floats], Any]
    prepare_labels: Callable[[Floats], Any]
    resample: Callable[[Indices, Any, Any], Floats]  # of resampled rows and of both prepared; NaN if undefined
    least_p: Callable[[Floats], float]  # least p-value that a comparison over these labels can reach


def least_p_of_correlations(labels: Floats) -> float:
    """Return the least two-sided p-value of a comparison of correlations: one order among all, in both directions."""
    # Factorials beyond 170 do not fit into a float, and 20 is below any p-value of interest.
    return min(1.0, 2.0 / factorial(min(len(labels), 20)))


def least_p_of_binary(labels: Floats) -> float:
    """Return the least two-sided p-value with labels 0 and 1: one placement of the positives among all."""
    # Integers divide at any size; a float of as many placements as a thousand pairs have would overflow.
    return min(1.0, 2 / comb(len(labels), int(labels.sum())))


def _as_they_are(values: Floats) -> Floats:
    return values


def _highest_first(scores: Floats) -> Indices:
    return dense_ranks(-scores)


STATISTICS: dict[PairStatistic, Resampling] = {
    "spearman": Resampling(
        check_correlates, spearman, rank_values, rank_values, rank_correlations, least_p_of_correlations
    ),
    "pearson": Resampling(check_correlates, pearson, centred, centred, value_correlations, least_p_of_correlations),
    "average_precision": Resampling(
        binary_vectors, average_precision, _highest_first, _as_they_are, average_precisions, least_p_of_binary
    ),
    "f1": Resampling(
        binary_vectors, partial(f1_at, threshold=0.5), _as_they_are, _as_they_are, f1_scores, least_p_of_binary
    ),
}
"""Every figure that can be resampled, by name."""
