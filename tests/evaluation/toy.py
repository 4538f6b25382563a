"""Small labelled pairs, and models that score them by a rule."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from samesense.data.pairs.data import PairData
from samesense.errors import ModelError
from samesense.evaluation.sts import StsTask
from samesense.types import TaskResult
from tests.conftest import WORDS
from tests.models import made_model


def pair_data(rows, subsets=None, scale=(0, 5), kind="scored", source="folder/toy.test.tsv"):
    """Return labelled pairs made of (first, second, label)."""
    first = [row[0] for row in rows]
    second = [row[1] for row in rows]
    labels = [float(row[2]) for row in rows]
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=labels,
        subsets=subsets,
        kind=kind,
        scale=scale,
        source=source,
        label_column="score",
    )


def candidate(score, encode=None):
    """A model whose score of a pair is ``score(first, second)``."""
    return made_model(lambda pairs: np.array([score(*pair) for pair in pairs], dtype=float), encode, seed=5)


def counted(texts):
    """Embed a text by how often each known word stands in it."""
    return np.array([[1.0 + text.split().count(word) for word in WORDS] for text in texts], dtype=np.float32)


class Overlap:
    """A task on a few pairs, judged by the real STS evaluation."""

    suite = "sts"
    dataset = "toy.test"

    def __init__(self, embeds=False, dataset="toy.test"):
        self.embeds, self.dataset = embeds, dataset
        rng = np.random.default_rng(0)
        self.pairs = [(" ".join(rng.choice(WORDS, 5)), " ".join(rng.choice(WORDS, 5))) for _ in range(30)]
        self.labels = [float(len(set(a.split()) & set(b.split()))) for a, b in self.pairs]

    def texts(self):
        return [text for pair in self.pairs for text in pair]

    def evaluate(self, candidate):
        data = pair_data([(*pair, label) for pair, label in zip(self.pairs, self.labels, strict=True)])
        return TaskResult(StsTask(data, dataset=self.dataset, intervals=False).evaluate(candidate).results)


class Embedder:
    """Encodes, and records its calls."""

    def __init__(self, fails=""):
        self.calls, self.fails = [], fails

    def __call__(self, texts):
        self.calls.append(list(texts))
        if self.fails:
            raise ModelError(self.fails)
        return counted(texts)


def remembering(name, encode, seed=None):
    """A model that embeds, and encodes no text twice."""
    model = made_model(encode=encode, name=name, protocol="words", seed=seed)
    model.remember()
    return model


def exact_minimum(features, classes, training, held, grid):
    """Replaces SentEval's classifier by the minimum of its objective, from scikit-learn; few rows are enough."""
    x = np.hstack([features.astype(np.float64), np.ones((len(features), 1))])
    return np.array([[logistic(x[rows], classes[rows], l2).coef_.T for rows in training] for l2 in grid])


def logistic(x, y, l2):
    """A logistic regression without a bias of its own, its weights penalised by ``l2 / 2`` times their square."""
    strength = (1 if max(y) > 1 else 2) / (l2 * len(y))
    model = LogisticRegression(C=strength, fit_intercept=False, tol=1e-9, max_iter=1000, solver="newton-cholesky")
    return model.fit(x, y)


def hash_of(text):
    """Return a number that differs between most texts."""
    return sum(ord(sign) * (position + 1) for position, sign in enumerate(text)) % 101
