"""Correlation of model scores with human labels, the metric of semantic textual similarity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from samesense.metrics.inputs import Numbers, check_correlates
from samesense.types import Floats

Statistic = Literal["spearman", "pearson"]
"""Name of a correlation."""


def average_ranks(values: Floats) -> Floats:
    """Return the ranks of ``values`` from 1 to n; equal values share their average rank."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    rank: Floats = np.cumsum(size) - (size - 1) / 2
    return rank[group]


def centred(values: Floats) -> Floats:
    """Return ``values`` shifted to mean 0 and scaled to a largest magnitude of about 1.

    The scaling keeps the squares of very large and very small numbers within float64.

    Returns:
        Numbers ``(n,)``; their correlation with anything is that of ``values``.
    """
    for _ in range(2):  # a large mean leaves small deviations, which are scaled again
        # A power of two scales without rounding.
        _, exponent = np.frexp(np.abs(values).max())
        values = np.ldexp(values, -exponent)
        values = values - values.mean()
    largest = np.abs(values).max()
    scaled: Floats = values / largest
    return scaled


def pearson(scores: Numbers, labels: Numbers) -> float:
    """Return Pearson's correlation of scores and labels.

    Source: Pearson (1895), "Note on regression and inheritance in the case of two parents".

    Args:
        scores: model scores ``(n,)``.
        labels: reference labels ``(n,)``.

    Returns:
        A number in [-1, 1].

    Raises:
        DataError: if a number is not finite, lengths differ, n is less than 2, or a side is constant.
    """
    left, right = (centred(side) for side in check_correlates(scores, labels))
    value = np.dot(left, right) / np.sqrt(np.dot(left, left) * np.dot(right, right))
    # Rounding may lead just outside [-1, 1].
    return float(np.clip(value, -1.0, 1.0))


def spearman(scores: Numbers, labels: Numbers) -> float:
    """Return Spearman's rank correlation of scores and labels.

    Arguments, range and errors are those of :func:`pearson`; only the order of both sides matters.

    This is Pearson's correlation of the average ranks. The short formula with squared rank differences
    is right only without ties, and labels always have ties.

    Source: Spearman (1904), "The proof and measurement of association between two things".
    """
    left, right = check_correlates(scores, labels)
    return pearson(average_ranks(left), average_ranks(right))


CORRELATIONS: dict[Statistic, Callable[[Numbers, Numbers], float]] = {"spearman": spearman, "pearson": pearson}
"""Every correlation by name."""
