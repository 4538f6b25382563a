"""The cosine from which on two texts count as the same: a number, or fitted on labelled pairs."""

from __future__ import annotations

import logging

import numpy as np

from samesense.choices import Threshold, check_min_precision
from samesense.data.pairs.data import PairData
from samesense.data.pairs.folds import FOLDS, fold_numbers
from samesense.errors import ConfigError, DataError
from samesense.inference.calibration.promise import promised, scored_pairs
from samesense.inference.calibration.storage import calibration_of, threshold_of
from samesense.inference.models.model import Model
from samesense.metrics.classification import best_threshold, check_binary, precision_at, recall_at

logger = logging.getLogger(__name__)

DEFAULT = 0.9
"""Default threshold."""


def check_one(threshold: Threshold | None, min_precision: float | None, pairs: bool) -> None:
    """Raise ConfigError for a threshold together with a way to find one, or for an invalid precision."""
    if threshold is not None and (pairs or min_precision is not None):
        raise ConfigError(
            f"A threshold is a number, or comes from `pairs` or a calibration; received `threshold` {threshold} and "
            f"{'`pairs`' if pairs else '`min_precision`'}. Give one."
        )
    check_min_precision(min_precision)


def known_threshold(model: object, threshold: Threshold | None, min_precision: float | None) -> float:
    """Return a threshold that needs no pairs: a number, that of the model's calibration, or its one for a precision.

    ConfigError if the model has no name, by which its calibration is read.
    """
    if min_precision is not None:
        return calibration_of(model).at_precision(min_precision)
    return threshold_of(model, DEFAULT if threshold is None else threshold)


def threshold_from(pairs: PairData, model: Model, min_precision: float | None) -> float:
    """Return the threshold of best F1 on pairs labelled 1 (the same) or 0 (not), or of most recall at a precision.

    ConfigError if labels are graded; DataError if all scores are equal, one of the two labels is missing, or the pairs
    do not show that the precision holds on new ones.
    """
    if pairs.graded:
        raise ConfigError(
            f"{pairs.name}: pairs for a threshold are labelled 1 (the same) or 0 (not); received {pairs.kind} ones. "
            "Label them so, or calibrate the model (`yes` says from which label on a pair counts)."
        )
    right = (np.asarray(pairs.labels) >= 1).astype(np.float64)
    scores = model.scores(pairs.pairs())
    check_binary(right)
    if min_precision is None:
        level = best_threshold(scores, right, "f1")
    else:
        folds, _ = fold_numbers(pairs, FOLDS, 0)
        level = promised(scored_pairs(pairs, scores, right, folds), "precision", min_precision, pairs.source).threshold
    if not np.isfinite(level):
        raise DataError(
            f"{pairs.name}: no score of these pairs reaches the best F1 and leaves some out. Label more pairs about "
            "the score at which you doubt, or give a number: `threshold`."
        )
    precision = 100 * precision_at(scores, right, level)
    recall = 100 * recall_at(scores, right, level)
    logger.info(
        f"threshold {level:.4f}: on {len(right)} pairs of {pairs.name}, {int(right.sum())} of them the same, precision "
        f"{precision:.1f} %, recall {recall:.1f} %"
    )
    return level
