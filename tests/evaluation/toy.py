"""Small labelled pairs, and models that score them by a rule."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from samesense.data.pairs.data import PairData
from tests.models import made_model


def pair_data(rows, subsets=None, scale=(0, 5), kind="scored", source="folder/toy.test.tsv"):
    """Labelled pairs out of (first, second, label)."""
    first, second = [row[0] for row in rows], [row[1] for row in rows]
    labels = [float(row[2]) for row in rows]
    return PairData(
        sentences1=first, sentences2=second, labels=labels, subsets=subsets, kind=kind, scale=scale, source=source,
        label_column="score",
    )  # fmt: skip


def candidate(score, encode=None):
    """A model whose score of a pair is ``score(first, second)``."""
    return made_model(lambda pairs: np.array([score(*pair) for pair in pairs], dtype=float), encode, seed=5)


def exact_minimum(features, classes, training, held, grid):
    """In place of SentEval's classifier: the minimum of its objective, by scikit-learn; few rows are enough."""
    x = np.hstack([features.astype(np.float64), np.ones((len(features), 1))])
    return np.array([[logistic(x[rows], classes[rows], l2).coef_.T for rows in training] for l2 in grid])


def logistic(x, y, l2):
    """A logistic regression without a bias of its own, its weights penalised by ``l2 / 2`` times their square."""
    strength = (1 if max(y) > 1 else 2) / (l2 * len(y))
    model = LogisticRegression(C=strength, fit_intercept=False, tol=1e-9, max_iter=1000, solver="newton-cholesky")
    return model.fit(x, y)


def hash_of(text):
    """A number that differs between most texts."""
    return sum(ord(sign) * (place + 1) for place, sign in enumerate(text)) % 101
