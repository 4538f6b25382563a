"""Semantic textual similarity on one data set, as a task that is judged beside others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from samesense.data import PairData
from samesense.evaluation.checks import check_inputs
from samesense.evaluation.result_builder import Record, split_of, timed_scores
from samesense.evaluation.sts import evaluate_sts
from samesense.types import Candidate, TaskResult


class StsTask:
    """Spearman and Pearson over all pairs, by subset, and averaged over subsets; see :func:`evaluate_sts`.

    Attributes:
        suite: ``"sts"``.
        dataset: name of the data.
        embeds: False; a score of pairs is enough.
    """

    suite = "sts"
    embeds = False

    def __init__(self, data: PairData, *, dataset: str = "", note: str = "", intervals: bool = True) -> None:
        """Check the labels.

        Args:
            data: labelled pairs, of any kind and scale.
            dataset: name for the results; that of the data unless given.
            note: what the protocol should say of the data, such as its text variant and row count.
            intervals: compute bootstrap intervals.

        Raises:
            DataError: if no score could correlate with the labels.
        """
        check_inputs(data.pairs(), data.labels, data.subsets)
        self.data, self.note, self.intervals = data, note, intervals
        self.dataset = dataset or data.name

    def texts(self) -> Iterator[str]:
        """Return the sentences of all pairs."""
        yield from self.data.sentences1
        yield from self.data.sentences2

    def judge(self, candidate: Candidate) -> TaskResult:
        """Return every row of :func:`evaluate_sts`, and scores and labels behind Spearman of ``"all"``.

        Raises:
            ModelError: if there is not one finite score a pair.
            DataError: if all scores are the same.
        """
        pairs = self.data.pairs()
        scores, seconds = timed_scores(candidate, pairs)
        record = Record(task=self.suite, dataset=self.dataset, candidate=candidate, note=self.note, seconds=seconds)
        rows = evaluate_sts(
            lambda _: scores,
            pairs,
            self.data.labels,
            dataset=self.dataset,
            split=split_of(self.dataset),
            subsets=self.data.subsets,
            model=candidate.name,
            protocol="; ".join(part for part in (candidate.protocol, self.note) if part),
            seed=candidate.seed,
            intervals=self.intervals,
        )
        labels = np.asarray(self.data.labels, dtype=np.float64)
        return TaskResult(
            [replace(row, seconds=seconds) for row in rows], [record.evidence("spearman", scores, pairs, labels)]
        )
