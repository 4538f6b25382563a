"""The comparison sets of a verdict without labelled pairs: held-out sections, anchors, and texts with classes.

Start and end are compared on what is not trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samesense.data.held_out import HeldOutSections
from samesense.data.tuples.data import TupleData
from samesense.evaluation.classes import ClassTask
from samesense.evaluation.retrieval import RetrievalTask
from samesense.evaluation.sections import SectionTask
from samesense.reports.run_verdict import Role
from samesense.types import Pair


@dataclass(frozen=True, eq=False)
class SectionSet:
    """Triplets of sections of held-out documents."""

    held_out: HeldOutSections
    role: Role = "held-out sections"
    name: str = "held-out sections"

    @property
    def description(self) -> str:
        """Description of the examples, and of what they do not measure."""
        triplets = f"{len(self.held_out.triplets):,} triplets"
        return (
            f"that are documents held out, {triplets} by {self.held_out.unit}: this is about topics, not about meaning"
        )

    @property
    def task(self) -> SectionTask:
        """The evaluation, with an interval over documents."""
        return SectionTask(self.held_out.triplets, self.name, documents=self.held_out.documents)

    def pairs(self) -> Sequence[Pair]:
        """Return the pairs that a model scores: each anchor with its positive and with its negative."""
        return [(anchor, text) for anchor, *texts in self.held_out.triplets for text in texts]

    def texts(self) -> Sequence[str]:
        """Return the sentences of the triplets."""
        return [text for triplet in self.held_out.triplets for text in triplet]


@dataclass(frozen=True, eq=False)
class AnchorSet:
    """Anchors with positives that are not trained on, and the texts to find."""

    tested: TupleData
    candidates: Sequence[str]  # texts among which the positives of each anchor are to be found
    description: str  # what these texts are, in words
    role: Role = "held-out anchors"
    name: str = "held-out anchors"

    @property
    def task(self) -> RetrievalTask:
        """The evaluation."""
        return RetrievalTask(self.tested.anchors, self.tested.positives, self.candidates, self.name)

    def pairs(self) -> Sequence[Pair]:
        """Return pairs that have every text once or more."""
        anchors = self.tested.anchors
        return [(anchors[row % len(anchors)], text) for row, text in enumerate(self.candidates)]

    def texts(self) -> Sequence[str]:
        """Return anchors and candidates."""
        return [*self.tested.anchors, *self.candidates]


@dataclass(frozen=True, eq=False)
class ClassSet:
    """Texts with classes that are not trained on, and those that a classifier learns from."""

    train: TupleData
    tested: TupleData
    role: Role = "held-out texts"
    name: str = "held-out texts"

    @property
    def description(self) -> str:
        """What is asked of the texts, in words."""
        question = f"each to be put into its class by a classifier that learns from {len(self.train):,} others"
        return question if self.role == "test" else f"held out, {question}"

    @property
    def task(self) -> ClassTask:
        """The evaluation."""
        return ClassTask.split(self.train, self.tested, self.name)

    def pairs(self) -> Sequence[Pair]:
        """Return pairs that have every text."""
        texts = self.texts()
        return list(zip(texts, [*texts[1:], texts[0]], strict=True))

    def texts(self) -> Sequence[str]:
        """Return all texts, as the classifier learns from those that are trained on."""
        return [*self.train.anchors, *self.tested.anchors]
