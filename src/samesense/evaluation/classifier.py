"""The classifier of the transfer suite, which is SentEval's: its folds, its training, and the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.types import Floats

Rows = npt.NDArray[np.intp]
Classes = npt.NDArray[np.intp]
Narrow = npt.NDArray[np.float32]
Marks = npt.NDArray[np.bool_]

BATCH = 64
PASSES = 4
"""Passes over the rows between two evaluations on the held-out rows."""

TENACITY = 5
"""Evaluations without improvement that are tolerated, counted over the whole run."""

MOST_PASSES = 200
RATE, FIRST_DECAY, SECOND_DECAY, SMALL = 1e-3, 0.9, 0.999, 1e-8
BLOCK_ROWS = 4096

GRID = (1e-5, 1e-4, 1e-3, 1e-2)
"""Strengths of the penalty, as SentEval's classifier tries them."""

STOPPING = 0.05
"""Share of the training rows that stops the final classifier early where there is no dev."""

SEED = 1111
"""Of the order of training and of every shuffle into folds, as in SentEval."""


def descend(
    features: npt.NDArray[np.floating], classes: Classes, training: Marks, held: Marks, grid: Sequence[float]
) -> Floats:
    """Train one linear layer for each set of rows and each weight decay, and keep its best state on held-out rows.

    Adam with coupled weight decay follows the cross-entropy of batches of about 64 rows. After every four passes the
    held-out accuracy is computed, and at the sixth evaluation in total without improvement a problem ends. All problems
    go through the rows in one order, each learning from those that are its own, so that a step is two products of
    matrices for all of them. Features are ``(n, dim)``, without a column for the bias, classes ``(n,)``, counted from
    0, ``training`` and ``held`` ``(problems, n)`` with a row or more each. Weights are ``(len(grid), problems, dim + 1,
    logits)``, the bias last; two classes have one logit.

    Source: Conneau and Kiela (2018), "SentEval", classifier without hidden layer in its test mode.
    Differs: there each problem has batches of its own, of exactly 64 rows. Of two classes, one has the weights of the
    other negated, as Adam keeps them when they start so; there both start at random.
    """
    x = np.ones((len(features), features.shape[1] + 1), dtype=np.float32)
    x[:, :-1] = features
    many = int(classes.max()) + 1
    logits = many if many > 2 else 1
    source = np.random.default_rng(SEED)
    count = len(grid) * len(training)
    bound = 1 / np.sqrt(features.shape[1] * (2 if logits == 1 else 1))  # the margin of two classes varies as there
    start = source.uniform(-bound, bound, (x.shape[1], 1, logits)).astype(np.float32)
    layers = _Layers(np.repeat(start, count, axis=1), np.repeat(np.array(grid, dtype=np.float32), len(training)))
    mine = np.tile(training.T.astype(np.float32), len(grid))
    watched = np.tile(held.T, len(grid))
    best, best_accuracy = layers.weights.copy(), np.full(count, -1.0)
    running, misses = np.arange(count), np.zeros(count, dtype=int)
    size = max(1, round(BATCH / float(training.mean())))
    passes = 0
    while len(running) and passes <= MOST_PASSES:
        for _ in range(PASSES):
            order = source.permutation(len(x))
            for first in range(0, len(x), size):
                rows = order[first : first + size]
                layers.step(_gradient(x[rows], classes[rows], mine[rows], layers.weights))
        passes += PASSES
        accuracy = _accuracies(x, classes, watched, layers.weights)
        better = accuracy > best_accuracy[running]
        best[:, running[better]] = layers.weights[:, better]
        best_accuracy[running[better]] = accuracy[better]
        misses[running[~better]] += 1
        going = misses[running] <= TENACITY
        running, mine, watched = running[going], mine[:, going], watched[:, going]
        layers.keep(going)
    by_penalty = best.reshape(x.shape[1], len(grid), len(training), logits).transpose(1, 2, 0, 3)
    return by_penalty.astype(np.float64)


def predict(features: npt.NDArray[np.floating], weights: Floats) -> Classes:
    """Return the most probable class of each row ``(n,)``; of equally probable ones the first.

    Features are ``(n, dim)``, as they were fitted, weights ``(dim + 1, logits)``.
    """
    scores = features.astype(np.float64) @ weights[:-1] + weights[-1]
    chosen: Classes = scores.argmax(axis=1) if weights.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)
    return chosen


class _Layers:
    """Weights ``(dim + 1, problems, logits)`` under Adam, with the weight decay ``(problems,)`` of each problem."""

    def __init__(self, weights: Narrow, decay: Narrow) -> None:
        self.weights, self.decay = weights, decay[:, None]
        self.first, self.second = np.zeros_like(weights), np.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: Narrow) -> None:
        """Move all weights by one step of Adam; ``gradient`` is overwritten."""
        self.steps += 1
        gradient += self.decay * self.weights
        self.first += (1 - FIRST_DECAY) * (gradient - self.first)
        gradient *= gradient
        gradient -= self.second
        gradient *= 1 - SECOND_DECAY
        self.second += gradient
        size = np.sqrt(self.second, out=gradient)
        size *= 1 / (1 - SECOND_DECAY**self.steps) ** 0.5
        size += SMALL
        self.weights -= RATE / (1 - FIRST_DECAY**self.steps) * self.first / size

    def keep(self, going: Marks) -> None:
        """Leave out the problems that have ended."""
        if not going.all():
            self.decay = self.decay[going]
            self.weights, self.first, self.second = (
                array[:, going] for array in (self.weights, self.first, self.second)
            )


def _gradient(x: Narrow, classes: Classes, mine: Narrow, weights: Narrow) -> Narrow:
    """Return the gradient of each problem's mean cross-entropy over its rows of a batch, in the shape of weights."""
    margins = (x @ weights.reshape(len(weights), -1)).reshape(len(x), *weights.shape[1:])
    if weights.shape[2] == 1:
        slope = 0.5 + 0.5 * np.tanh(margins)  # the other class has the negated margin
        slope[classes == 1] -= 1
    else:
        slope = np.exp(margins - margins.max(axis=2, keepdims=True))
        slope /= slope.sum(axis=2, keepdims=True)
        slope[np.arange(len(x)), :, classes] -= 1
    slope *= (mine / np.maximum(mine.sum(axis=0), 1))[:, :, None]
    gradient: Narrow = (x.T @ slope.reshape(len(x), -1)).reshape(weights.shape)
    return gradient


def _accuracies(x: Narrow, classes: Classes, watched: Marks, weights: Narrow) -> Floats:
    """Return the accuracy of each problem on its held-out rows ``(problems,)``."""
    right = np.zeros(weights.shape[1])
    for first in range(0, len(x), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        margins = (x[rows] @ weights.reshape(len(weights), -1)).reshape(-1, *weights.shape[1:])
        chosen = margins[..., 0] > 0 if weights.shape[2] == 1 else margins.argmax(axis=2)
        right += ((chosen == classes[rows, None]) & watched[rows]).sum(axis=0)
    accuracies: Floats = right / watched.sum(axis=0)
    return accuracies


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
