"""Maps from scores to the scale of the user's labels or to probabilities, and thresholds for yes and no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, ConfigDict, Field

from samesense.data.conventions.scales import Scale
from samesense.errors import ConfigError, DataError
from samesense.metrics.classification import f1_at, precision_at, recall_at
from samesense.metrics.inputs import finite_vector
from samesense.types import Scores

Decide = Literal["accuracy", "f1", "precision", "recall"]
"""The criterion of a threshold for yes and no: best accuracy, best F1, or a least precision or recall."""

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Precisions for which a calibration stores the threshold of highest recall, if its pairs show that one holds."""


LARGEST = 1e100
"""Largest number of a map; computing with larger ones would overflow."""


def _usable(numbers: Sequence[float]) -> bool:
    """Return whether numbers are finite and small enough to compute with."""
    # A NaN compares as false, and is refused as well.
    return bool(np.all(np.abs(numbers) <= LARGEST))


@dataclass(frozen=True)
class Isotonic:
    """A piecewise linear map: knots ascend strictly in score and never descend in value; flat outside the knots."""

    scores: tuple[float, ...]
    values: tuple[float, ...]
    kind: Literal["isotonic"] = "isotonic"

    def __post_init__(self) -> None:
        both = len(self.scores) == len(self.values) >= 2 and _usable([*self.scores, *self.values])
        if not both or (np.diff(self.scores) <= 0).any() or (np.diff(self.values) < 0).any():
            raise ValueError(
                "knots must be finite, two or more, with ascending scores and as many values that do not descend"
            )

    def __call__(self, scores: Scores) -> Scores:
        """Return the value of each score."""
        return np.interp(scores, self.scores, self.values)


@dataclass(frozen=True)
class Logistic:
    """A logistic curve from ``low`` to ``high``, the ends of the scale; ``intercept`` is the log-odds at score 0."""

    slope: float
    intercept: float
    low: float
    high: float
    kind: Literal["logistic"] = "logistic"

    def __post_init__(self) -> None:
        numbers = (self.slope, self.intercept, self.low, self.high)
        if not _usable(numbers) or self.slope <= 0 or self.low >= self.high:
            raise ValueError("a logistic map must rise between two finite ends")

    def __call__(self, scores: Scores) -> Scores:
        """Return the value of each score."""
        # By tanh, which has no overflow where exp would have one.
        fraction: Scores = 0.5 + 0.5 * np.tanh((self.slope * scores + self.intercept) / 2)
        return self.low + (self.high - self.low) * fraction


def fit_isotonic(scores: Scores, labels: Scores, scale: Scale) -> Isotonic:
    """Return the isotonic map of least squared error.

    Scores of the model and labels are ``(n,)``; DataError if labels do not rise with scores.

    Source: Zadrozny and Elkan 2002, "Transforming classifier scores into accurate multiclass probability estimates".
    """
    # Fitting alone needs scikit-learn; a calibration is applied by NumPy.
    from sklearn.isotonic import IsotonicRegression

    _check_rise(scores, labels)
    fitted = IsotonicRegression(y_min=scale[0], y_max=scale[1], increasing=True).fit(scores, labels)
    return Isotonic(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))


