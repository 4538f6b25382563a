"""Transfer: can a linear classifier predict the label of a sentence, or of a pair, from its embedding?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.data.benchmarks.catalogue import WHOLE, Benchmark
from samesense.encoder.cosine import checked_rows
from samesense.errors import DataError
from samesense.evaluation.classifier import GRID, SEED, Fold, cross_predict, nested_folds, split_folds
from samesense.evaluation.suite import Average, BenchmarkSplits, Suite
from samesense.evaluation.task import Task, timed
from samesense.metrics import mean_interval
from samesense.types import Encode, Pair, Scorer, TaskResult

Labels = Sequence[int | float | str]
Labelled = tuple[Sequence[str], Labels]
LabelledPairs = tuple[Sequence[Pair], Labels]

CLASSIFIER = "logistic regression by Adam with early stopping, as SentEval"
FOLDS = 10
FAST_FOLDS = 5


class TransferTask(Task):
    """SentEval's transfer protocol on one data set: a linear classifier is trained on frozen embeddings.

    The classifier is that of SentEval, Adam with early stopping, so that figures are comparable with published ones.
    With a few hundred rows it hardly learns before it stops.

    Source: Conneau and Kiela (2018), "SentEval: an evaluation toolkit for universal sentence representations".
    Differs: accuracies are averaged unrounded, whereas SentEval first rounds that of each fold to two decimals. For
        differences of the classifier see :func:`~samesense.evaluation.classifier.train_layers`.
    """

    suite = "transfer"
    embeds = True

    def __init__(
        self,
        dataset: str,
        examples: Sequence[str] | Sequence[Pair],
        labels: Labels,
        *,
        sizes: tuple[int, int, int] | None = None,
        paired: bool = False,
        fast: bool = False,
        note: str = "",
    ) -> None:
        """Take rows as they are; :meth:`nested`, :meth:`split` and :meth:`pairs` are the usual constructors.

        The examples ``(n,)`` are texts, which may be empty, or ``paired`` texts with labels 0 and 1. ``sizes`` are the
        numbers of rows of train, dev and test, in this order; ``None`` means nested folds over all rows. DataError if a
        label is missing or of a class that train lacks, or a class has too few rows for the folds.
        """
        self.dataset = dataset
        self.note = note
        self._examples = examples
        self._sizes = sizes
        self._paired = paired
        self._folds = FAST_FOLDS if fast else FOLDS
        train_rows = len(labels)
        if sizes is not None:
            train_rows, _, _ = sizes
        self._classes = _class_numbers(dataset, labels, train_rows, *self._needs())

    @classmethod
    def nested(
        cls, dataset: str, texts: Sequence[str], labels: Labels, fast: bool = False, note: str = ""
    ) -> TransferTask:
        """Return the task of one labelled set: nested folds, as for MR, CR, SUBJ and MPQA."""
        _row_count(dataset, "the data", (texts, labels))
        return cls(dataset, texts, labels, fast=fast, note=note)

    @classmethod
    def split(
        cls, dataset: str, train: Labelled, dev: Labelled | None, test: Labelled, fast: bool = False, note: str = ""
    ) -> TransferTask:
        """Return the task of (texts, labels) in splits, as for SST-2, or without dev as for TREC."""
        train_rows = _row_count(dataset, "train", train)
        test_rows = _row_count(dataset, "test", test)
        dev_rows = 0
        splits = [train, test]
        if dev is not None:
            dev_rows = _row_count(dataset, "dev", dev)
            splits = [train, dev, test]
        texts = [text for split_texts, _ in splits for text in split_texts]
        labels = [label for _, split_labels in splits for label in split_labels]
        return cls(dataset, texts, labels, sizes=(train_rows, dev_rows, test_rows), fast=fast, note=note)

    @classmethod
    def pairs(
        cls, dataset: str, train: LabelledPairs, test: LabelledPairs, fast: bool = False, note: str = ""
    ) -> TransferTask:
        """Return the task of (pairs, labels) with labels 0 and 1, as for MRPC: features |u - v| and u * v, also F1."""
        sizes = (_row_count(dataset, "train", train), 0, _row_count(dataset, "test", test))
        for name, (_, labels) in (("train", train), ("test", test)):
            if set(labels) != {0, 1}:
                raise DataError(
                    f"{dataset}: the labels of {name} pairs must be 0 and 1, both of them, for F1; got "
                    f"{', '.join(sorted({repr(label) for label in labels})[:5])}. Recode them."
                )
        rows = [*train[0], *test[0]]
        all_labels = [*train[1], *test[1]]
        return cls(dataset, rows, all_labels, sizes=sizes, paired=True, fast=fast, note=note)

    def texts(self) -> Iterable[str]:
        """Yield every text; the two texts of a pair follow each other."""
        for example in self._examples:
            if isinstance(example, str):
                yield example
            else:
                yield from example

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return the accuracy, for pairs also F1, and as evidence whether each tested row was right, in order."""
        self.check_embeds(candidate)
        folds = self._planned()
        (predicted, penalties), seconds = timed(
            candidate,
            self.texts(),
            lambda: cross_predict(self._features(candidate.encode), self._classes, folds),
        )
        build = self.builder(candidate, seconds)
        description = self._protocol(penalties)
        correct = predicted == self._classes
        tested = np.sort(np.concatenate([fold.test for fold in folds]))
        accuracy = float(np.mean([correct[fold.test].mean() for fold in folds]))
        outcomes = correct[tested].astype(np.float64)
        results = [build.result("accuracy", accuracy, len(tested), description, mean_interval(outcomes))]
        if self._paired:
            predicted_positive = predicted[tested] == 1
            positive = self._classes[tested] == 1
            true_positives = (predicted_positive & positive).sum()
            f1 = float(2 * true_positives / (predicted_positive.sum() + positive.sum()))
            results.append(build.result("f1", f1, len(tested), f"{description}; F1 of class 1"))
        examples = [self._examples[row] for row in tested]
        return TaskResult(results, [build.evidence("accuracy", outcomes, examples)])

    def _needs(self) -> tuple[int, str]:
        """Return the number of training rows that each class needs, and the reason."""
        k = self._folds
        if self._sizes is None:
            return k + 2, f"for {k} outer folds with {k} inner ones each"
        if self._sizes[1]:
            return (1, "")
        return (k, f"in train for {k} folds")

    def _planned(self) -> list[Fold]:
        if self._sizes is None:
            return nested_folds(self._classes, self._folds)
        return split_folds(self._classes, self._sizes, self._folds)

    def _features(self, encode: Encode) -> npt.NDArray[np.floating]:
        """Return the features of the examples, one row each."""
        row_of: dict[str, int] = {}
        rows = [row_of.setdefault(text, len(row_of)) for text in self.texts()]
        distinct = list(row_of)
        embeddings = checked_rows(np.asarray(encode(distinct)), distinct)
        if not self._paired:
            return embeddings[rows]
        wide = embeddings.astype(np.float64)
        # `texts` yields the two texts of a pair one after the other.
        first = wide[rows[::2]]
        second = wide[rows[1::2]]
        return np.concatenate([np.abs(first - second), first * second], axis=1)

    def _protocol(self, penalties: Sequence[float]) -> str:
        """Return how the figure was computed, in words."""
        if self._sizes is None:
            choice = f"{self._folds} inner folds"
            score = f"mean of {self._folds} outer folds' accuracies, not rounded"
        else:
            score = "accuracy on test"
            choice = "dev" if self._sizes[1] else f"{self._folds} folds of train"
        features = "embeddings as they are"
        if self._paired:
            features = "|u - v| and u * v of embeddings as they are"
        grid = ", ".join(f"{l2:g}" for l2 in GRID)
        clauses = [features, CLASSIFIER, f"L2 of {grid}, bias included, chosen on {choice}", score]
        if "folds" in choice:
            clauses.append(f"folds stratified, shuffled with seed {SEED}")
        chosen = ", ".join(f"{l2:g} x {count}" for l2, count in sorted(Counter(penalties).items()))
        return "; ".join([*clauses, f"chosen L2: {chosen}"])


