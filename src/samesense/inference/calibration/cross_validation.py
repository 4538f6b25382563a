"""Errors of calibrated values and of decisions by them, cross-validated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from samesense.choices import ThresholdTarget
from samesense.data.conventions.scales import Scale
from samesense.data.pairs.folds import Folds
from samesense.metrics.calibration import calibration_error, mean_absolute_error, mean_squared_error
from samesense.metrics.classification import accuracy_at, best_threshold, f1_at, precision_at, recall_at
from samesense.metrics.guarantee import share_interval
from samesense.types import Scores

TARGETS: tuple[ThresholdTarget, ...] = ("accuracy", "f1")
"""The metrics for which a best threshold is fitted."""

Errors = dict[str, float]
"""Results of cross-validation, by name."""

Intervals = dict[str, tuple[float, float]]
"""95 % intervals of precision and recall."""


def held_out_values(
    fit: Callable[[Scores, Scores], Callable[[Scores], Scores]], scores: Scores, labels: Scores, folds: Folds
) -> Scores:
    """Return each score mapped by a map that was fitted on the other folds ``(n,)``."""
    values = np.empty_like(scores)
    for fold in np.unique(folds):
        held = folds == fold
        values[held] = fit(scores[~held], labels[~held])(scores[held])
    return values


def value_errors(values: Scores, labels: Scores, *, graded: bool) -> Errors:
    """Return the errors of calibrated values: ``ece``, and ``mae`` for graded labels or ``brier`` for others."""
    errors = {"ece": calibration_error(values, labels)}
    if graded:
        errors["mae"] = mean_absolute_error(values, labels)
    else:
        errors["brier"] = mean_squared_error(values, labels)
    return errors


def decision_quality(scores: Scores, right: Scores, folds: Folds, used: ThresholdTarget) -> tuple[Errors, Intervals]:
    """Return the cross-validated quality of thresholds, and the intervals of precision and recall.

    Accuracy and F1 are each at their own best threshold, precision and recall at that of ``used``. Scores, ``right``
    (1 for a yes, 0 for a no) and folds are ``(n,)``.
    """
    called: dict[ThresholdTarget, Scores] = {target: np.empty_like(scores) for target in TARGETS}
    # Chosen on the other folds, so that no threshold is judged by pairs that chose it.
    for fold in np.unique(folds):
        held = folds == fold
        for target in TARGETS:
            threshold = best_threshold(scores[~held], right[~held], target, dividing=True)
            called[target][held] = scores[held] >= threshold
    errors = {
        # Decisions are 0 or 1 here, and a half divides them.
        "accuracy": accuracy_at(called["accuracy"], right, 0.5),
        "f1": f1_at(called["f1"], right, 0.5),
        "precision": precision_at(called[used], right, 0.5),
        "recall": recall_at(called[used], right, 0.5),
    }
    # Decisions and labels are 0 or 1, so that their product counts the hits.
    hits = float(np.dot(called[used], right))
    return errors, quality_intervals(hits, float(called[used].sum()), float(right.sum()))


def quality_intervals(hits: float, called: float, positives: float) -> Intervals:
    """Return the 95 % intervals of precision and recall, treating pairs as independent trials.

    ``hits`` is the number of true positives, ``called`` of pairs called a yes, ``positives`` of pairs that are a yes.
    """
    trials = {"precision": called, "recall": positives}
    return {name: share_interval(hits, count) for name, count in trials.items() if count}


def read_as_share(scores: Scores, scale: Scale) -> Scores | None:
    """Return scores read as fractions of the scale, negative ones as 0; ``None`` if some are outside [-1, 1]."""
    if np.abs(scores).max() > 1:
        return None
    return scale[0] + (scale[1] - scale[0]) * np.clip(scores, 0, 1)


def errors_of_values(held_out: Scores, before: Scores | None, labels: Scores, *, graded: bool) -> Errors:
    """Return the errors of calibrated values by name, and those of the scores as they are, where they are shares."""
    errors = value_errors(held_out, labels, graded=graded)
    if before is None:
        return errors
    before_errors = value_errors(before, labels, graded=graded)
    return {**errors, **{f"{name}_before": error for name, error in before_errors.items()}}
