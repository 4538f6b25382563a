"""The comparison set of a verdict without labels: sections of held-out documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from samesense.data.held_out import HeldOutSections
from samesense.evaluation.sections import SectionTask
from samesense.reports.run_verdict import Role
from samesense.types import Pair

NAME: Final = "held-out sections"
"""Name of the set, and its role."""


@dataclass(frozen=True, eq=False)
class SectionSet:
    """Triplets of held-out documents on which start and end are compared, in place of labelled pairs."""

    held_out: HeldOutSections
    role: Role = NAME
    name: str = NAME

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
