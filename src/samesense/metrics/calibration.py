"""Calibration of predicted values: predicted against observed means, in bins of about equally many pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.inputs import Numbers, matching_vectors
from samesense.types import Floats

BINS = 10
"""Most bins of a calibration error."""


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
    # Equal values form a group; the rank of its first member decides the bin of all.
    first = np.cumsum(sizes) - sizes
    # Numbered again by unique, so that no bin is empty.
    _, bin_of, counts = np.unique((first * bins // len(left))[group], return_inverse=True, return_counts=True)
    means = np.bincount(bin_of, weights=right) / counts
    spread = np.bincount(bin_of, weights=(right - means[bin_of]) ** 2) / counts
    return Reliability(np.bincount(bin_of, weights=left) / counts, means, np.sqrt(spread), counts.astype(np.int64))


def calibration_error(values: Numbers, labels: Numbers, bins: int = BINS) -> float:
    """Return the expected calibration error: the mean distance of mean value and mean label over the bins.

    Arguments and errors are those of :func:`reliability`.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", Eq. 3 (ECE).
    Differs: bins hold about equally many pairs, where theirs are equally wide and may be empty; and labels need not be
        0 and 1, so the error is in their unit.

    Returns:
        A number from 0 on; 0 if every bin is right on average.
    """
    binned = reliability(values, labels, bins)
    return float(np.dot(binned.counts, np.abs(binned.values - binned.labels)) / binned.counts.sum())


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
