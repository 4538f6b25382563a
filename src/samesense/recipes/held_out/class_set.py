"""The comparison set of a verdict on texts with classes: those held out, and those that a classifier learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from samesense.data.tuples.data import TupleData
from samesense.evaluation.classes import ClassTask
from samesense.reports.run_verdict import Role
from samesense.types import Pair

NAME: Final = "held-out texts"
"""Name of the set, and its role."""


@dataclass(frozen=True, eq=False)
class ClassSet:
    """Texts with classes that are not trained on, on which start and end are compared in place of labelled pairs."""

    train: TupleData
    tested: TupleData
    role: Role = NAME
    name: str = NAME

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
