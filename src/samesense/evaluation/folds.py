"""Folds of the transfer suite: rows to train on, to choose the penalty on and to test on; and the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.evaluation.senteval_adam import Classes, descend, predict

Rows = npt.NDArray[np.intp]

GRID = (1e-5, 1e-4, 1e-3, 1e-2)
"""Strengths of the penalty, as SentEval's classifier tries them."""

STOPPING = 0.05
"""Share of the training rows that stops the final classifier early where there is no dev."""

SEED = 1111
"""Of every shuffle into folds, as in SentEval."""


@dataclass(frozen=True)
class Fold:
    """One final classifier."""

    train: Rows
    test: Rows
    trials: Sequence[tuple[Rows, Rows]]  # how its penalty is chosen: rows to train on, and others to evaluate on


def nested_folds(classes: Classes, folds: int) -> list[Fold]:
    """Return outer folds, each with as many inner ones over its training rows.

    Classes are those of all rows ``(n,)``.
    """
    return [Fold(train, test, _trials(classes, train, folds)) for train, test in _stratified(classes, folds)]


def split_folds(classes: Classes, sizes: tuple[int, int, int], folds: int) -> list[Fold]:
    """Return the one fold of data that has a test part.

    Classes ``(n,)`` are those of train first, then of dev, then of test; without dev the penalty is chosen by folds of
    train.
    """
    train, dev, test = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2])
    return [Fold(train, test, [(train, dev)] if len(dev) else _trials(classes, train, folds))]


def cross_predict(
    features: npt.NDArray[np.floating], classes: Classes, folds: Sequence[Fold]
) -> tuple[Classes, list[float]]:
    """Predict the test rows of every fold with the penalty that does best in its trials.

    Best is the highest mean of the trials' accuracies, and of equal ones the first penalty. All classifiers of all
    folds are trained together. That of a trial is stopped early by the rows that the trial is evaluated on; the final
    one by dev, or without dev by 5 % of the training rows, which it is then not trained on. Features are ``(n, dim)``,
    classes ``(n,)``, counted from 0. Returned are the predicted class of each row ``(n,)``, -1 for rows that no fold
    tests, and each fold's chosen penalty.
    """
    parts = [part for fold in folds for part in (_stopped(fold), *fold.trials)]
    training, held = _marks(len(classes), [a for a, _ in parts]), _marks(len(classes), [b for _, b in parts])
    used = (training | held).any(axis=0)
    weights = descend(features[used], classes[used], training[:, used], held[:, used], GRID)
    predicted: Classes = np.full(len(classes), -1, dtype=np.intp)
    chosen = []
    problem = 0
    for fold in folds:
        accuracy = np.zeros(len(GRID))
        for trial, (_, tested) in enumerate(fold.trials, start=problem + 1):
            accuracy += [np.mean(predict(features[tested], one[trial]) == classes[tested]) for one in weights]
        best = int(np.argmax(accuracy))
        predicted[fold.test] = predict(features[fold.test], weights[best, problem])
        chosen.append(GRID[best])
        problem += 1 + len(fold.trials)
    return predicted, chosen


def _marks(rows: int, parts: Sequence[Rows]) -> npt.NDArray[np.bool_]:
    """Return which of all rows each part holds ``(parts, rows)``."""
    marks = np.zeros((len(parts), rows), dtype=bool)
    for mark, part in zip(marks, parts, strict=True):
        mark[part] = True
    return marks


def _stopped(fold: Fold) -> tuple[Rows, Rows]:
    """Return the rows that the final classifier is trained on, and those that stop it."""
    if len(fold.trials) == 1:
        return fold.trials[0][0], fold.trials[0][1]
    shuffled = np.random.default_rng(SEED).permutation(fold.train)
    cut = max(1, int(STOPPING * len(shuffled)))
    return shuffled[cut:], shuffled[:cut]


def _trials(classes: Classes, rows: Rows, folds: int) -> list[tuple[Rows, Rows]]:
    """Return the inner folds of some rows, as rows of the whole."""
    return [(rows[train], rows[held]) for train, held in _stratified(classes[rows], folds)]


def _stratified(classes: Classes, folds: int) -> list[tuple[Rows, Rows]]:
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(folds, shuffle=True, random_state=SEED).split(classes, classes))
