"""The comparison set of a verdict on texts with classes: those held out, and those that a classifier learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from samesense.data.tuples.data import HeldOutTexts, TupleData
from samesense.evaluation.classes import ClassTask
from samesense.reports.run_verdict import Role
from samesense.types import Pair

NAME: Final = "held-out texts"
"""Name of the set, and its role."""


@dataclass(frozen=True, eq=False)
class ClassSet:
    """Held-out texts with classes on which start and end are compared, in place of labelled pairs."""

    held_out: HeldOutTexts
    role: Role = NAME
    name: str = NAME

    @property
    def texts_held_out(self) -> Sequence[str]:
        """The texts that are not trained on."""
        data, _ = self._parts
        return data.anchors

    @property
    def description(self) -> str:
        """What is asked of them, in words."""
        _, whole = self._parts
        others = len(whole) - len(self.texts_held_out)
        return f"held out, each to be put into its class by a classifier that learns from the other {others:,}"

    @property
    def task(self) -> ClassTask:
        """The evaluation."""
        data, whole = self._parts
        return ClassTask.split(whole, data.anchors, self.name)

    def pairs(self) -> Sequence[Pair]:
        """Return pairs that have every held-out text."""
        texts = self.texts_held_out
        return list(zip(texts, [*texts[1:], texts[0]], strict=True))

    def texts(self) -> Sequence[str]:
        """Return all texts, as the classifier learns from those that are trained on."""
        _, whole = self._parts
        return whole.anchors

    @property
    def _parts(self) -> tuple[TupleData, TupleData]:
        """The texts that are held out, and all texts."""
        if self.held_out.data is None or self.held_out.whole is None:
            raise ValueError("texts that are held out have data or a reason")
        return self.held_out.data, self.held_out.whole
