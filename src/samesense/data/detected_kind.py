"""Kinds of data: their names, the method that trains on each by default, and what was detected for a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

DataKind = Literal["pairs", "tuples", "classes", "texts", "documents"]
"""Labelled pairs or triplets; anchors with positives and negatives; sentences with a class each; texts; documents."""


class KindInfo(NamedTuple):
    """Name of a kind of data, the method that trains on it by default, and how that method uses it."""

    what: str
    method: str
    usage: str


KIND_INFO: dict[DataKind, KindInfo] = {
    "pairs": KindInfo("labelled pairs", "cosent", "ranks them by their labels"),
    "tuples": KindInfo("anchors with positives", "supmpn", "has the texts of other anchors as negatives"),
    "classes": KindInfo("sentences with classes", "supmpn", "has sentences of one class as positives of each other"),
    "texts": KindInfo("unlabelled sentences", "simcse", "has two views of a sentence as anchor and positive"),
    "documents": KindInfo(
        "running documents",
        "simcse",
        "has two views of each sentence as anchor and positive; it helps a language model",
    ),
}

TRIPLETS = KindInfo("triplets", "supmpn", "has the negative and the texts of other anchors as negatives")
"""Labelled pairs that are an anchor with a positive and with a negative each."""


@dataclass(frozen=True)
class DetectedKind:
    """The kind that was detected for a source, and why.

    Attributes:
        kind: see :data:`DataKind`.
        by: the evidence, in words.
        sure: whether column names or the form of the source decide the kind; otherwise it is a guess from the cells.
        columns: the columns to read, where they are given or guessed.
        triplets: of labelled pairs, whether they are those of an anchor with a positive and a negative.
    """

    kind: DataKind
    by: str
    sure: bool = True
    columns: str | None = None
    triplets: bool = False

    @property
    def info(self) -> KindInfo:
        """Name of the kind, its method, and how that uses it."""
        return TRIPLETS if self.triplets else KIND_INFO[self.kind]

    @property
    def line(self) -> str:
        """The kind as a line of text: what the source was read as, why, and what the default method does with it."""
        meaning = self.info
        guess = ""
        if not self.sure:
            guess = f" (a guess: if it is wrong, give other `columns` than {self.columns})"
        return f"read as {meaning.what}, by {self.by}{guess}; method {meaning.method} {meaning.usage}"
