"""Section triplets: is a sentence closer to one of its own section than to one of another section?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from samesense.data.documents import read_documents
from samesense.data.section_triplets import Triplet, draw_section_triplets
from samesense.errors import DataError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import Task, timed_scores
from samesense.metrics import mean_interval
from samesense.types import Scorer, TaskResult


class SectionTask(Task):
    """Share of triplets whose anchor scores higher with its positive than with its negative.

    A tie is an error, and the protocol counts ties. Chance is one half.

    Source: Ein Dor et al. (2018), as for :func:`~samesense.data.section_triplets.draw_section_triplets`.
    """

    suite = "sections"

    def __init__(
        self, triplets: Sequence[Triplet], dataset: str, *, documents: Sequence[int] | None = None, note: str = ""
    ) -> None:
        """Check the triplets; DataError if there are fewer than 2, or the positive of one equals its negative.

        ``documents`` is the document number of each triplet. With it, an example is a document, its outcome is the
        share of its triplets, and the interval is over documents, because triplets of a document are not independent.
        """
        if len(triplets) < 2:
            raise DataError(f"{dataset}: at least 2 triplets are needed, got {len(triplets)}.")
        for row, (_, positive, negative) in enumerate(triplets):
            if positive == negative:
                raise DataError(
                    f"{dataset}: positive and negative must differ, and in triplet {row} both are {positive!r}. "
                    "Leave such triplets out."
                )
        self.dataset = dataset
        self.note = note
        self.triplets = list(triplets)
        self._documents = None if documents is None else np.asarray(documents)

    def texts(self) -> Iterator[str]:
        """Return the three sentences of every triplet."""
        for triplet in self.triplets:
            yield from triplet

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``accuracy``, with the outcome of every triplet as evidence.

        An example of the evidence is a triplet, with its sentences joined by line breaks; if documents are the
        examples, the first triplet of each.
        """
        positives = [(anchor, positive) for anchor, positive, _ in self.triplets]
        negatives = [(anchor, negative) for anchor, _, negative in self.triplets]
        scores, seconds = timed_scores(candidate, positives + negatives)
        positive_scores, negative_scores = np.split(scores, 2)
        outcomes = (positive_scores > negative_scores).astype(np.float64)
        examples = ["\n".join(triplet) for triplet in self.triplets]
        if self._documents is not None:
            _, first, group = np.unique(self._documents, return_index=True, return_inverse=True)
            outcomes = np.bincount(group, weights=outcomes) / np.bincount(group)
            examples = [examples[row] for row in first]
        build = self.builder(candidate, seconds)
        description = (
            f"positive scored above negative; {int((positive_scores == negative_scores).sum())} ties count as errors"
        )
        value = float(outcomes.mean())
        return TaskResult(
            [build.result("accuracy", value, len(outcomes), description, mean_interval(outcomes))],
            [build.evidence("accuracy", outcomes, examples)],
        )


PER_DOCUMENT = 10
"""Most triplets drawn from a document."""

TRIPLET_SEED = 0
"""Seed of the draws."""


def _from_documents(source: Path, dataset: str) -> SectionTask:
    triplets = draw_section_triplets(list(read_documents(source)), PER_DOCUMENT, TRIPLET_SEED)
    note = f"at most {PER_DOCUMENT} triplets a document, drawn with seed {TRIPLET_SEED}"
    return SectionTask(triplets, dataset, note=note)


SUITE = Suite(
    task=SectionTask,
    data="documents with sections, in JSON lines",
    figures="share of sentences closer to their own section",
    metrics=("accuracy",),
    from_documents=_from_documents,
)
