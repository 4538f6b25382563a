"""Classes: how many of a user's texts does a logistic regression on their embeddings put into their class?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from samesense.data.tuples.data import TupleData
from samesense.errors import DataError, ModelError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task, encodes_all, unit_embeddings
from samesense.metrics import mean_interval
from samesense.types import Floats, Scorer, TaskResult

FOLDS = 5

FEWEST = 20
"""Fewest texts of a figure, as of pairs."""

SEED = 0
"""Seed of the folds, so that all models are tested on the same ones."""

CLASSIFIER = "logistic regression of scikit-learn on embeddings of unit length, C = 1"

Numbers = npt.NDArray[np.intp]


class ClassTask(Task):
    """Accuracy of a logistic regression on embeddings, on texts that it has not learnt from.

    Embeddings have unit length and the regression scikit-learn's default penalty, as in the head of SetFit: it learns
    from a few texts too, where the classifier of the transfer suite stops before it has learnt anything.
    """

    suite = "classes"
    embeds = True

    def __init__(self, data: TupleData, folds: Sequence[Numbers], dataset: str, *, description: str) -> None:
        """Take texts with classes, and the rows of each fold to test; the regression learns from all other rows.

        DataError if the texts or their classes are too few.
        """
        classes = data.classes or {}
        self.dataset = dataset
        self.note = f"{len(data):,} texts of {len(set(classes.values()))} classes"
        self._texts = data.anchors
        self._classes = np.array([classes[text] for text in data.anchors], dtype=np.intp)
        self._folds = folds
        self._description = description
        tested = sum(map(len, folds))
        if tested < FEWEST or len(set(classes.values())) < 2:
            raise DataError(
                f"{dataset}: accuracy takes {FEWEST} texts to test, of two classes or more; got {tested} of "
                f"{len(set(classes.values()))}. Give more texts."
            )

    @classmethod
    def cross_validated(cls, data: TupleData, dataset: str) -> ClassTask:
        """Return the task in which each text is tested once, in folds that have the same share of each class."""
        order = np.random.default_rng(SEED).permutation(len(data))
        classes = np.array([(data.classes or {})[text] for text in data.anchors], dtype=np.intp)
        by_class = order[np.argsort(classes[order], kind="stable")]
        folds = [np.sort(by_class[number::FOLDS]) for number in range(FOLDS)]
        return cls(data, folds, dataset, description=f"{FOLDS} stratified folds, shuffled with seed {SEED}")

    @classmethod
    def split(cls, data: TupleData, tested: Sequence[str], dataset: str) -> ClassTask:
        """Return the task in which ``tested``, some of the texts, are tested by what is learnt from the others."""
        held_out = set(tested)
        rows = np.array([row for row, text in enumerate(data.anchors) if text in held_out], dtype=np.intp)
        return cls(data, [rows], dataset, description=f"learnt from the other {len(data) - len(rows):,} texts")

    def texts(self) -> Iterable[str]:
        """Return all texts, those that are learnt from too."""
        return self._texts

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return the accuracy, and as evidence whether each tested text was right."""
        if not candidate.embeds:
            raise ModelError(f"Classes need embeddings, and {candidate.name} only scores pairs. Leave it out here.")
        started = time.perf_counter()
        encoded = encodes_all(candidate, self._texts)
        embeddings = unit_embeddings(candidate, self._texts)
        correct = np.concatenate([self._is_right(embeddings, rows) for rows in self._folds])
        seconds = time.perf_counter() - started
        build = self.builder(candidate, seconds if encoded else None)
        description = f"{CLASSIFIER}; {self._description}"
        result = build.result("accuracy", float(correct.mean()), len(correct), description, mean_interval(correct))
        examples = [self._texts[row] for rows in self._folds for row in rows]
        return TaskResult([result], [build.evidence("accuracy", correct, examples)])

    def _is_right(self, embeddings: Floats, tested: Numbers) -> Floats:
        """Return 1 for each tested row whose class is predicted, else 0."""
        from sklearn.linear_model import LogisticRegression

        learnt = np.setdiff1d(np.arange(len(embeddings)), tested)
        classes = self._classes
        if len(set(classes[learnt].tolist())) < 2:
            # With a single class to learn from, it is what every text gets.
            predicted = np.full(len(tested), classes[learnt[0]])
        else:
            head = LogisticRegression(max_iter=1000).fit(embeddings[learnt], classes[learnt])
            predicted = head.predict(embeddings[tested])
        correct: Floats = (predicted == classes[tested]).astype(np.float64)
        return correct


SUITE = Suite(
    task=ClassTask,
    data="your sentences with classes",
    figures="accuracy of a logistic regression on the embeddings, by five folds",
    metrics=("accuracy",),
    from_classes=ClassTask.cross_validated,
)
