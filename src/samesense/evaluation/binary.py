"""Binary classification of pairs by one score: paraphrase or not, duplicate or not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import Benchmark, split_name
from samesense.data.pairs.keys import pair_key
from samesense.errors import DataError
from samesense.evaluation.suite import BenchmarkSplits, Suite
from samesense.evaluation.task import Task, join_clauses, timed_scores
from samesense.metrics import best_threshold, mean_interval
from samesense.metrics.classification import check_binary
from samesense.types import Scorer, TaskResult


class BinaryTask(Task):
    """Average precision of the test pairs; accuracy and F1 with thresholds fitted on dev pairs.

    A threshold fitted on the test pairs would give figures that are too high, so without dev pairs there is only
    average precision. Accuracy and F1 have separate thresholds.
    """

    suite = "binary"

    def __init__(self, test: PairData, dev: PairData | None = None, *, dataset: str = "", note: str = "") -> None:
        """Check that labels are 0 and 1 and both occur; thresholds are fitted on ``dev``.

        DataError for other labels, or if dev has all of the test pairs.
        """
        for data in (test, dev):
            if data is not None:
                _check(data)
        self.test = test
        self.dev = dev
        self.dataset = dataset or test.name
        self.note = join_clauses(note, f"{int(sum(test.labels))} of {len(test)} positive")
        self._shared = 0
        if dev is not None:
            dev_pairs = {pair_key(*pair) for pair in dev.pairs()}
            self._shared = sum(pair_key(*pair) in dev_pairs for pair in test.pairs())
            if self._shared == len(test):
                raise DataError(
                    f"{test.source}: thresholds must be fitted on other pairs than the test pairs, and {dev.source} "
                    "holds every one of them. Name other dev pairs, or leave them out."
                )

    def texts(self) -> Iterator[str]:
        """Return the sentences of test and dev pairs."""
        for data in (self.test, self.dev):
            if data is not None:
                yield from data.sentences1
                yield from data.sentences2

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``average_precision`` and, with dev pairs, ``accuracy`` and ``f1``, all with evidence."""
        pairs = self.test.pairs()
        # In one call, a text of both test and dev is encoded once even without a cache.
        all_scores, seconds = timed_scores(candidate, pairs + (self.dev.pairs() if self.dev else []))
        scores = all_scores[: len(pairs)]
        labels = np.asarray(self.test.labels, dtype=np.float64)
        build = self.builder(candidate, seconds)
        description = "no threshold was fitted, for there are no dev pairs"
        if self.dev:
            description = "no threshold is needed"
        outcome = TaskResult([build.resampled("average_precision", scores, labels, description)])
        outcome.evidence.append(build.evidence("average_precision", scores, pairs, labels, "average_precision"))
        if self.dev is not None:
            dev = all_scores[len(pairs) :]
            fitted = f"fitted for it on {len(dev)} pairs of {self.dev.name}"
            if self._shared:
                fitted += f", which hold {self._shared} of the test pairs"
            threshold = best_threshold(dev, self.dev.labels, "accuracy")
            correct = ((scores >= threshold) == (labels == 1)).astype(np.float64)
            description = f"threshold {threshold:.4g} {fitted}"
            interval = mean_interval(correct)
            outcome.results.append(build.result("accuracy", float(correct.mean()), len(pairs), description, interval))
            outcome.evidence.append(build.evidence("accuracy", correct, pairs))
            threshold = best_threshold(dev, self.dev.labels, "f1")
            decisions = (scores >= threshold).astype(np.float64)
            description = f"threshold {threshold:.4g} {fitted}"
            outcome.results.append(build.resampled("f1", decisions, labels, description))
            outcome.evidence.append(build.evidence("f1", decisions, pairs, labels, "f1"))
        return outcome


def _check(data: PairData) -> None:
    try:
        check_binary(data.labels)
    except DataError as error:
        raise DataError(f"{data.source}: a binary task needs pairs labelled 0 and 1. {error}") from error


def _from_benchmark(splits: BenchmarkSplits, benchmark: Benchmark) -> BinaryTask | None:
    test = splits.pairs(benchmark, "test")
    if test is None:
        return None
    # A benchmark published without dev has its thresholds fitted on train.
    fitted_on = "dev" if "dev" in benchmark.rows else "train"
    dev = splits.pairs(benchmark, fitted_on)
    note = splits.note(benchmark, "test", fitted_on)
    return BinaryTask(test, dev, dataset=split_name(benchmark.name, "test"), note=note)


SUITE = Suite(
    task=BinaryTask,
    data="MRPC, PAWS, ATEC, BQ, PAWSX, LCQMC; any yes/no pairs",
    figures="average precision; accuracy and F1 with the threshold fitted on dev",
    metrics=("average_precision", "accuracy", "f1"),
    takes_pairs=True,
    from_benchmark=_from_benchmark,
)
