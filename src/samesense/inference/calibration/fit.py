"""Fit a calibration on labelled pairs, and estimate its errors by cross-validation."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import numpy as np

from samesense.choices import CalibrationMap, ThresholdTarget, check_number
from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.scales import Scale
from samesense.data.pairs.data import PairData
from samesense.data.pairs.folds import FOLDS, Folds, fold_numbers
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import describe_reversed_labels
from samesense.inference.calibration.calibration import (
    FITS,
    PRECISIONS,
    Calibration,
    Decide,
    Isotonic,
    Logistic,
    threshold_table,
)
from samesense.inference.calibration.cross_validation import (
    TARGETS,
    Errors,
    Intervals,
    decision_quality,
    errors_of_values,
    held_out_values,
    quality_intervals,
    read_as_share,
)
from samesense.inference.calibration.promise import percent, promised, scored_pairs
from samesense.metrics.classification import best_threshold
from samesense.metrics.guarantee import CONFIDENCE, PromiseFinder, Share
from samesense.metrics.inputs import is_constant, matching_vectors
from samesense.results.shown import Shown
from samesense.types import Result, Scorer, Scores

logger = logging.getLogger(__name__)

LEAST = 50
"""Least number of pairs of a calibration."""

LEAST_OF_EACH = 10
"""Least number of pairs each for yes and for no."""


@dataclass(frozen=True, kw_only=True)
class CalibrationSettings:
    """Options of a calibration.

    Attributes:
        shape: kind of the map; ``"auto"`` is logistic for yes/no labels and isotonic for graded ones.
        yes: the label from which on a pair counts as a yes; ``None`` is 1 for yes/no labels, and no threshold for
            graded ones.
        decide: the default threshold: that of best accuracy or of best F1.
        min_precision: instead use the threshold of highest recall that keeps this precision on new pairs.
        min_recall: instead use the threshold of highest precision that keeps this recall on new pairs.
        folds: number of folds of the cross-validation, 2 to 10.
        seed: seed of the folds, 0 or more.
    """

    shape: CalibrationMap = "auto"
    yes: float | None = None
    decide: ThresholdTarget = "accuracy"
    min_precision: float | None = None
    min_recall: float | None = None
    folds: int = FOLDS
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("min_precision", "min_recall", "yes"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value)
        bounds = [value for value in (self.min_precision, self.min_recall) if value is not None]
        if len(bounds) > 1 or any(not 0 < value <= 1 for value in bounds):
            raise ConfigError(
                "A threshold is chosen for a precision or for a recall, above 0 and up to 1, such as 0.95; received "
                f"`min_precision` {self.min_precision} and `min_recall` {self.min_recall}."
            )
        if not 2 <= self.folds <= 10:
            raise ConfigError(f"A calibration is cross-validated with 2 to 10 folds; received {self.folds}.")
        if self.seed < 0:
            raise ConfigError(f"A seed is 0 or more; received `seed` {self.seed}.")

    @property
    def used(self) -> Decide:
        """The criterion of the default threshold."""
        if self.min_precision:
            return "precision"
        if self.min_recall:
            return "recall"
        return self.decide

    @property
    def promise(self) -> tuple[Share, float] | None:
        """The metric that must hold on new pairs and its least value; ``None`` if none was requested."""
        if self.min_precision is not None:
            return "precision", self.min_precision
        if self.min_recall is None:
            return None
        return ("recall", self.min_recall)


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibrated(Shown):
    """A calibration with the data of its fit.

    Attributes:
        calibration: the calibration, fitted on all pairs.
        scores: scores of the model ``(n,)``.
        labels: labels of the pairs ``(n,)``.
        held_out: cross-validated calibrated scores ``(n,)``.
        before: the scores read as fractions of the scale ``(n,)``; ``None`` where some are outside [-1, 1].
        results: the errors, with those of ``before``, and accuracy and F1.
        intervals: 95 % intervals of precision and recall at the default threshold.
    """

    calibration: Calibration
    scores: Scores
    labels: Scores
    held_out: Scores
    before: Scores | None
    results: list[Result]
    intervals: Intervals = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the calibration and its errors, as lines of text."""
        fitted = self.calibration
        errors = self.calibration.errors
        low, high = fitted.scale
        lines = [
            f"{fitted.n} pairs of {fitted.data}, {fitted.map.kind} map to {low:g}-{high:g}",
            f"{'error':<9}{'score as it is':>15}{'calibrated, cross-validated':>29}",
        ]
        for name in ("ece", "mae", "brier"):
            if name in errors:
                before = "undefined"
                if f"{name}_before" in errors:
                    before = f"{errors[f'{name}_before']:.4f}"
                lines.append(f"{name:<9}{before:>15}{errors[name]:>29.4f}")
        if fitted.yes is None:
            lines.append("no threshold for yes and no: say from which label on a pair counts (`yes`)")
            return "\n".join(lines)
        lines += threshold_table(fitted, self.scores, (self.labels >= fitted.yes).astype(np.float64))
        quality = ", ".join(self._quality(name) for name in ("precision", "recall"))
        lines.append(f"threshold used: {fitted.threshold():.4f} (for {fitted.decide}); cross-validated {quality}")
        if fitted.least is not None:
            lines.append(
                f"on new pairs its {fitted.decide} is {percent(fitted.least)} or more, with {percent(CONFIDENCE)} "
                "confidence"
            )
        return "\n".join(lines)

    def _quality(self, name: str) -> str:
        text = f"{name} {100 * self.calibration.errors[name]:.1f} %"
        if name not in self.intervals:
            return text
        low, high = self.intervals[name]
        return f"{text} (95 % interval {100 * low:.1f} to {100 * high:.1f})"


