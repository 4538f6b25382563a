"""SentEval's classifier for the transfer suite: folds, training and predictions."""

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

# Adam: learning rate, decay of the first and second moments, epsilon
RATE = 1e-3
FIRST_DECAY = 0.9
SECOND_DECAY = 0.999
SMALL = 1e-8

BLOCK_ROWS = 4096

GRID = (1e-5, 1e-4, 1e-3, 1e-2)
"""Strengths of the L2 penalty that SentEval's classifier tries."""

STOPPING = 0.05
"""Share of the training rows that is held out to stop the final classifier early, if there is no dev."""

SEED = 1111
"""Seed of the training order and of every shuffle into folds, as in SentEval."""


def train_layers(
    features: npt.NDArray[np.floating], classes: Classes, training: Marks, held: Marks, grid: Sequence[float]
) -> Floats:
    """Train one linear layer for each set of rows and each weight decay, and keep its best state on held-out rows.

    Adam with coupled weight decay minimizes the cross-entropy of batches of about 64 rows. The held-out accuracy is
    computed after every four passes, and a problem ends at its sixth evaluation without improvement. All problems see
    the rows in the same order and learn only from their own, so that a step is two matrix products for all of them.

    Features are ``(n, dim)`` without a column for the bias, classes ``(n,)`` counted from 0, and ``training`` and
    ``held`` ``(problems, n)`` with at least one row for each problem. The returned weights are ``(len(grid), problems,
    dim + 1, logits)`` with the bias last; two classes have one logit.

    Source: Conneau and Kiela (2018), "SentEval", classifier without hidden layer in its test mode.
    Differs: SentEval has separate batches of exactly 64 rows for each problem. With two classes, one class has the
        negated weights of the other, which Adam preserves; in SentEval both start at random.
    """
    # The column of ones carries the bias.
    x = np.ones((len(features), features.shape[1] + 1), dtype=np.float32)
    x[:, :-1] = features
    class_count = int(classes.max()) + 1
    logits = class_count if class_count > 2 else 1
    source = np.random.default_rng(SEED)
    count = len(grid) * len(training)
    # With one logit, the initial margin of two classes then has the same variance as with two logits.
    bound = 1 / np.sqrt(features.shape[1] * (2 if logits == 1 else 1))
    # All problems start alike, so that only their rows and penalties make them differ.
    start = source.uniform(-bound, bound, (x.shape[1], 1, logits)).astype(np.float32)
    layers = _Layers(np.repeat(start, count, axis=1), np.repeat(np.array(grid, dtype=np.float32), len(training)))
    # Tiled where penalties are repeated: a problem's column is that of its penalty and its rows.
    own_rows = np.tile(training.T.astype(np.float32), len(grid))
    held_rows = np.tile(held.T, len(grid))
    best = layers.weights.copy()
    best_accuracy = np.full(count, -1.0)
    running = np.arange(count)  # problems that have not ended
    misses = np.zeros(count, dtype=int)
    # A batch is drawn from all rows, and each problem learns from its share of them.
    size = max(1, round(BATCH / float(training.mean())))
    passes = 0
    # As in SentEval's loop, `<=` allows one round beyond the maximum.
    while len(running) and passes <= MOST_PASSES:
        for _ in range(PASSES):
            order = source.permutation(len(x))
            for first in range(0, len(x), size):
                rows = order[first : first + size]
                layers.step(_gradient(x[rows], classes[rows], own_rows[rows], layers.weights))
        passes += PASSES
        accuracy = _accuracies(x, classes, held_rows, layers.weights)
        improved = accuracy > best_accuracy[running]
        best[:, running[improved]] = layers.weights[:, improved]
        best_accuracy[running[improved]] = accuracy[improved]
        misses[running[~improved]] += 1
        unfinished = misses[running] <= TENACITY
        running = running[unfinished]
        own_rows = own_rows[:, unfinished]
        held_rows = held_rows[:, unfinished]
        layers.keep(unfinished)
    by_penalty = best.reshape(x.shape[1], len(grid), len(training), logits).transpose(1, 2, 0, 3)
    return by_penalty.astype(np.float64)


