"""Which rows teach, which choose the penalty, which test; and what the probes then predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.evaluation.probe import Classes, fit_probes, predict
from samesense.evaluation.senteval_adam import descend

Classifier = Literal["senteval", "minimum"]
"""``senteval``: Adam with early stopping, as published figures are made; ``minimum``: the objective's very minimum."""

Rows = npt.NDArray[np.intp]

GRID = (1e-5, 1e-4, 1e-3, 1e-2)
"""Strengths of the penalty, as SentEval's classifier tries them."""

STOPPING = 0.05
"""Share of the training rows that stops the final classifier of SentEval where there is no dev."""

SEED = 1111
"""Of every shuffle into folds, as in SentEval."""


@dataclass(frozen=True)
class Fold:
    """One final probe.

    Attributes:
        train: the rows that it learns from.
        test: the rows that it is tested on.
        trials: how its penalty is chosen: rows to learn from, and others to be judged on.
    """

    train: Rows
    test: Rows
    trials: Sequence[tuple[Rows, Rows]]


def nested_folds(classes: Classes, folds: int) -> list[Fold]:
    """Return outer folds, each with as many inner ones over its training rows.

    Args:
        classes: class of each row ``(n,)``.
        folds: number of outer and of inner folds.
    """
    return [Fold(train, test, _trials(classes, train, folds)) for train, test in _stratified(classes, folds)]


def split_folds(classes: Classes, sizes: tuple[int, int, int], folds: int) -> list[Fold]:
    """Return the one fold of data that has a test part.

    Args:
        classes: class of each row, those of train first, then of dev, then of test ``(n,)``.
        sizes: numbers of rows of train, dev and test; without dev the penalty is chosen by folds of train.
        folds: number of these folds.
    """
    train, dev, test = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2])
    return [Fold(train, test, [(train, dev)] if len(dev) else _trials(classes, train, folds))]


def cross_predict(
    features: npt.NDArray[np.floating],
    classes: Classes,
    folds: Sequence[Fold],
    classifier: Classifier = "senteval",
    grid: Sequence[float] = GRID,
) -> tuple[Classes, list[float]]:
    """Predict the test rows of every fold with the penalty that does best in its trials.

    Best is the highest mean of the trials' accuracies, and of equal ones the first penalty. All probes of all folds
    are solved together. SentEval's classifier stops by the rows that a trial is judged on; the final one by dev, or
    without dev by 5 % of the training rows, which it then does not learn from.

    Args:
        features: features ``(n, dim)``.
        classes: class of each row ``(n,)``, counted from 0.
        folds: what to learn and to predict.
        classifier: how the probes learn.
        grid: strengths of the penalty.

    Returns:
        The predicted class of each row ``(n,)``, -1 for rows that no fold tests, and each fold's chosen penalty.

    Raises:
        ModelError: if a probe cannot be solved.
    """
    if classifier == "senteval":
        parts = [part for fold in folds for part in (_stopped(fold), *fold.trials)]
    else:
        parts = [part for fold in folds for part in ((fold.train, fold.test), *fold.trials)]
    training, held = _marks(len(classes), [a for a, _ in parts]), _marks(len(classes), [b for _, b in parts])
    if classifier == "senteval":
        used = (training | held).any(axis=0)
        weights = descend(features[used], classes[used], training[:, used], held[:, used], grid)
    else:
        used = training.any(axis=0)
        weights = fit_probes(features[used], classes[used], training[:, used], grid)
    predicted: Classes = np.full(len(classes), -1, dtype=np.intp)
    chosen = []
    problem = 0
    for fold in folds:
        accuracy = np.zeros(len(grid))
        for trial, (_, judged) in enumerate(fold.trials, start=problem + 1):
            accuracy += [np.mean(predict(features[judged], one[trial]) == classes[judged]) for one in weights]
        best = int(np.argmax(accuracy))
        predicted[fold.test] = predict(features[fold.test], weights[best, problem])
        chosen.append(grid[best])
        problem += 1 + len(fold.trials)
    return predicted, chosen


def _marks(rows: int, parts: Sequence[Rows]) -> npt.NDArray[np.bool_]:
    """Return which of all rows each part holds ``(parts, rows)``."""
    marks = np.zeros((len(parts), rows), dtype=bool)
    for mark, part in zip(marks, parts, strict=True):
        mark[part] = True
    return marks


def _stopped(fold: Fold) -> tuple[Rows, Rows]:
    """Return the rows that the final probe learns from, and those that stop it."""
    if len(fold.trials) == 1:
        return fold.trials[0][0], fold.trials[0][1]
    shuffled = np.random.default_rng(SEED).permutation(fold.train)
    cut = max(1, int(STOPPING * len(shuffled)))
    return shuffled[cut:], shuffled[:cut]


def _trials(classes: Classes, rows: Rows, folds: int) -> list[tuple[Rows, Rows]]:
    """Return the inner folds of some rows, as rows of the whole."""
    return [(rows[learnt], rows[held]) for learnt, held in _stratified(classes[rows], folds)]


def _stratified(classes: Classes, folds: int) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(folds, shuffle=True, random_state=SEED).split(classes, classes))
