"""The comparison set of a verdict on anchors with positives: those held out, and the texts to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from samesense.data.tuples.data import TupleData
from samesense.evaluation.retrieval import RetrievalTask
from samesense.reports.run_verdict import Role
from samesense.types import Pair

NAME: Final = "held-out anchors"
"""Name of the set, and its role."""


@dataclass(frozen=True, eq=False)
class AnchorSet:
    """Anchors that are not trained on, on which start and end are compared, in place of labelled pairs."""

    tested: TupleData
    candidates: Sequence[str]  # texts among which the positives of each anchor are to be found
    description: str  # what these texts are, in words
    role: Role = NAME
    name: str = NAME

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
