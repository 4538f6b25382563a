"""Labelled sentence pairs: the one shape that training and evaluation receive."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data.formats.endings import split_suffix
from samesense.data.formats.labels import ZERO_CLASSES, Kind, Scale, label_name, number_text, zero_class
from samesense.data.mapped import columns_of, is_mapped, rows_of
from samesense.data.pairs.parts import Apart, grouped, held_part
from samesense.errors import ConfigError, DataError
from samesense.hashes import rows_hash
from samesense.places import JOINT
from samesense.results import ShownRows
from samesense.types import Pair

TEXTS = ("sentence1", "sentence2", "subset")
"""Columns of a table of pairs."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PairData(ShownRows):
    """Labelled sentence pairs of one source, in its order.

    Texts, labels and rows are lists; where there are many texts, they are mapped from a file and the numbers an array,
    see :func:`~samesense.data.mapped.columns_of`.

    Attributes:
        sentences1: first sentence of every pair.
        sentences2: second sentence of every pair.
        labels: one number a pair; larger means more similar.
        subsets: name of the part each pair belongs to, where the source says so.
        kind: ``"scored"``, ``"binary"``, ``"nli"`` or ``"triple"``.
        scale: lowest and highest value a label can take; ``None`` if no known range holds them.
        source: the file, folder or name as the user gave it.
        label_column: where the labels come from; the negative column for triples.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows marked as having no label, always left out.
        own_scale: whether ``scale`` was taken from the labels, which no known range has for its ends.
        zero_class: of ``"nli"``, the class of label 0: ``"contradiction"``, or of two classes ``"not_entailment"``.
        rows: number of the row of each pair, as its source counts them, where it is of one source.
    """

    sentences1: Sequence[str]
    sentences2: Sequence[str]
    labels: Sequence[float]
    subsets: Sequence[str] | None
    kind: Kind
    scale: Scale | None
    source: str
    label_column: str
    dropped: int = 0
    dropped_unlabelled: int = 0
    own_scale: bool = False
    zero_class: str = field(default=ZERO_CLASSES[0], compare=False)
    rows: Sequence[int] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def name(self) -> str:
        """Short name for people: the file name of a file, else the source itself."""
        parts = self.source.split(JOINT)
        return JOINT.join(Path(part).name if split_suffix(part)[0] else part for part in parts)

    @property
    def graded(self) -> bool:
        """Whether the labels say more of a pair than yes or no."""
        return self.kind not in ("binary", "triple")

    def label_name(self, label: float) -> str:
        """Return a label for people: a class of natural language inference by its name, else the number."""
        return label_name(label, self.zero_class) if self.kind == "nli" else number_text(label)

    def known_scale(self, fix: str) -> Scale:
        """Return the ends of the scale; DataError, with ``fix`` at its end, if it is unknown or leaves a label out."""
        low, high = self.scale or (0.0, 0.0)
        if low == high or not low <= min(self.labels) <= max(self.labels) <= high:
            raise DataError(
                f"{self.source}: the scale of the labels must be known; they run from {number_text(min(self.labels))} "
                f"to {number_text(max(self.labels))}, and the scale is {self.scale or 'unknown'}. {fix}."
            )
        return low, high

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the content in order; equal for equal content in any file format."""
        parts = self.subsets if self.subsets is not None else [""] * len(self)
        rows = zip(self.sentences1, self.sentences2, self.labels, parts, strict=True)
        return rows_hash(rows, json.dumps([self.kind, self.subsets is not None]).encode())

    def __str__(self) -> str:
        scale = "" if self.scale is None else f", labels {number_text(self.scale[0])} to {number_text(self.scale[1])}"
        kind = "inference" if self.kind == "nli" else self.kind
        return "\n".join([f"{self.name}: {len(self):,} {kind} pairs{scale}", self.table(rows=3)])

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each pair as a dictionary: both sentences, the label, and its subset where the source names one."""
        return self._first_dicts(len(self))[0]

    def _first_dicts(self, count: int) -> tuple[list[dict[str, Any]], int]:
        columns: dict[str, Sequence[Any]] = {
            "sentence1": self.sentences1[:count],
            "sentence2": self.sentences2[:count],
            "label": [float(label) for label in self.labels[:count]],
        }
        if self.subsets is not None:
            columns["subset"] = self.subsets[:count]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], len(self)

    def pairs(self) -> list[Pair]:
        """Return the two sentences of every row."""
        return list(zip(self.sentences1, self.sentences2, strict=True))

    def take(self, indices: Iterable[int]) -> PairData:
        """Return the rows at these positions, in the order given."""
        chosen = np.fromiter(indices, np.int64)
        subsets = [] if self.subsets is None else [self.subsets]
        first, second, *parts = rows_of([self.sentences1, self.sentences2, *subsets], chosen)
        return replace(
            self,
            sentences1=first,
            sentences2=second,
            labels=numbers((self.labels[row] for row in chosen), beside=first),
            subsets=parts[0] if parts else None,
            rows=None if self.rows is None else numbers((self.rows[row] for row in chosen), beside=first, whole=True),
        )

    def split(self, fraction: float, seed: int, *, apart: Apart = "sentences") -> tuple[PairData, PairData]:
        """Hold out a part so that no sentence, or no pair, stands on both sides.

        Pairs count as one whichever sentence comes first, and pairs and sentences whatever their case and punctuation,
        as for the doctor's leaks. The choice depends on the seed and the sentences only, not on the order of the rows.
        Of sentences, pairs that hang together go to one side: the connected components of shared sentences, drawn at
        random among those that still fit. Labels are as frequent in the part as in the whole, where that can be.

        Returns:
            The larger rest and the held-out part, each in the order of the source.

        Raises:
            ConfigError: if the fraction is not between 0 and 1.
            DataError: if one side would be empty, or less than half of the fraction can be held out.
        """
        if not 0 < fraction < 1:
            raise ConfigError(f"The share to hold out must lie between 0 and 1; received {fraction}. Example: 0.1")
        groups = grouped(self.sentences1, self.sentences2, apart)
        wanted = max(1, round(fraction * len(self)))
        most = wanted if apart == "sentences" else len(self)
        held = held_part(self.sentences1, self.sentences2, self.labels, groups, wanted, most, seed)
        count = int(held.sum())
        if not count or count == len(self) or 2 * count < wanted:
            pairs = len(np.unique(grouped(self.sentences1, self.sentences2, "pairs")))
            largest = np.bincount(groups).max(initial=0)
            raise DataError(
                f"{self.source}: {len(self)} rows with {pairs} different pairs cannot be split into two parts"
                + (f", since {largest} hang together by their sentences. " if apart == "sentences" else ". ")
                + "Give a file with more pairs, or a dev file of its own."
            )
        return self.take(np.flatnonzero(~held)), self.take(np.flatnonzero(held))


