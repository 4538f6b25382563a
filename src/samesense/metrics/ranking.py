"""Ranking metrics of one list with graded labels: Kendall's tau-b and NDCG."""

from __future__ import annotations

from typing import Literal

import numpy as np

from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Numbers, check_correlates, matching_vectors
from samesense.types import Floats

Gain = Literal["linear", "exponential"]
"""Gain of a graded item: its label, or 2 to the power of its label, minus 1."""


def kendall(scores: Numbers, labels: Numbers) -> float:
    """Return Kendall's rank correlation tau-b of scores and labels.

    Arguments, range and errors are those of :func:`~samesense.metrics.spearman`.

    Tau-b takes pairs tied on either side out of the denominator, so that 1 can be reached with repeated labels.

    Source: Kendall (1945), "The treatment of ties in ranking problems".
    """
    # scipy.stats takes a second to load, and most metrics do not need it.
    from scipy.stats import kendalltau

    left, right = check_correlates(scores, labels)
    # Rounding may lead just outside [-1, 1].
    value = kendalltau(left, right).statistic
    return float(np.clip(value, -1.0, 1.0))


def ndcg(scores: Numbers, labels: Numbers, gain: Gain = "linear") -> float:
    """Return the normalised discounted cumulative gain of the whole list.

    The item at position *i* counts its gain divided by the base-2 logarithm of *i* + 1; the sum is divided by that of
    the best order. Items of equal score share the mean of their discounts, which gives the expected value under random
    order.

    Source: Järvelin and Kekäläinen (2002), "Cumulated gain-based evaluation of IR techniques"; exponential gain from
        Burges et al. (2005), "Learning to rank using gradient descent"; ties from McSherry and Najork (2008).

    Args:
        scores: model scores ``(n,)``; only their order matters.
        labels: grades ``(n,)``, 0 or larger.
        gain: ``"linear"`` or ``"exponential"``; published figures use either.

    Returns:
        A number in (0, 1].

    Raises:
        DataError: if a number is not finite, lengths differ, n is less than 2, a label is negative or too large for the
            exponential gain, or all labels are 0, which leaves it undefined.
        ConfigError: if the gain is unknown.
    """
    left, right = matching_vectors(scores, labels)
    if len(left) < 2:
        raise DataError(f"NDCG is undefined because it needs at least 2 items, got {len(left)}.")
    gains = _gains(right, gain)
    ranked = np.argsort(-left, kind="stable")
    _, group, size = np.unique(-left[ranked], return_inverse=True, return_counts=True)
    discounts = 1 / np.log2(np.arange(2, len(left) + 2))
    shared = np.bincount(group, weights=discounts) / size
    best = np.dot(np.sort(gains)[::-1], discounts)
    return float(min(1.0, np.dot(gains[ranked], shared[group]) / best))


def _gains(labels: Floats, gain: Gain) -> Floats:
    """Return the gain of each item divided by the largest, so that no sum overflows."""
    if gain not in ("linear", "exponential"):
        raise ConfigError(f"The gain must be 'linear' or 'exponential', got {gain!r}.")
    if (labels < 0).any():
        first = int(np.argmax(labels < 0))
        raise DataError(
            f"NDCG needs labels of 0 or larger, and labels[{first}] is {labels[first]:g}. Shift them to start at 0."
        )
    largest = float(labels.max())
    if largest == 0:
        raise DataError(f"NDCG is undefined because all {len(labels)} labels are 0.")
    if gain == "linear":
        return labels / largest
    # Float64 ends at 2^1024.
    if largest > 1000:
        raise DataError(f"The exponential gain 2^label is too large for a label of {largest:g}. Rescale the labels.")
    # expm1 keeps the digits of small labels, which 2^label - 1 would cancel.
    gains: Floats = np.expm1(labels * np.log(2)) / np.expm1(largest * np.log(2))
    return gains
