"""Labelled sentence pairs, the form in which training and evaluation receive their data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data.columns.labels import Kind
from samesense.data.conventions.class_names import ZERO_CLASSES, label_name, zero_class
from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.scales import Scale
from samesense.data.mapped import collect_columns, collect_numbers, take_rows
from samesense.data.pairs.splits import Apart, choose_held_out, group_pairs
from samesense.data.rows.compression import split_suffix
from samesense.errors import ConfigError, DataError
from samesense.hashes import rows_hash
from samesense.places import JOINT
from samesense.results.shown import ShownRows
from samesense.types import Pair

TEXTS = ("sentence1", "sentence2", "subset")
"""Columns of a table of pairs."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PairData(ShownRows):
    """Labelled sentence pairs of one source, in its order.

    Texts, labels and rows are lists. Many texts are memory-mapped from a file instead, with their numbers in arrays;
    see :func:`~samesense.data.mapped.collect_columns`.

    Attributes:
        sentences1: first sentence of every pair.
        sentences2: second sentence of every pair.
        labels: one number a pair; larger means more similar.
        subsets: name of the subset of each pair, where the source names subsets.
        kind: ``"scored"``, ``"binary"``, ``"nli"`` or ``"triplet"``.
        scale: lowest and highest value a label can take; ``None`` if no known range holds them.
        source: the file, folder or name as the user gave it.
        label_column: where the labels come from; the negative column for triplets.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows marked as having no label, always left out.
        own_scale: whether ``scale`` was taken from the labels, because no known range fits them.
        zero_class: for ``"nli"``, the class of label 0: ``"contradiction"``, or with two classes ``"not_entailment"``.
        rows: row number of each pair in its source; ``None`` for pairs joined from several sources.
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
        """Short name for display: the file name of a file, else the source itself."""
        sources = self.source.split(JOINT)
        return JOINT.join(Path(source).name if split_suffix(source).suffix else source for source in sources)

    @property
    def graded(self) -> bool:
        """Whether labels are finer than yes and no."""
        return self.kind not in ("binary", "triplet")

    def label_name(self, label: float) -> str:
        """Return a label as text: the name of an NLI class, else the number."""
        if self.kind == "nli":
            return label_name(label, self.zero_class)
        return number_text(label)

    def known_scale(self, fix: str) -> Scale:
        """Return the lowest and highest value of the scale.

        DataError, with ``fix`` as its advice, if the scale is unknown or does not hold every label.
        """
        if self.scale is None or not self.has_known_scale:
            raise DataError(
                f"{self.source}: the scale of the labels must be known; they run from {number_text(min(self.labels))} "
                f"to {number_text(max(self.labels))}, and the scale is {self.scale or 'unknown'}. {fix}."
            )
        return self.scale

    @property
    def has_known_scale(self) -> bool:
        """Whether the lowest and highest value of the scale are known, and it holds every label."""
        low, high = self.scale or (0.0, 0.0)
        return low < high and low <= min(self.labels) and max(self.labels) <= high

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the rows in their order; the same for the same content in any file format."""
        subsets = self.subsets
        if subsets is None:
            subsets = [""] * len(self)
        rows = zip(self.sentences1, self.sentences2, self.labels, subsets, strict=True)
        return rows_hash(rows, json.dumps([self.kind, self.subsets is not None]).encode())

    def __str__(self) -> str:
        scale = ""
        if self.scale is not None:
            scale = f", labels {number_text(self.scale[0])} to {number_text(self.scale[1])}"
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
        positions = np.fromiter(indices, np.int64)
        columns = [self.sentences1, self.sentences2]
        if self.subsets is not None:
            columns.append(self.subsets)
        texts = take_rows(columns, positions)
        rows = None
        if self.rows is not None:
            rows = collect_numbers((self.rows[position] for position in positions), beside=texts[0], whole=True)
        return replace(
            self,
            sentences1=texts[0],
            sentences2=texts[1],
            labels=collect_numbers((self.labels[position] for position in positions), beside=texts[0]),
            subsets=texts[2] if len(texts) > 2 else None,
            rows=rows,
        )

    def split(self, fraction: float, seed: int, *, apart: Apart = "sentences") -> tuple[PairData, PairData]:
        """Split off a held-out part that shares no sentence, or no pair, with the rest.

        Pairs are compared without regard to sentence order, and sentences without regard to case and punctuation, as
        the doctor does. The choice depends on the seed and the sentences only, not on the order of the rows. With
        ``apart="sentences"``, pairs that share sentences stay together: connected components of shared sentences are
        drawn at random among those that still fit. The held-out part is stratified by label where that is possible.

        Returns:
            The larger part and the held-out part, each in the order of the source.

        Raises:
            ConfigError: if the fraction is not between 0 and 1.
            DataError: if one side would be empty, or less than half of the fraction can be held out.
        """
        if not 0 < fraction < 1:
            raise ConfigError(f"The share to hold out must lie between 0 and 1; received {fraction}. Example: 0.1")
        groups = group_pairs(self.sentences1, self.sentences2, apart)
        # Components of sentences differ in size, so the target is also the most that may be held out.
        target = max(1, round(fraction * len(self)))
        limit = target if apart == "sentences" else len(self)
        held_out = choose_held_out(self.sentences1, self.sentences2, self.labels, groups, target, limit, seed)
        count = int(held_out.sum())
        # Less than half of what was asked for would be another experiment than the user means.
        if not count or count == len(self) or 2 * count < target:
            pairs = len(np.unique(group_pairs(self.sentences1, self.sentences2, "pairs")))
            largest = np.bincount(groups).max(initial=0)
            reason = ""
            if apart == "sentences":
                reason = f", since {largest} are connected by shared sentences"
            raise DataError(
                f"{self.source}: {len(self)} rows with {pairs} different pairs cannot be split into two parts{reason}. "
                "Give a file with more pairs, or a dev file of its own."
            )
        return self.take(np.flatnonzero(~held_out)), self.take(np.flatnonzero(held_out))