def predict(features: npt.NDArray[np.floating], weights: Floats) -> Classes:
    """Return the most probable class of each row ``(n,)``; of equally probable ones the first.

    Features are ``(n, dim)`` as in training, weights ``(dim + 1, logits)``.
    """
    scores = features.astype(np.float64) @ weights[:-1] + weights[-1]
    if weights.shape[1] > 1:
        predicted: Classes = scores.argmax(axis=1)
    else:
        predicted = (scores[:, 0] > 0).astype(np.intp)
    return predicted


class _Layers:
    """Weights ``(dim + 1, problems, logits)`` with their Adam state and the weight decay ``(problems,)``."""

    def __init__(self, weights: Narrow, decay: Narrow) -> None:
        self.weights = weights
        self.decay = decay[:, None]
        self.first = np.zeros_like(weights)
        self.second = np.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: Narrow) -> None:
        """Update all weights by one step of Adam; ``gradient`` is overwritten."""
        self.steps += 1
        # Coupled decay passes through both moments, as in torch's Adam and unlike AdamW.
        gradient += self.decay * self.weights
        self.first += (1 - FIRST_DECAY) * (gradient - self.first)
        # second += (1 - decay) * (gradient² - second), in place to spare a temporary array.
        gradient *= gradient
        gradient -= self.second
        gradient *= 1 - SECOND_DECAY
        self.second += gradient
        size = np.sqrt(self.second, out=gradient)
        # The correction of the second moment's bias is applied to its root, as in torch.
        size *= 1 / (1 - SECOND_DECAY**self.steps) ** 0.5
        size += SMALL
        self.weights -= RATE / (1 - FIRST_DECAY**self.steps) * self.first / size

    def keep(self, unfinished: Marks) -> None:
        """Keep only the problems that go on."""
        if not unfinished.all():
            self.decay = self.decay[unfinished]
            self.weights, self.first, self.second = (
                array[:, unfinished] for array in (self.weights, self.first, self.second)
            )


def _gradient(x: Narrow, classes: Classes, own_rows: Narrow, weights: Narrow) -> Narrow:
    """Return the gradient of each problem's mean cross-entropy over its rows of a batch, shaped like the weights."""
    margins = (x @ weights.reshape(len(weights), -1)).reshape(len(x), *weights.shape[1:])
    if weights.shape[2] == 1:
        slope = 0.5 + 0.5 * np.tanh(margins)  # the other class has the negated margin
        slope[classes == 1] -= 1
    else:
        slope = np.exp(margins - margins.max(axis=2, keepdims=True))
        slope /= slope.sum(axis=2, keepdims=True)
        slope[np.arange(len(x)), :, classes] -= 1
    # A batch may have no row of a problem, whose gradient is then 0.
    slope *= (own_rows / np.maximum(own_rows.sum(axis=0), 1))[:, :, None]
    gradient: Narrow = (x.T @ slope.reshape(len(x), -1)).reshape(weights.shape)
    return gradient


def _accuracies(x: Narrow, classes: Classes, held_rows: Marks, weights: Narrow) -> Floats:
    """Return the accuracy of each problem on its held-out rows ``(problems,)``."""
    correct = np.zeros(weights.shape[1])
    # In blocks, as the margins are those of all problems at once.
    for first in range(0, len(x), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        margins = (x[rows] @ weights.reshape(len(weights), -1)).reshape(-1, *weights.shape[1:])
        if weights.shape[2] == 1:
            predicted = margins[..., 0] > 0
        else:
            predicted = margins.argmax(axis=2)
        correct += ((predicted == classes[rows, None]) & held_rows[rows]).sum(axis=0)
    accuracies: Floats = correct / held_rows.sum(axis=0)
    return accuracies


@dataclass(frozen=True)
class Fold:
    """Rows of one final classifier, and of the trials that choose its penalty."""

    train: Rows
    test: Rows
    trials: Sequence[tuple[Rows, Rows]]  # for each trial, rows to train on and rows to evaluate on


def nested_folds(classes: Classes, folds: int) -> list[Fold]:
    """Return ``folds`` outer folds, each with the same number of inner folds over its training rows.

    Classes are those of all rows ``(n,)``.
    """
    return [Fold(train, test, _trials(classes, train, folds)) for train, test in _stratified(classes, folds)]


def split_folds(classes: Classes, sizes: tuple[int, int, int], folds: int) -> list[Fold]:
    """Return the single fold of data with a test split.

    Classes ``(n,)`` are those of train, dev and test, in this order; without dev the penalty is chosen by folds of
    train.
    """
    train, dev, test = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2])
    return [Fold(train, test, [(train, dev)] if len(dev) else _trials(classes, train, folds))]


