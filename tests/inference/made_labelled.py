"""Labelled pairs whose texts say their score, and a model that reads it."""

import numpy as np

from samesense.data.pairs.data import PairData
from tests.models import made_model


def labelled(scores, labels, kind="scored", scale=(0.0, 5.0)):
    return PairData(
        sentences1=[f"{score!r} {index}" for index, score in enumerate(np.asarray(scores, dtype=float).tolist())],
        sentences2=[f"other {index}" for index in range(len(labels))],
        labels=[float(label) for label in labels],
        subsets=None,
        kind=kind,
        scale=scale,
        source="made.tsv",
        label_column="score",
        dropped=0,
        dropped_unlabelled=0,
    )


def reader(change=lambda score: score):
    def score(pairs):
        return np.array([change(float(first.split()[0])) for first, _ in pairs])

    return made_model(score, name="reader", protocol="reads the score")


def graded(n=600, digits=9, seed=0):
    """Scores in [-0.2, 1], and labels 0 to 5 that rise with them, with noise."""
    random = np.random.default_rng(seed)
    scores = np.round(random.uniform(-0.2, 1, n), digits)
    return scores, np.clip(np.round(5 * np.clip(scores, 0, 1) ** 2 + random.normal(0, 0.7, n), 1), 0, 5)


def binary(n=600, digits=9, seed=0):
    """Scores in [0, 1], and labels 0 and 1 drawn with a probability that rises with them."""
    random = np.random.default_rng(seed)
    scores = np.round(random.uniform(0, 1, n), digits)
    return scores, (random.uniform(size=n) < 1 / (1 + np.exp(4 - 7 * scores))).astype(float)
