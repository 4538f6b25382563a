"""Binary classification by score: average precision, and thresholds with their accuracy, F1, precision and recall."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from samesense.choices import ThresholdTarget
from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Numbers, finite_vector, matching_vectors
from samesense.types import Floats


def check_binary(labels: Numbers) -> None:
    """Raise if the labels are not binary; called before any model runs.

    Raises:
        DataError: if a label is neither 0 nor 1, or all are the same.
    """
    values = finite_vector(labels, "labels")
    odd = (values != 0) & (values != 1)
    if odd.any():
        first = int(np.argmax(odd))
        raise DataError(
            f"Labels must be 0 or 1, and labels[{first}] is {values[first]:g}. Choose a cut for them first."
        )
    positives = int(values.sum())
    if not 0 < positives < len(values):
        raise DataError(
            f"Positives and negatives are both needed, got {positives} positives among {len(values)} pairs."
        )


def average_precision(scores: Numbers, labels: Numbers) -> float:
    """Return the average precision: the precision at each threshold, weighted by the recall it adds.

    Thresholds are the distinct scores, so pairs of one score are taken together and their order does not matter.

    Source: Manning, Raghavan and Schütze (2008), "Introduction to Information Retrieval", section 8.4; without
        interpolation.

    Args:
        scores: model scores ``(n,)``; only their order matters.
        labels: 1 for a positive, 0 for a negative ``(n,)``.

    Returns:
        A number in (0, 1]; about the share of positives for uninformative scores.

    Raises:
        DataError: if a number is not finite, lengths differ, or the labels are not 0 and 1 with both present.
    """
    left, right = binary_vectors(scores, labels)
    _, hits, taken = _cuts(left, right)
    added = np.diff(hits, prepend=0)
    return float(np.dot(added, hits / taken) / hits[-1])


def best_threshold(
    scores: Numbers, labels: Numbers, metric: ThresholdTarget = "accuracy", *, dividing: bool = False
) -> float:
    """Return the threshold that is best on these pairs: those scored at or above it are called positive.

    It lies midway between two neighbouring scores, or is minus or plus infinity if calling everything positive or
    negative is best. The highest of equally good thresholds is taken. Fit it on other pairs than those it is evaluated
    on.

    Args:
        scores: model scores ``(n,)``.
        labels: 1 for a positive, 0 for a negative ``(n,)``.
        metric: ``"accuracy"`` or ``"f1"``.
        dividing: consider only thresholds that call some pairs positive and some negative; if all scores are equal
            there is none, and all are considered.

    Returns:
        The threshold, in the unit of the scores.

    Raises:
        DataError: as :func:`average_precision`.
        ConfigError: if the metric is unknown.
    """
    if metric not in ("accuracy", "f1"):
        raise ConfigError(f"A threshold is fitted for 'accuracy' or 'f1', got {metric!r}.")
    left, right = binary_vectors(scores, labels)
    values, hits, taken = _cuts(left, right)
    hits = np.append(0, hits)  # the first threshold calls nothing positive
    taken = np.append(0, taken)
    positives = hits[-1]
    # 2 hits - taken rises with the accuracy.
    if metric == "accuracy":
        quality = 2 * hits - taken
    else:
        quality = 2 * hits / (taken + positives)
    if dividing and len(values) > 1:
        # The two ends call nothing or everything positive.
        return _between(values, 1 + int(np.argmax(quality[1:-1])))
    # Of equals argmax takes the first, which is the highest threshold.
    return _between(values, int(np.argmax(quality)))


def accuracy_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the share of pairs classified correctly when scores at or above ``threshold`` mean positive.

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
    """Return F1, the harmonic mean of precision and recall, at a threshold.

    Arguments and errors are those of :func:`accuracy_at`.

    It is 2 TP / (2 TP + FP + FN), and so 0 if nothing is called positive.

    Returns:
        A number in [0, 1].
    """
    called, right = _called(scores, labels, threshold)
    return float(2 * (called & right).sum() / (called.sum() + right.sum()))


def precision_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the precision at a threshold: the share of positives among the pairs called positive, 1 if there is none.

    Arguments and errors are those of :func:`accuracy_at`.

    Returns:
        A number in [0, 1].
    """
    called, right = _called(scores, labels, threshold)
    if not called.any():
        return 1.0
    return float((called & right).sum() / called.sum())


def recall_at(scores: Numbers, labels: Numbers, threshold: float) -> float:
    """Return the recall at a threshold: the share of the positives that is called positive.

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
    above = float(values[count - 1])
    below = float(values[count])
    # Halves are added, not the sum halved, so that large scores do not overflow.
    middle = above / 2 + below / 2
    # Neighbouring floats have no number between them: their middle rounds to one of the two.
    if below < middle <= above:
        return middle
    return above


def binary_vectors(scores: Numbers, labels: Numbers) -> tuple[Floats, Floats]:
    """Return scores and binary labels as vectors of one length."""
    left, right = matching_vectors(scores, labels)
    check_binary(right)
    return left, right


def _cuts(scores: Floats, labels: Floats) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct scores, the highest first, and the numbers of positives and of pairs at or above each."""
    values, group, size = np.unique(-scores, return_inverse=True, return_counts=True)
    hits = np.bincount(group, weights=labels).astype(np.int64)
    return -values, np.cumsum(hits), np.cumsum(size)


def _called(scores: Numbers, labels: Numbers, threshold: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which pairs are called positive, and which are positive."""
    if np.isnan(threshold):
        raise DataError("The threshold must be a number, got NaN.")
    left, right = binary_vectors(scores, labels)
    return left >= threshold, right == 1