def concat(datasets: Sequence[PairData]) -> PairData:
    """Concatenate pairs of one kind and scale; DataError if there are none, or their labels cannot be compared."""
    if not datasets:
        raise DataError("There is nothing to join: no data was given. Give at least one source.")
    first = datasets[0]
    for dataset in datasets[1:]:
        _refuse_other_labels(dataset, first)
    if len(datasets) == 1:
        return first
    texts = _joined_texts(datasets)
    return PairData(
        sentences1=texts[0],
        sentences2=texts[1],
        labels=collect_numbers(chain.from_iterable(data.labels for data in datasets), beside=texts[0]),
        subsets=texts[2] if len(texts) > 2 else None,
        kind=first.kind,
        scale=first.scale,
        source=JOINT.join(data.source for data in datasets),
        label_column=JOINT.join(dict.fromkeys(data.label_column for data in datasets)),
        dropped=sum(data.dropped for data in datasets),
        dropped_unlabelled=sum(data.dropped_unlabelled for data in datasets),
        own_scale=any(data.own_scale for data in datasets),
        zero_class=zero_class(data.zero_class for data in datasets),
    )


def _refuse_other_labels(dataset: PairData, first: PairData) -> None:
    """Raise DataError if labels are of another kind or scale than the first, so that they cannot be compared."""
    if (dataset.kind, dataset.scale) != (first.kind, first.scale):
        raise DataError(
            f"Labels can be joined only if they are of one kind and scale; {first.source} is {first.kind} on "
            f"{first.scale} and {dataset.source} is {dataset.kind} on {dataset.scale}. Give one scale to all "
            "as `label_range` LOW HIGH, train on them apart, or rescale one file."
        )


def _joined_texts(datasets: Sequence[PairData]) -> Sequence[Sequence[str]]:
    """Return the columns of both sentences, and that of subsets if any of the data has subsets."""
    columns = [
        chain.from_iterable(data.sentences1 for data in datasets),
        chain.from_iterable(data.sentences2 for data in datasets),
    ]
    if any(data.subsets is not None for data in datasets):
        # Pairs of data without subsets get an empty subset name.
        columns.append(chain.from_iterable(data.subsets or repeat("", len(data)) for data in datasets))
    return collect_columns(zip(*columns, strict=True), TEXTS[: len(columns)])
