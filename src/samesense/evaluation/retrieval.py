"""Retrieval: how high does a model rank the positives of an anchor among many texts?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from samesense.data.tuples.data import TupleData
from samesense.errors import DataError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task, timed, unit_embeddings
from samesense.metrics import mean_interval
from samesense.types import Floats, Scorer, TaskResult

BLOCK = 1_000
"""Anchors whose cosines with all candidates are held at once."""


class RetrievalTask(Task):
    """Mean reciprocal rank (MRR) of the closest positive of each anchor among the candidates, by the cosine.

    Other positives of the anchor, and its own text, are left out of its ranking. A candidate as close as the positive
    counts as closer, so that a model that tells no texts apart gets no credit.
    """

    suite = "retrieval"
    embeds = True

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[Sequence[str]],
        candidates: Sequence[str],
        dataset: str,
        *,
        note: str = "",
    ) -> None:
        """Check that every anchor has a positive among the candidates; else DataError."""
        row_of = {text: row for row, text in enumerate(candidates)}
        for row, texts in enumerate(positives):
            if not texts or any(text not in row_of for text in texts):
                raise DataError(
                    f"{dataset}: each anchor needs a positive, and all are candidates; anchor {row} has {len(texts)}."
                )
        if len(anchors) < 2:
            raise DataError(f"{dataset}: at least 2 anchors are needed, got {len(anchors)}.")
        self.dataset = dataset
        self.note = note
        self.anchors = list(anchors)
        self.candidates = list(candidates)
        self.positives = [[row_of[text] for text in texts] for texts in positives]
        # The anchor itself, where it is a candidate, is neither right nor wrong.
        self.ignored = [row_of.get(text) for text in anchors]

    def texts(self) -> Iterable[str]:
        """Return anchors and candidates."""
        return [*self.anchors, *self.candidates]

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``mrr``, with the reciprocal rank of every anchor as evidence.

        An example of the evidence is an anchor and its first positive, joined by a line break.
        """
        self.check_embeds(candidate)
        (anchors, candidates), seconds = timed(
            candidate,
            self.texts(),
            lambda: [unit_embeddings(candidate, texts) for texts in (self.anchors, self.candidates)],
        )
        ranks = np.concatenate(
            [
                self._ranks(start, anchors[start : start + BLOCK] @ candidates.T)
                for start in range(0, len(anchors), BLOCK)
            ]
        )
        values = 1.0 / ranks
        build = self.builder(candidate, seconds)
        first = int((ranks == 1).sum())
        description = (
            f"1 over the rank of the closest positive among {len(self.candidates):,} texts; it is first for {first} of "
            f"{len(ranks)} anchors; equal cosines rank before it"
        )
        examples = [
            f"{anchor}\n{self.candidates[rows[0]]}" for anchor, rows in zip(self.anchors, self.positives, strict=True)
        ]
        return TaskResult(
            [build.result("mrr", float(values.mean()), len(values), description, mean_interval(values))],
            [build.evidence("mrr", values, examples)],
        )

    def _ranks(self, start: int, cosines: Floats) -> Floats:
        """Return the rank of the closest positive of each anchor of a block, from 1."""
        ranks = np.empty(len(cosines))
        for offset, row in enumerate(cosines):
            positives = self.positives[start + offset]
            closest = row[positives].max()
            row[positives] = -np.inf
            ignored = self.ignored[start + offset]
            if ignored is not None:
                row[ignored] = -np.inf
            ranks[offset] = 1 + (row >= closest).sum()
        return ranks


def _from_anchors(data: TupleData, dataset: str) -> RetrievalTask:
    """Return the task on all anchors that have a positive, among the positives and negatives of all."""
    rows = [row for row, positives in enumerate(data.positives) if positives]
    candidates = dict.fromkeys(chain.from_iterable([*data.positives, *data.negatives]))
    return RetrievalTask(
        [data.anchors[row] for row in rows],
        [data.positives[row] for row in rows],
        list(candidates),
        dataset,
        note=f"{len(data)} anchors",
    )


SUITE = Suite(
    task=RetrievalTask,
    data="anchors with positives, such as questions and answers",
    figures="MRR of the closest positive among the texts of all anchors",
    metrics=("mrr",),
    from_anchors=_from_anchors,
)
