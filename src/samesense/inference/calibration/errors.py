"""How wrong a calibration is, on pairs that it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from samesense.data.formats.labels import Scale
from samesense.data.pairs.data import pair_key
from samesense.metrics.calibration import calibration_error, mean_absolute_error, mean_squared_error
from samesense.metrics.classification import Target, accuracy_at, best_threshold, f1_at
from samesense.types import Pair, Scores

Folds = npt.NDArray[np.intp]
"""Number of the fold of each pair ``(n,)``."""

TARGETS: tuple[Target, ...] = ("accuracy", "f1")


def fold_numbers(pairs: Sequence[Pair], labels: Scores, count: int, seed: int) -> Folds:
    """Return the fold of each pair ``(n,)``: folds of like size and with like labels.

    A pair that occurs again, in either order, is in the same fold. The order of the rows decides nothing. Pairs and
    labels are ``(n,)``.
    """
    keys = [pair_key(*pair) for pair in pairs]
    label_of: dict[Pair, float] = {}
    for key, label in zip(keys, labels.tolist(), strict=True):
        label_of[key] = max(label, label_of.get(key, label))
    mixed = sorted(label_of)
    np.random.default_rng(seed).shuffle(mixed)
    mixed.sort(key=label_of.__getitem__)
    fold_of = {key: place % count for place, key in enumerate(mixed)}
    return np.array([fold_of[key] for key in keys], dtype=np.intp)


def held_out_values(
    fit: Callable[[Scores, Scores], Callable[[Scores], Scores]], scores: Scores, labels: Scores, folds: Folds
) -> Scores:
    """Return each score through a map that was fitted on the other folds ``(n,)``."""
    values = np.empty_like(scores)
    for fold in np.unique(folds):
        held = folds == fold
        values[held] = fit(scores[~held], labels[~held])(scores[held])
    return values


def value_errors(values: Scores, labels: Scores, *, graded: bool) -> dict[str, float]:
    """Return how far values are from labels, in their unit: ``ece``, and ``mae`` if graded, else ``brier``."""
    name, error = ("mae", mean_absolute_error) if graded else ("brier", mean_squared_error)
    return {"ece": calibration_error(values, labels), name: error(values, labels)}


def decision_quality(scores: Scores, right: Scores, folds: Folds) -> dict[str, float]:
    """Return accuracy and F1, each with a threshold that was fitted for it on the other folds.

    All are ``(n,)``; ``right`` is 1 for a yes, 0 for a no.
    """
    called = {target: np.empty_like(scores) for target in TARGETS}
    for fold in np.unique(folds):
        held = folds == fold
        for target in TARGETS:
            called[target][held] = scores[held] >= best_threshold(scores[~held], right[~held], target)
    return {"accuracy": accuracy_at(called["accuracy"], right, 0.5), "f1": f1_at(called["f1"], right, 0.5)}


def read_as_share(scores: Scores, scale: Scale) -> Scores | None:
    """Return scores taken for shares of the scale, none below its end; ``None`` if they lie beyond -1 and 1."""
    if np.abs(scores).max() > 1:
        return None
    return scale[0] + (scale[1] - scale[0]) * np.clip(scores, 0, 1)