def cross_predict(
    features: npt.NDArray[np.floating], classes: Classes, folds: Sequence[Fold]
) -> tuple[Classes, list[float]]:
    """Predict the test rows of every fold with the penalty that does best in its trials.

    The best penalty has the highest mean accuracy over the trials; of equal ones the first. All classifiers of all
    folds are trained together. Early stopping of a trial uses the rows that the trial is evaluated on; that of the
    final classifier uses dev, or without dev 5 % of the training rows, which are then not trained on.

    Features are ``(n, dim)``, classes ``(n,)``, counted from 0. Returns the predicted class of each row ``(n,)``, -1
    for rows that no fold tests, and the chosen penalty of each fold.
    """
    # For each fold first the final classifier, then its trials.
    problems = [rows for fold in folds for rows in (_early_stopping_rows(fold), *fold.trials)]
    training = _marks(len(classes), [train for train, _ in problems])
    held = _marks(len(classes), [held_out for _, held_out in problems])
    # Rows that are only tested would make every pass longer for nothing.
    used = (training | held).any(axis=0)
    weights = train_layers(features[used], classes[used], training[:, used], held[:, used], GRID)
    predicted: Classes = np.full(len(classes), -1, dtype=np.intp)
    penalties = []
    problem = 0
    for fold in folds:
        accuracy = np.zeros(len(GRID))
        for trial, (_, tested) in enumerate(fold.trials, start=problem + 1):
            accuracy += [
                np.mean(predict(features[tested], penalized[trial]) == classes[tested]) for penalized in weights
            ]
        best = int(np.argmax(accuracy))
        predicted[fold.test] = predict(features[fold.test], weights[best, problem])
        penalties.append(GRID[best])
        problem += 1 + len(fold.trials)
    return predicted, penalties


def _marks(rows: int, members: Sequence[Rows]) -> npt.NDArray[np.bool_]:
    """Return a boolean mask over all rows for each list of rows, ``(len(members), rows)``."""
    marks = np.zeros((len(members), rows), dtype=bool)
    for mark, member_rows in zip(marks, members, strict=True):
        mark[member_rows] = True
    return marks


def _early_stopping_rows(fold: Fold) -> tuple[Rows, Rows]:
    """Return the rows that the final classifier is trained on, and those for its early stopping."""
    # A single trial is a given dev split, which stops the final classifier too.
    if len(fold.trials) == 1:
        return fold.trials[0][0], fold.trials[0][1]
    shuffled = np.random.default_rng(SEED).permutation(fold.train)
    count = max(1, int(STOPPING * len(shuffled)))
    return shuffled[count:], shuffled[:count]


def _trials(classes: Classes, rows: Rows, folds: int) -> list[tuple[Rows, Rows]]:
    """Return the inner folds of these rows, as positions in the whole data."""
    return [(rows[train], rows[held]) for train, held in _stratified(classes[rows], folds)]


def _stratified(classes: Classes, folds: int) -> list[tuple[Rows, Rows]]:
    # scikit-learn takes a second to load, and other suites do not need it.
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(folds, shuffle=True, random_state=SEED).split(classes, classes))
