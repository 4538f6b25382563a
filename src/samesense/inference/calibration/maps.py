"""Monotone maps from a model's score to a label scale: fitted with scikit-learn, applied with numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from samesense.data.formats.labels import Scale
from samesense.errors import DataError, ModelError
from samesense.types import Scores


@dataclass(frozen=True)
class Isotonic:
    """Straight lines between knots, strictly ascending in score and never descending in value; flat outside them."""

    scores: tuple[float, ...]
    values: tuple[float, ...]
    kind: Literal["isotonic"] = "isotonic"

    def __post_init__(self) -> None:
        both = len(self.scores) == len(self.values) >= 2 and np.isfinite([*self.scores, *self.values]).all()
        if not both or (np.diff(self.scores) <= 0).any() or (np.diff(self.values) < 0).any():
            raise ModelError(
                f"Knots must be finite, with ascending scores and values that do not descend; received "
                f"{len(self.scores)} scores and {len(self.values)} values that are not. Calibrate again."
            )

    def __call__(self, scores: Scores) -> Scores:
        """Return the value of each score."""
        return np.interp(scores, self.scores, self.values)


@dataclass(frozen=True)
class Logistic:
    """An S-shaped curve from ``low`` to ``high``, the ends of the scale; ``intercept`` is the log-odds at score 0."""

    slope: float
    intercept: float
    low: float
    high: float
    kind: Literal["logistic"] = "logistic"

    def __post_init__(self) -> None:
        numbers = (self.slope, self.intercept, self.low, self.high)
        if not np.isfinite(numbers).all() or self.slope <= 0 or self.low >= self.high:
            raise ModelError(f"A logistic map must rise between two finite ends; received {numbers}. Calibrate again.")

    def __call__(self, scores: Scores) -> Scores:
        """Return the value of each score."""
        share: Scores = 0.5 + 0.5 * np.tanh((self.slope * scores + self.intercept) / 2)
        return self.low + (self.high - self.low) * share


def fit_isotonic(scores: Scores, labels: Scores, scale: Scale) -> Isotonic:
    """Fit the monotone map of least squared error.

    Scores of the model and labels are ``(n,)``; DataError if labels do not rise with scores.

    Source: Zadrozny and Elkan 2002, "Transforming classifier scores into accurate multiclass probability estimates".
    """
    from sklearn.isotonic import IsotonicRegression

    _check_rise(scores, labels)
    fitted = IsotonicRegression(y_min=scale[0], y_max=scale[1], increasing=True).fit(scores, labels)
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))


def fit_logistic(scores: Scores, labels: Scores, scale: Scale) -> Logistic:
    """Fit a logistic curve by cross-entropy; a label between the ends of the scale counts in part for either.

    Scores of the model and labels are ``(n,)``; DataError if labels do not rise with scores.

    Source: Platt 1999, "Probabilistic outputs for support vector machines", section 2: targets are drawn in from the
        ends, so that there is a best curve even where scores tell all pairs apart.
    Differs: labels between the ends are drawn in in proportion; for 0 and 1 it is Platt's.
    """
    from sklearn.linear_model import LogisticRegression

    _check_rise(scores, labels)
    low, high = scale
    share = (labels - low) / (high - low)
    lowest, highest = 1 / ((1 - share).sum() + 2), (share.sum() + 1) / (share.sum() + 2)
    targets = lowest + (highest - lowest) * share
    middle, spread = float(scores.mean()), float(scores.std())
    rows = np.tile((scores - middle) / spread, 2)[:, None]
    sides, weights = np.repeat([1, 0], len(scores)), np.concatenate([targets, 1 - targets])
    fitted = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(rows, sides, sample_weight=weights)
    slope = float(fitted.coef_[0, 0]) / spread
    return Logistic(slope, float(fitted.intercept_[0]) - slope * middle, float(low), float(high))


def _check_rise(scores: Scores, labels: Scores) -> None:
    """Refuse what both maps would make flat or falling: a covariance that is not above 0."""
    covariance = float(np.dot(scores - scores.mean(), labels - labels.mean())) / len(scores)
    if covariance <= 0:
        raise DataError(
            f"A calibration needs labels that rise with the model's scores; their covariance is {covariance:.3g}. "
            "Check that larger labels mean more similar, or take a model that fits the data."
        )


Fit = Callable[[Scores, Scores, Scale], Isotonic | Logistic]
"""Scores, labels and scale in, a map out."""

FITS: dict[str, Fit] = {"isotonic": fit_isotonic, "logistic": fit_logistic}
"""How a map is fitted, by its name."""