def calibrate(
    model: Scorer, data: PairData, fingerprint: str, settings: CalibrationSettings | None = None
) -> Calibrated:
    """Fit a calibration of a model on labelled pairs; the errors are cross-validated.

    Args:
        model: gives the scores.
        data: the pairs.
        fingerprint: hash of the model's files; other models refuse the calibration.
        settings: options of the calibration.

    Raises:
        ConfigError: if the labels have no known scale, or ``yes`` does not divide it.
        DataError: if there are too few pairs, a score is not finite, labels do not rise with scores, or the precision
            or recall that is asked for cannot be promised.
    """
    settings = settings or CalibrationSettings()
    # What raises by the labels alone comes before the model runs.
    scale, yes = check_labels(data, settings)
    started = time.perf_counter()
    scores, labels = matching_vectors(model.scores(data.pairs()), data.labels)
    seconds = time.perf_counter() - started
    if is_constant(scores):
        raise DataError(f"A calibration needs scores that differ; the model gives {scores[0]:g} for every pair.")
    if message := describe_reversed_labels(model, data, scores):
        raise DataError(message)
    shape = settings.shape
    if shape == "auto":
        shape = "isotonic" if data.graded else "logistic"

    def fit(fold_scores: Scores, fold_labels: Scores) -> Isotonic | Logistic:
        return FITS[shape](fold_scores, fold_labels, scale)

    folds, apart = fold_numbers(data, settings.folds, settings.seed)
    if apart == "pairs":
        logger.warning(
            f"{data.name}: most pairs are connected by shared sentences, so that folds of the cross-validation share "
            "sentences, though no pair: its errors may be too small. Give `data` FILE with pairs of more sentences"
        )
    # The map that is kept is fitted on all pairs; its errors are those of maps that did not see the pair.
    held_out = held_out_values(fit, scores, labels, folds)
    before = read_as_share(scores, scale)
    decisions = _Decisions()
    if yes is not None:
        decisions = _decide(data, scores, (labels >= yes).astype(np.float64), folds, settings)
    errors = {**errors_of_values(held_out, before, labels, graded=data.graded), **decisions.errors}
    calibration = Calibration(
        map=fit(scores, labels),
        scale=scale,
        yes=yes,
        thresholds=decisions.thresholds,
        decide=settings.used,
        data=data.name,
        sha256=data.sha256,
        n=len(data),
        errors=errors,
        protocol=model.protocol,
        fingerprint=fingerprint,
        precisions=decisions.precisions,
        least=None if settings.promise is None else settings.promise[1],
        folds=settings.folds,
        seed=settings.seed,
    )
    protocol = f"{model.protocol}; {shape} map, {settings.folds}-fold cross-validation by {apart}, seed {settings.seed}"
    return Calibrated(
        calibration=calibration,
        scores=scores,
        labels=labels,
        held_out=held_out,
        before=before,
        results=_results(model, data, errors, decisions.intervals, protocol=protocol, seconds=seconds),
        intervals=decisions.intervals,
    )


