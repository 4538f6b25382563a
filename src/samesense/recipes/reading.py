"""How labelled pairs are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from samesense.data import PairData, concat, read_pairs
from samesense.data.benchmarks.published import holds_arguments, read_argument_pairs
from samesense.data.conventions.named_columns import check_columns
from samesense.data.pairs.read import holds_scores
from samesense.data.rows.memory import is_name_in_memory
from samesense.data.rows.sources import Source, in_memory, numbered


@dataclass(frozen=True)
class Reading:
    """How labelled pairs are read; see :func:`samesense.data.read_pairs`."""

    columns: str | None = None
    label_order: str | None = None
    label_range: tuple[float, float] | None = None
    drop_bad_rows: bool | None = False  # None where the method has no such option

    def __post_init__(self) -> None:
        check_columns(self.columns)

    def for_evaluation(self, source: Source) -> Reading:
        """Return how pairs for evaluation are read: an order of classes says nothing about scores."""
        if self.label_order is None or not holds_scores(source, self.columns):
            return self
        return replace(self, label_order=None)


def named_apart(datasets: Sequence[PairData], others: Sequence[str] = ()) -> list[PairData]:
    """Return sets to compare on whose names differ from each other and from ``others``, where no one chose the names.

    Data in memory are named by their type alone, and get a number; a file is to be renamed by its user.
    """
    first = list(dict.fromkeys(others))
    names = numbered([*first, *(data.source for data in datasets)])[len(first) :]
    return [
        replace(data, source=name) if is_name_in_memory(data.source) else data
        for data, name in zip(datasets, names, strict=True)
    ]


READING = tuple(field.name for field in fields(Reading))
"""Names of what decides how labelled pairs are read."""


def read_labelled(sources: Sequence[Source], settings: Any, reading: Reading | None = None) -> PairData:
    """Return labelled pairs; those of argument similarity come in a folder of their own form."""
    return concat(
        [
            read_argument_pairs(Path(source).expanduser())
            if reading in (None, Reading()) and not in_memory(source) and holds_arguments(source)
            else read_pairs(source, **vars(reading or Reading()))
            for source in sources
        ]
    )