def fit_logistic(scores: Scores, labels: Scores, scale: Scale) -> Logistic:
    """Return a logistic curve fitted by cross-entropy; a label within the scale counts partly for either end.

    Scores of the model and labels are ``(n,)``; DataError if labels do not rise with scores.

    Source: Platt 1999, "Probabilistic outputs for support vector machines", section 2: targets are smoothed away from 0
        and 1, so that the optimum is finite even where scores separate the labels perfectly.
    Differs: labels within the scale are smoothed in proportion; for 0 and 1 the targets are Platt's.
    """
    # As above: only fitting loads scikit-learn.
    from sklearn.linear_model import LogisticRegression

    _check_rise(scores, labels)
    low, high = scale
    fraction = (labels - low) / (high - low)
    lowest = 1 / ((1 - fraction).sum() + 2)
    highest = (fraction.sum() + 1) / (fraction.sum() + 2)
    targets = lowest + (highest - lowest) * fraction
    middle = float(scores.mean())
    spread = float(scores.std())
    # Soft targets as weighted examples: each score occurs once as a yes and once as a no.
    # On standardised scores the solver converges for any range of scores.
    rows = np.tile((scores - middle) / spread, 2)[:, None]
    sides = np.repeat([1, 0], len(scores))
    weights = np.concatenate([targets, 1 - targets])
    # Without a penalty: the smoothed targets keep the slope finite already.
    fitted = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(rows, sides, sample_weight=weights)
    slope = float(fitted.coef_[0, 0]) / spread
    return Logistic(slope, float(fitted.intercept_[0]) - slope * middle, float(low), float(high))


def _check_rise(scores: Scores, labels: Scores) -> None:
    """Raise DataError unless the covariance is above 0: the fitted map would be flat or falling."""
    covariance = float(np.dot(scores - scores.mean(), labels - labels.mean())) / len(scores)
    if covariance <= 0:
        raise DataError(
            f"A calibration needs labels that rise with the model's scores; their covariance is {covariance:.3g}. "
            "Check that larger labels mean more similar, or take a model that fits the data."
        )


Fit = Callable[[Scores, Scores, Scale], Isotonic | Logistic]
"""Fits a map to scores and labels on a scale."""

FITS: dict[str, Fit] = {"isotonic": fit_isotonic, "logistic": fit_logistic}
"""Fitting functions by the name of the map."""


def _ascending(scale: tuple[float, float]) -> tuple[float, float]:
    if scale[0] >= scale[1] or not _usable(scale):
        raise ValueError("the lowest label comes first, and the highest is above it")
    return scale