def concat(parts: Sequence[PairData]) -> PairData:
    """Join pairs of one kind and scale; DataError if there is nothing to join, or labels cannot be compared."""
    if not parts:
        raise DataError("There is nothing to join: no data was given. Give at least one source.")
    first = parts[0]
    for other in parts[1:]:
        if (other.kind, other.scale) != (first.kind, first.scale):
            raise DataError(
                f"Labels can be joined only if they are of one kind and scale; {first.source} is {first.kind} on "
                f"{first.scale} and {other.source} is {other.kind} on {other.scale}. Give one scale to all "
                "as `label_range` LOW HIGH, train on them apart, or rescale one file."
            )
    if len(parts) == 1:
        return first
    with_subsets = any(part.subsets is not None for part in parts)
    sides = [
        chain.from_iterable(part.sentences1 for part in parts),
        chain.from_iterable(part.sentences2 for part in parts),
        *([chain.from_iterable(part.subsets or repeat("", len(part)) for part in parts)] if with_subsets else []),
    ]
    texts = columns_of(zip(*sides, strict=True), TEXTS[: len(sides)])
    return PairData(
        sentences1=texts[0],
        sentences2=texts[1],
        labels=numbers(chain.from_iterable(part.labels for part in parts), beside=texts[0]),
        subsets=texts[2] if with_subsets else None,
        kind=first.kind,
        scale=first.scale,
        source=JOINT.join(part.source for part in parts),
        label_column=JOINT.join(dict.fromkeys(part.label_column for part in parts)),
        dropped=sum(part.dropped for part in parts),
        dropped_unlabelled=sum(part.dropped_unlabelled for part in parts),
        own_scale=any(part.own_scale for part in parts),
        zero_class=zero_class(part.zero_class for part in parts),
    )


def one_label(labels: Sequence[float]) -> bool:
    """Return whether all labels are equal, so that there is nothing to rank."""
    return all(label == labels[0] for label in labels)


def numbers(values: Iterable[Any], *, beside: Sequence[str], whole: bool = False) -> Sequence[Any]:
    """Return numbers as a list, or beside texts that stand in a file in 8 bytes each."""
    return array("q" if whole else "d", values) if is_mapped(beside) else list(values)
