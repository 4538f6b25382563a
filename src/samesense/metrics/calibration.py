"""Whether values mean what they say: predicted beside observed, in bins of about equally many pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.inputs import Numbers, matching_vectors
from samesense.types import Floats

BINS = 10
"""Bins of a calibration error, at most."""


@dataclass(frozen=True)
class Reliability:
    """Pairs in bins of ascending value.

    Attributes:
        values: mean value of each bin ``(bins,)``.
        labels: mean label of each bin ``(bins,)``.
        deviations: standard deviation of the labels of each bin ``(bins,)``.
        counts: pairs of each bin ``(bins,)``; none is empty.
    """

    values: Floats
    labels: Floats
    deviations: Floats
    counts: npt.NDArray[np.int64]


def reliability(values: Numbers, labels: Numbers, bins: int = BINS) -> Reliability:
    """Put pairs into bins of about equally many, by value; equal values stay together.

    Args:
        values: what was predicted, in the unit of the labels ``(n,)``.
        labels: what was observed ``(n,)``.
        bins: at most; there are fewer where many values are equal.

    Raises:
        DataError: if there is no pair, a number is not finite, or lengths differ.
    """
    left, right = matching_vectors(values, labels)
    if not len(left):
        raise DataError("A calibration error needs at least one pair, got none.")
    _, group, sizes = np.unique(left, return_inverse=True, return_counts=True)
    first = np.cumsum(sizes) - sizes
    _, own, counts = np.unique((first * bins // len(left))[group], return_inverse=True, return_counts=True)
    means = np.bincount(own, weights=right) / counts
    spread = np.bincount(own, weights=(right - means[own]) ** 2) / counts
    return Reliability(np.bincount(own, weights=left) / counts, means, np.sqrt(spread), counts.astype(np.int64))


def calibration_error(values: Numbers, labels: Numbers, bins: int = BINS) -> float:
    """Return the expected calibration error: how far mean value and mean label of a bin lie apart, on average.

    Arguments and errors are those of :func:`reliability`.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", Eq. 3 (ECE).
    Differs: bins hold about equally many pairs, where theirs are equally wide and may be empty; and labels need not be
        0 and 1, so the error is in their unit.

    Returns:
        A number from 0 on; 0 if every bin is right on average.
    """
    found = reliability(values, labels, bins)
    return float(np.dot(found.counts, np.abs(found.values - found.labels)) / found.counts.sum())


def mean_absolute_error(values: Numbers, labels: Numbers) -> float:
    """Return the mean distance of values from labels, in their unit."""
    return float(np.abs(_differences(values, labels)).mean())


def mean_squared_error(values: Numbers, labels: Numbers) -> float:
    """Return the mean squared distance of values from labels; for probabilities of 0 and 1 it is the Brier score.

    Source: Brier 1950, "Verification of forecasts expressed in terms of probability".
    Differs: the square of one probability is taken, half of his sum over both outcomes, as is usual today.
    """
    return float((_differences(values, labels) ** 2).mean())


def _differences(values: Numbers, labels: Numbers) -> Floats:
    left, right = matching_vectors(values, labels)
    if not len(left):
        raise DataError("An error needs at least one pair, got none.")
    return left - right