def _row_count(dataset: str, name: str, split: tuple[Sequence[Any], Labels]) -> int:
    """Return the number of rows of a split; DataError if there are none, or not one label for each example."""
    examples, labels = split
    if len(examples) != len(labels):
        raise DataError(
            f"{dataset}: there must be one label for each example of {name}, "
            f"got {len(labels)} labels and {len(examples)} examples."
        )
    if not len(examples):
        raise DataError(f"{dataset}: {name} has no rows. Check that this is the right file.")
    return len(examples)


def _class_numbers(dataset: str, labels: Labels, train: int, fewest: int, reason: str) -> npt.NDArray[np.intp]:
    """Return each label as the number of its class ``(n,)``, in ascending order of the labels.

    Labels ``(n,)`` begin with those of train; each class must have at least ``fewest`` rows in train.
    """
    counts = Counter(labels[:train])
    if len(counts) < 2:
        raise DataError(
            f"{dataset}: there must be two classes or more to tell apart, and every label is {labels[0]!r}."
        )
    rarest, count = min(counts.items(), key=lambda item: item[1])
    if count < fewest:
        raise DataError(
            f"{dataset}: each class must have at least {fewest} rows {reason}; class {rarest!r} has {count}. "
            "Leave it out, merge it with another, or take fewer folds (fast)."
        )
    numbers = {label: number for number, label in enumerate(np.unique(labels[:train]).tolist())}
    for row, label in enumerate(labels):
        if label not in numbers:
            raise DataError(
                f"{dataset}: every class must be in train; label {label!r} of row {row - train} after train is not. "
                f"Train has {', '.join(repr(name) for name in list(numbers)[:10])}."
            )
    return np.array([numbers[label] for label in labels], dtype=np.intp)


def _from_benchmark(splits: BenchmarkSplits, benchmark: Benchmark) -> TransferTask | None:
    name = benchmark.name
    fast = splits.fast
    changed = []
    if fast:
        changed.append(f"{FAST_FOLDS} folds instead of {FOLDS}")
    note = splits.note(benchmark, *benchmark.rows, changed=changed)
    if WHOLE in benchmark.rows:
        data = splits.sentences(benchmark, WHOLE)
        if data is None:
            return None
        return TransferTask.nested(name, data.texts, data.labels, fast, note)
    if benchmark.shape == "sentences":
        train, dev, test = (splits.sentences(benchmark, split) for split in ("train", "dev", "test"))
        if train is None or test is None or (dev is None and "dev" in benchmark.rows):
            return None
        tuned = None if dev is None else (dev.texts, dev.labels)
        return TransferTask.split(name, (train.texts, train.labels), tuned, (test.texts, test.labels), fast, note)
    train_pairs = splits.pairs(benchmark, "train")
    test_pairs = splits.pairs(benchmark, "test")
    if train_pairs is None or test_pairs is None:
        return None
    return TransferTask.pairs(
        name, (train_pairs.pairs(), train_pairs.labels), (test_pairs.pairs(), test_pairs.labels), fast, note
    )


SUITE = Suite(
    task=TransferTask,
    data="MR, CR, SUBJ, MPQA, SST-2, TREC, MRPC",
    figures="accuracy of a linear classifier on the embeddings, by SentEval's protocol",
    metrics=("accuracy",),
    averages=(Average("transfer-avg", "accuracy", ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")),),
    from_benchmark=_from_benchmark,
)
