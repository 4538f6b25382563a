"""Keeps many texts in a memory-mapped file instead of in memory."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from samesense.failures import imported, writing
from samesense.scratch import ScratchFolder

MOST_IN_MEMORY = 1_000_000
"""Most texts that are kept in lists; more are written to a file."""

BLOCK = 10_000
"""Rows that are written or read at a time."""

COLUMN = "sentence"

_FOLDERS: list[ScratchFolder] = []
"""Temporary folders of these files, which are deleted when the process ends."""


class MappedTexts(Sequence[str]):
    """A column of a memory-mapped table, read block by block and never held in memory as a whole.

    Args:
        source: the table, a ``datasets.Dataset``.
        column_name: the name of the column.
    """

    def __init__(self, source: Any, column_name: str) -> None:
        self.source = source
        self.column_name = column_name
        self._column = source.select_columns(column_name)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of one row, or a list of the texts of several, for a slice or a list."""
        return self._column[rows][self.column_name]

    def take(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of these rows, in the order given; neighbouring rows are read faster."""
        # Rows spread over more than ten times their number are read one by one, others from one slice.
        if not len(rows) or (first := int(rows.min())) + 10 * len(rows) < (last := int(rows.max())):
            return list(self[rows.tolist()])
        neighbours = self._column.data.column(self.column_name).slice(first, last + 1 - first)
        texts: list[str] = neighbours.take(rows - first).to_pylist()
        return texts

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self[start : start + BLOCK] for start in range(0, len(self), BLOCK))


def collect_texts(texts: Iterable[str], *, once: bool) -> Sequence[str]:
    """Collect texts in their order; with ``once``, only the first of equal texts.

    More than :data:`MOST_IN_MEMORY` texts are memory-mapped from a temporary file; OutputError if the disk is full.
    """
    keys = array("q")  # 64-bit hashes: among 100 million texts, a collision has a probability of 0.0003

    def hashed() -> Iterator[tuple[str]]:
        for text in texts:
            if once:
                keys.append(hash(text))
            yield (text,)

    (collected,) = collect_columns(hashed(), [COLUMN])
    if not once:
        return collected
    if not is_mapped(collected):
        return list(dict.fromkeys(collected))
    # Sorted, so that texts stay in the order of their first occurrence.
    rows = np.sort(np.unique(np.frombuffer(keys, np.int64), return_index=True)[1])
    if len(rows) == len(collected):
        return collected
    return take_rows([collected], rows)[0]


def collect_columns(rows: Iterable[Sequence[str]], names: Sequence[str]) -> list[Sequence[str]]:
    """Return rows of texts as columns with these names: lists, or memory-mapped as for :func:`collect_texts`."""
    remaining = iter(rows)
    # A row counts as many texts as it has columns.
    limit = MOST_IN_MEMORY // len(names)
    first = deque(islice(remaining, limit + 1))
    if len(first) > limit:
        table = _write_table(chain(_drain(first), remaining), names)
        return [MappedTexts(table, name) for name in names]
    return [list(column) for column in zip(*first, strict=True)] or [[] for _ in names]


def is_mapped(texts: Sequence[Any]) -> TypeGuard[MappedTexts]:
    """Return whether texts are memory-mapped from a file."""
    return isinstance(texts, MappedTexts)


def collect_numbers(values: Iterable[Any], *, beside: Sequence[str], whole: bool = False) -> Sequence[Any]:
    """Return numbers as a list, or as an array of 8 bytes each if the texts ``beside`` them are memory-mapped."""
    if not is_mapped(beside):
        return list(values)
    return array("q" if whole else "d", values)


def take_texts(texts: Sequence[str], rows: Iterable[int]) -> list[str]:
    """Return the texts of these rows, in the order given."""
    if is_mapped(texts):
        return texts.take(np.fromiter(rows, np.int64))
    return [texts[row] for row in rows]


def take_rows(columns: Sequence[Sequence[str]], rows: Iterable[int]) -> list[Sequence[str]]:
    """Return these rows of columns, in the order given; many rows of mapped columns are mapped again."""
    indices = np.fromiter(rows, np.int64)
    if not any(map(is_mapped, columns)):
        return [take_texts(column, indices) for column in columns]
    return collect_columns(iterate_rows(columns, indices), [str(number) for number in range(len(columns))])


def iterate_rows(columns: Sequence[Sequence[str]], rows: npt.NDArray[np.intp]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of these rows, one from each column; they are read in blocks."""
    for start in range(0, len(rows), BLOCK):
        yield from zip(*(take_texts(column, rows[start : start + BLOCK]) for column in columns), strict=True)


def _drain(items: deque[Any]) -> Iterator[Any]:
    """Yield the items and remove each, so that its memory can be freed."""
    while items:
        yield items.popleft()


def _write_table(rows: Iterator[Sequence[str]], names: Sequence[str]) -> Any:
    # Loaded where texts go to a file alone.
    import pyarrow as pa

    datasets = imported("datasets", "train")
    _FOLDERS.append(ScratchFolder())
    path = Path(_FOLDERS[-1].name) / "texts.arrow"
    schema = pa.schema([(name, pa.large_string()) for name in names])
    # As an Arrow stream, which datasets maps without copying.
    with writing(path), pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while block := list(islice(rows, BLOCK)):
            columns = [pa.array(column, pa.large_string()) for column in zip(*block, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return datasets.Dataset.from_file(str(path))
