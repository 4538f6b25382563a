"""Telling positives from negatives by score: without a threshold, and with one fitted elsewhere."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Numbers, finite_vector, matching_vectors
from samesense.types import Floats

Target = Literal["accuracy", "f1"]
"""What a threshold is fitted for."""


def check_binary(labels: Numbers) -> None:
    """Raise before any model runs, if no score could tell positives from negatives with these labels.

    Raises:
        DataError: if a label is neither 0 nor 1, or all are the same.
    """
    given = finite_vector(labels, "labels")
    odd = (given != 0) & (given != 1)
    if odd.any():
        first = int(np.argmax(odd))
        raise DataError(f"Labels must be 0 or 1, and labels[{first}] is {given[first]:g}. Choose a cut for them first.")
    positives = int(given.sum())
    if not 0 < positives < len(given):
        raise DataError(f"Positives and negatives are both needed, got {positives} positives among {len(given)} pairs.")


def average_precision(scores: Numbers, labels: Numbers) -> float:
    """Return the average precision: the precision at each threshold, weighted by the recall it adds.

    Thresholds are the distinct scores, so pairs of one score are taken together and their order does not matter.

    Source: Manning, Raghavan and Schütze (2008), "Introduction to Information Retrieval", section 8.4; without
        interpolation.

    Args:
        scores: model scores ``(n,)``; only their order matters.
        labels: 1 for a positive, 0 for a negative ``(n,)``.

    Returns:
        A number in (0, 1]; the share of positives if scores say nothing.

    Raises:
        DataError: if a number is not finite, lengths differ, or the labels are not 0 and 1 with both present.
    """
    left, right = _binary(scores, labels)
    _, hits, taken = _cuts(left, right)
    added = np.diff(hits, prepend=0)
    return float(np.dot(added, hits / taken) / hits[-1])


def best_threshold(scores: Numbers, labels: Numbers, metric: Target = "accuracy", *, dividing: bool = False) -> float:
    """Return the threshold that is best on these pairs: those scored at or above it are called positive.

    It lies midway between two neighbouring scores, or is minus or plus infinity if calling everything positive or
    negative is best. Of equally good ones the highest is taken. Fit it on other pairs than those it is evaluated on.

    Args:
        scores: model scores ``(n,)``.
        labels: 1 for a positive, 0 for a negative ``(n,)``.
        metric: ``"accuracy"`` or ``"f1"``.
        dividing: whether only thresholds count that call some pairs positive and some negative; where all scores are
            equal there is none, and all count.

    Returns:
        The threshold, in the unit of the scores.

    Raises:
        DataError: as :func:`average_precision`.
        ConfigError: if the metric is unknown.
    """
    if metric not in ("accuracy", "f1"):
        raise ConfigError(f"A threshold is fitted for 'accuracy' or 'f1', got {metric!r}.")
    left, right = _binary(scores, labels)
    values, hits, taken = _cuts(left, right)
    hits, taken = np.append(0, hits), np.append(0, taken)
    positives = hits[-1]
    quality = 2 * hits - taken if metric == "accuracy" else 2 * hits / (taken + positives)
    if dividing and len(values) > 1:
        return _between(values, 1 + int(np.argmax(quality[1:-1])))
    return _between(values, int(np.argmax(quality)))


def threshold_at(
    scores: Numbers, labels: Numbers, *, precision: float | None = None, recall: float | None = None
) -> float:
    """Return the threshold of highest recall at a precision, or of highest precision at a recall.

    Of equally good ones the highest is taken. Fit it on other pairs than those it is evaluated on.

    Args:
        scores: model scores ``(n,)``.
        labels: 1 for a positive, 0 for a negative ``(n,)``.
        precision: least share of right ones among the pairs called positive, above 0 and up to 1.
        recall: least share of the positives that is called positive, above 0 and up to 1; give one of the two.

    Returns:
        The threshold, in the unit of the scores; infinity if no score reaches the precision, minus infinity if every
        pair must be called positive.

    Raises:
        DataError: as :func:`average_precision`.
        ConfigError: if not one of the two is given, or it is out of range.
    """
    wanted = [value for value in (precision, recall) if value is not None]
    if len(wanted) != 1 or not 0 < wanted[0] <= 1:
        raise ConfigError(f"Give a precision or a recall, above 0 and up to 1; received {precision} and {recall}.")
    left, right = _binary(scores, labels)
    values, hits, taken = _cuts(left, right)
    shares = {"precision": hits / taken, "recall": hits / hits[-1]}
    bound, best = ("recall", "precision") if precision is None else ("precision", "recall")
    enough = shares[bound] >= wanted[0]
    if not enough.any():
        return float("inf")
    return _between(values, 1 + int(np.argmax(np.where(enough, shares[best], -1.0))))


def accuracy_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the share of pairs told right when scores at or above ``threshold`` mean positive.

    Args:
        scores: model scores ``(n,)``.
        labels: 1 for a positive, 0 for a negative ``(n,)``.
        threshold: in the unit of the scores; infinities are allowed.

    Returns:
        A number in [0, 1].

    Raises:
        DataError: as :func:`average_precision`, or if the threshold is NaN.
    """
    called, right = _called(scores, labels, threshold)
    return float(np.mean(called == right))


def f1_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the harmonic mean of precision and recall of the positives, as :func:`accuracy_at` calls them.

    Arguments and errors are those of :func:`accuracy_at`.

    It is 2 TP / (2 TP + FP + FN), and so 0 if nothing is called positive.

    Returns:
        A number in [0, 1].
    """
    called, right = _called(scores, labels, threshold)
    return float(2 * (called & right).sum() / (called.sum() + right.sum()))


def precision_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the share of right ones among the pairs called positive, 1 if there is none.

    Arguments and errors are those of :func:`accuracy_at`.

    Returns:
        A number in [0, 1].
    """
    called, right = _called(scores, labels, threshold)
    return float((called & right).sum() / called.sum()) if called.any() else 1.0


def recall_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the share of the positives that is called positive.

    Arguments and errors are those of :func:`accuracy_at`.

    Returns:
        A number in [0, 1].
    """
    called, right = _called(scores, labels, threshold)
    return float((called & right).sum() / right.sum())


def _between(values: Floats, count: int) -> float:
    """Return the threshold that calls the ``count`` highest of the descending ``values`` positive."""
    if count == 0:
        return float("inf")
    if count == len(values):
        return float("-inf")
    above, below = float(values[count - 1]), float(values[count])
    middle = above / 2 + below / 2
    return middle if below < middle <= above else above


def _binary(scores: Numbers, labels: Numbers) -> tuple[Floats, Floats]:
    left, right = matching_vectors(scores, labels)
    check_binary(right)
    return left, right


def _cuts(scores: Floats, labels: Floats) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct scores from the highest, and how many positives and pairs lie at or above each."""
    values, group, size = np.unique(-scores, return_inverse=True, return_counts=True)
    hits = np.bincount(group, weights=labels).astype(np.int64)
    return -values, np.cumsum(hits), np.cumsum(size)


def _called(scores: Numbers, labels: Numbers, threshold: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    if np.isnan(threshold):
        raise DataError("The threshold must be a number, got NaN.")
    left, right = _binary(scores, labels)
    return left >= threshold, right == 1