def _results(
    model: Scorer, data: PairData, errors: Errors, intervals: Intervals, *, protocol: str, seconds: float
) -> list[Result]:
    """Return each error as a result, with its interval where it has one."""
    results = []
    for metric, error in errors.items():
        low, high = intervals.get(metric, (None, None))
        results.append(
            Result(
                task="calibration",
                dataset=data.name,
                split="",
                subset="all",
                metric=metric,
                value=error,
                n=len(data),
                protocol=protocol,
                model=model.name,
                seed=model.seed,
                seconds=seconds,
                low=low,
                high=high,
            )
        )
    return results


@dataclass(frozen=True)
class _Decisions:
    """Thresholds for yes and no, and their quality."""

    thresholds: dict[Decide, float] = field(default_factory=dict)
    precisions: tuple[tuple[float, float], ...] = ()
    errors: Errors = field(default_factory=dict)
    intervals: Intervals = field(default_factory=dict)


def _decide(data: PairData, scores: Scores, right: Scores, folds: Folds, settings: CalibrationSettings) -> _Decisions:
    """Return the thresholds for yes and no; PromiseError if the requested precision or recall cannot be promised."""
    pairs = scored_pairs(data, scores, right, folds)
    thresholds: dict[Decide, float] = {
        target: best_threshold(scores, right, target, dividing=True) for target in TARGETS
    }
    errors, intervals = decision_quality(scores, right, folds, settings.decide)
    # In any case: precisions that hold are stored, so that they can be asked for later.
    finder = PromiseFinder(pairs, "precision")
    precisions = {least: promise.threshold for least in PRECISIONS if (promise := finder.find(least)) is not None}
    if settings.promise is None:
        _warn_of_one_side(data, scores, right, settings.decide)
    else:
        metric, least = settings.promise
        promise = promised(pairs, metric, least, data.source)
        thresholds[metric] = promise.threshold
        errors |= {"precision": promise.precision, "recall": promise.recall}
        positives = float(pairs.right.sum())
        # The counts behind the intervals follow from the precision and recall that the promise found.
        hits = promise.recall * positives
        intervals = quality_intervals(hits, hits / promise.precision, positives)
        if metric == "precision":
            # So that it can be asked for later by its precision as well.
            precisions[least] = promise.threshold
    return _Decisions(thresholds, tuple(sorted(precisions.items())), errors, intervals)


def _warn_of_one_side(data: PairData, scores: Scores, right: Scores, target: ThresholdTarget) -> None:
    """Warn where giving all pairs the same answer is better than any threshold that divides them."""
    best = best_threshold(scores, right, target)
    # Infinite is a threshold below or above every score.
    if np.isfinite(best):
        return
    every = "yes" if best < 0 else "no"
    logger.warning(
        f"{data.name}: to call every pair a {every} has a better {target} than any threshold; the best that divides "
        "the pairs is kept. Choose the threshold for what you need, with `min_precision` or `min_recall`"
    )


def check_labels(data: PairData, settings: CalibrationSettings) -> tuple[Scale, float | None]:
    """Return the scale of the labels, and the label from which on a pair counts as a yes, if there is one.

    DataError or ConfigError if no calibration can be fitted with these labels; no model is needed for the check.
    """
    if len(data) < LEAST:
        few = f"{data.source}: a calibration needs at least {LEAST} pairs, and these are {len(data)}."
        raise DataError(f"{few} Give more labelled pairs that were not trained on: `data` FILE")
    if data.scale is None:
        raise ConfigError(
            f"{data.source}: the labels lie on no known scale. Give its ends, as in: `label_range` "
            f"{min(data.labels):g} {max(data.labels):g}"
        )
    yes = settings.yes
    if yes is None:
        if data.graded:
            _check_no_promise(data, settings)
            return data.scale, None
        yes = 1.0
    count = sum(label >= yes for label in data.labels)
    if min(count, len(data) - count) < LEAST_OF_EACH:
        raise DataError(
            f"{data.source}: yes and no need at least {LEAST_OF_EACH} pairs each; with labels from {number_text(yes)} "
            f"on taken for a yes, {count} are a yes and {len(data) - count} a no. Take another label (`yes`), or other "
            "pairs."
        )
    return data.scale, yes


def _check_no_promise(data: PairData, settings: CalibrationSettings) -> None:
    """Raise ConfigError if a precision or recall is requested for graded labels, without the label of a yes."""
    if settings.promise is not None and data.scale is not None:
        kind, least = settings.promise
        raise ConfigError(
            f"A {kind} is that of yes and no, and {data.source} has graded labels; received `min_{kind}` {least:g}. "
            f"Say from which label on a pair counts, as in: `yes` {sum(data.scale) / 2:g}"
        )
