"""Classes: how many of a user's texts does a logistic regression on their embeddings put into their class?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from samesense.data.sampling import shuffle_within_classes
from samesense.data.tuples.data import TupleData
from samesense.errors import DataError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task, join_clauses, timed, unit_embeddings
from samesense.metrics import mean_interval
from samesense.types import Floats, Scorer, TaskResult

FOLDS = 5

FEWEST = 20
"""Fewest texts of a figure, as of pairs."""

SEED = 0
"""Seed of the folds, so that all models are tested on the same ones."""

CLASSIFIER = "logistic regression of scikit-learn on embeddings of unit length, C = 1"

Rows = npt.NDArray[np.intp]


class ClassTask(Task):
    """Accuracy of a logistic regression on embeddings, on texts that it has not learnt from.

    Embeddings have unit length and the regression scikit-learn's default penalty, as in the head of SetFit: it learns
    from a few texts too, where the classifier of the transfer suite stops before it has learnt anything.
    """

    suite = "classes"
    embeds = True

    def __init__(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        folds: Sequence[Rows],
        dataset: str,
        *,
        description: str,
        left_out: str = "",
    ) -> None:
        """Take texts with their classes, and the rows of each fold to test; the others are learnt from.

        ``left_out`` says which rows of the source are no such texts. DataError if the texts or their
        classes are too few.
        """
        classes = len(set(labels))
        tested = sum(map(len, folds))
        if tested < FEWEST or classes < 2:
            raise DataError(
                f"{dataset}: accuracy takes {FEWEST} texts to test, of two classes or more; got {tested} of {classes}. "
                "Give more texts."
            )
        self.dataset = dataset
        self.note = join_clauses(f"{len(texts):,} texts of {classes} classes", left_out)
        self._texts = list(texts)
        self._labels = np.array(labels)
        self._folds = folds
        self._description = description

    @classmethod
    def cross_validated(cls, data: TupleData, dataset: str) -> ClassTask:
        """Return the task in which each text is tested once, in folds that have the same share of each class."""
        repeated = [label for label, count in Counter(data.labels).items() if count > 1]
        if len(repeated) < 2:
            raise DataError(
                f"{dataset}: of {len(data)} texts {len(data.class_names)} classes were read, and {len(repeated)} has "
                "two texts or more, so that nothing can be learnt of the others. Are these classes? `columns` names "
                "text and label."
            )
        by_class = shuffle_within_classes(np.array(data.labels), SEED)
        folds = [np.sort(by_class[number::FOLDS]) for number in range(FOLDS)]
        description = f"{FOLDS} stratified folds, shuffled with seed {SEED}"
        left_out = data.describe_left_out()
        return cls(data.anchors, data.labels, folds, dataset, description=description, left_out=left_out)

    @classmethod
    def split(cls, train: TupleData, test: TupleData, dataset: str) -> ClassTask:
        """Return the task in which the texts of one set are tested by what is learnt from another."""
        rows = np.arange(len(train), len(train) + len(test))
        return cls(
            [*train.anchors, *test.anchors],
            [*train.labels, *test.labels],
            [rows],
            dataset,
            description=f"learnt from {len(train):,} other texts",
            left_out=test.describe_left_out(),
        )

    def texts(self) -> Iterable[str]:
        """Return all texts, those that are learnt from too."""
        return self._texts

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return the accuracy, and as evidence whether each tested text was right."""
        self.check_embeds(candidate)
        correct, seconds = timed(candidate, self._texts, lambda: self._test(unit_embeddings(candidate, self._texts)))
        build = self.builder(candidate, seconds)
        description = f"{CLASSIFIER}; {self._description}"
        result = build.result("accuracy", float(correct.mean()), len(correct), description, mean_interval(correct))
        examples = [self._texts[row] for rows in self._folds for row in rows]
        return TaskResult([result], [build.evidence("accuracy", correct, examples)])

    def _test(self, embeddings: Floats) -> Floats:
        return np.concatenate([self._test_fold(embeddings, rows) for rows in self._folds])

    def _test_fold(self, embeddings: Floats, tested: Rows) -> Floats:
        """Return 1 for each tested row whose class is predicted by what the others teach, else 0."""
        from sklearn.linear_model import LogisticRegression

        learnt = np.setdiff1d(np.arange(len(embeddings)), tested)
        labels = self._labels[learnt]
        if len(set(labels.tolist())) < 2:
            # With a single class to learn from, it is what every text gets.
            predicted = np.full(len(tested), labels[0])
        else:
            predicted = LogisticRegression(max_iter=1000).fit(embeddings[learnt], labels).predict(embeddings[tested])
        correct: Floats = (predicted == self._labels[tested]).astype(np.float64)
        return correct


SUITE = Suite(
    task=ClassTask,
    data="your sentences with classes",
    figures="accuracy of a logistic regression on the embeddings, by five folds",
    metrics=("accuracy",),
    from_classes=ClassTask.cross_validated,
)
