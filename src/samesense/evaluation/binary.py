"""Binary tasks: paraphrase or not, duplicate or not, told apart by one score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from samesense.data import PairData
from samesense.data.pairs.data import pair_key
from samesense.errors import DataError
from samesense.evaluation.result_builder import Record, timed_scores
from samesense.metrics import average_precision, best_threshold, f1_at, mean_interval
from samesense.metrics.classification import check_binary
from samesense.types import Candidate, TaskResult


class BinaryTask:
    """Average precision of the test pairs; accuracy and F1 with thresholds fitted on other pairs.

    A threshold fitted on the test pairs themselves flatters a model, so without dev pairs there is average precision
    only. Accuracy and F1 have a threshold each.

    Attributes:
        suite: ``"binary"``.
        dataset: name of the data.
        embeds: False; a score of pairs is enough.
    """

    suite = "binary"
    embeds = False

    def __init__(self, test: PairData, dev: PairData | None = None, *, dataset: str = "", note: str = "") -> None:
        """Check the labels.

        Args:
            test: pairs labelled 0 and 1, to judge on.
            dev: pairs labelled 0 and 1, to fit thresholds on.
            dataset: name for the results; that of the test pairs unless given.
            note: what else the protocol should say of the data.

        Raises:
            DataError: if labels are not 0 and 1 with both present, or dev and test are the same.
        """
        for data in (test, dev):
            if data is not None:
                _check(data)
        self.test, self.dev = test, dev
        self.dataset = dataset or test.name
        self.note = "; ".join(part for part in (note, f"{int(sum(test.labels))} of {len(test)} positive") if part)
        self._shared = 0
        if dev is not None:
            seen = {pair_key(*pair) for pair in dev.pairs()}
            self._shared = sum(pair_key(*pair) in seen for pair in test.pairs())
            if self._shared == len(test):
                raise DataError(
                    f"{test.source}: thresholds must be fitted on other pairs than those judged, and {dev.source} "
                    "holds every one of them. Name other dev pairs, or leave them out."
                )

    def texts(self) -> Iterator[str]:
        """Return the sentences of test and dev pairs."""
        for data in (self.test, self.dev):
            if data is not None:
                yield from data.sentences1
                yield from data.sentences2

    def judge(self, candidate: Candidate) -> TaskResult:
        """Return ``average_precision`` and, with dev pairs, ``accuracy`` and ``f1``; accuracy has evidence.

        Raises:
            ModelError: if there is not one finite score a pair.
        """
        pairs = self.test.pairs()
        both, seconds = timed_scores(candidate, pairs + (self.dev.pairs() if self.dev else []))
        scores = both[: len(pairs)]
        record = Record(task=self.suite, dataset=self.dataset, candidate=candidate, note=self.note, seconds=seconds)
        value = average_precision(scores, self.test.labels)
        how = "no threshold is needed" if self.dev else "no threshold was fitted, for there are no dev pairs"
        judgement = TaskResult([record.result("average_precision", value, len(pairs), how)])
        if self.dev is not None:
            dev, labels = both[len(pairs) :], np.asarray(self.test.labels)
            fitted = f"fitted for it on {len(dev)} pairs of {self.dev.name}"
            if self._shared:
                fitted += f", which hold {self._shared} of the test pairs"
            cut = best_threshold(dev, self.dev.labels, "accuracy")
            outcomes = ((scores >= cut) == (labels == 1)).astype(np.float64)
            how, interval = f"threshold {cut:.4g} {fitted}", mean_interval(outcomes)
            judgement.results.append(record.result("accuracy", float(outcomes.mean()), len(pairs), how, interval))
            judgement.evidence.append(record.evidence("accuracy", outcomes, pairs))
            cut = best_threshold(dev, self.dev.labels, "f1")
            value, how = f1_at(scores, labels, cut), f"threshold {cut:.4g} {fitted}"
            judgement.results.append(record.result("f1", value, len(pairs), how))
        return judgement


def _check(data: PairData) -> None:
    try:
        check_binary(data.labels)
    except DataError as error:
        raise DataError(f"{data.source}: a binary task needs pairs labelled 0 and 1. {error}") from error
