"""SentEval's classifier for many problems at once: Adam with early stopping, all problems in step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.intp]
Narrow = npt.NDArray[np.float32]
Marks = npt.NDArray[np.bool_]

BATCH = 64
PASSES = 4
"""Passes over the rows between two evaluations on the held-out rows."""

TENACITY = 5
"""Evaluations without improvement that are tolerated, counted over the whole run."""

MOST_PASSES = 200
SEED = 1111
RATE, FIRST_DECAY, SECOND_DECAY, SMALL = 1e-3, 0.9, 0.999, 1e-8
BLOCK_ROWS = 4096


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