def _rising_precisions(precisions: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    levels = [precision for precision, _ in precisions]
    if levels != sorted(set(levels)) or not all(0 < precision <= 1 for precision in levels):
        raise ValueError("precisions are above 0 and up to 1, and ascend")
    return precisions


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The calibration of a model's scores, fitted on labelled pairs.

    This is also the schema of the calibration file, against which a file is validated.
    """

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    map: Annotated[Isotonic | Logistic, Field(discriminator="kind")]  # from scores to the scale
    scale: Annotated[tuple[float, float], AfterValidator(_ascending)]  # lowest and highest label; (0, 1): probability
    yes: float | None  # the label from which on a pair counts as a yes; None if the labels do not decide that
    # Scores from which on a pair is called a yes: of best accuracy, of best F1, and for the requested precision or
    # recall. All are present if ``yes`` is.
    thresholds: dict[Decide, float]
    decide: Decide  # the default threshold
    data: str  # name of the pairs it was fitted on
    sha256: str  # hash of their content
    n: Annotated[int, Field(ge=1)]  # number of pairs
    errors: dict[str, float]  # results of cross-validation, by name
    protocol: str  # how the scores were computed, in words
    fingerprint: str  # hash of the model's files
    # For some precisions, ascending, the score of highest recall that keeps it on new pairs with 95 % confidence; a
    # precision that the pairs do not show is absent.
    precisions: Annotated[tuple[tuple[float, float], ...], AfterValidator(_rising_precisions)] = ()
    # The precision or recall that the default threshold promises.
    least: Annotated[float, Field(gt=0, le=1)] | None = None
    folds: Annotated[int, Field(ge=2, le=10)] = 5  # folds of the cross-validation
    seed: Annotated[int, Field(ge=0)] = 0  # seed of the folds
    version: Literal[1] = 1  # version of the file's format

    def __post_init__(self) -> None:
        low, high = self.scale
        # Computed values may lie beyond an end by a rounding error.
        if isinstance(self.map, Logistic):
            ends = self.map(np.array([-np.inf, np.inf]))
        else:
            ends = np.array(self.map.values)
        slack = 1e-9 * (abs(low) + abs(high))
        if ends.min() < low - slack or ends.max() > high + slack:
            raise ValueError("`map` must lead to the `scale`")
        if self.yes is None and (self.thresholds or self.precisions or self.least is not None):
            raise ValueError("`thresholds`, `precisions` and `least` need a `yes`, from which on a pair counts as one")
        if self.yes is not None and self.decide not in self.thresholds:
            raise ValueError("`thresholds` must hold the one that `decide` names")
        if (self.decide in ("precision", "recall")) != (self.least is not None):
            raise ValueError("`least` goes with a `decide` of precision or recall")

    def apply(self, scores: Scores) -> Scores:
        """Return scores mapped to the scale of the labels ``(n,)``; any score is mapped into the scale.

        Raises:
            DataError: if a score is not finite.
        """
        return self.map(finite_vector(scores, "scores"))

    def says_yes(self, scores: Scores, by: Decide | None = None) -> npt.NDArray[np.bool_]:
        """Return for each score whether the pair counts as a yes ``(n,)``.

        Args:
            scores: scores of the model ``(n,)``.
            by: which threshold; ``None`` for the default of the calibration.

        Raises:
            ConfigError: if there is no such threshold.
            DataError: if a score is not finite.
        """
        return finite_vector(scores, "scores") >= self.threshold(by)

    def threshold(self, by: Decide | None = None) -> float:
        """Return the score from which on a pair is called a yes; arguments and errors as :meth:`says_yes`."""
        target = by or self.decide
        if target in self.thresholds:
            return self.thresholds[target]
        if self.yes is None:
            raise ConfigError(
                f"Yes and no need a threshold, and this calibration has none: {self.data} has graded labels. Calibrate "
                f"again and say from which label on a pair counts, as in: `yes` {(self.scale[0] + self.scale[1]) / 2:g}"
            )
        raise ConfigError(
            f"This calibration has no threshold for {target}. Ask for {' or '.join(self.thresholds)}, or calibrate "
            f"again with `min_{target}`."
        )

    def at_precision(self, least: float) -> float:
        """Return the threshold for a precision, or for the next higher one stored; ConfigError if there is none."""
        thresholds = [threshold for precision, threshold in self.precisions if precision >= least]
        if not thresholds:
            levels = ", ".join(f"{precision:g}" for precision, _ in self.precisions) or "none"
            raise ConfigError(
                f"The {self.n} pairs of {self.data}, on which the model was calibrated, do not show a precision of "
                f"{least:g}; the precisions that they show are {levels}. Ask for less, or calibrate on more pairs that "
                "are labelled yes or no."
            )
        # They ascend, so the first is the lowest that suffices.
        return thresholds[0]


def threshold_table(calibration: Calibration, scores: Scores, right: Scores) -> list[str]:
    """Return a table of thresholds with precision, recall and F1 on pairs ``(n,)``; ``right`` is 1 for yes, else 0."""
    # One line for each threshold, even where several criteria share it.
    remarks: dict[float, list[str]] = {}
    for name, threshold in calibration.thresholds.items():
        remarks.setdefault(threshold, [])
        if name in ("accuracy", "f1"):
            remarks[threshold].append(f"best {name}")
    for least, threshold in calibration.precisions:
        remarks.setdefault(threshold, []).append(f"precision {100 * least:g} % on new pairs")
    lines = [f"{'threshold':>9}{'precision':>12}{'recall':>9}{'F1':>9}  on these pairs"]
    for threshold in sorted(remarks):
        precision, recall, f1 = (
            f"{100 * measure(scores, right, threshold):.1f} %" for measure in (precision_at, recall_at, f1_at)
        )
        remark = ", ".join(remarks[threshold])
        lines.append(f"{threshold:>9.4f}{precision:>12}{recall:>9}{f1:>9}  {remark}".rstrip())
    return lines
