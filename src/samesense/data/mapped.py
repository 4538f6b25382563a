"""Texts that memory need not hold: in a table that is mapped from a file, where there are many."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from samesense.failures import imported, writing

MOST_IN_MEMORY = 1_000_000
"""Texts that lists hold; more are put into a file."""

BLOCK = 10_000
"""Rows that are written or read at a time."""

COLUMN = "sentence"

_PLACES: list[TemporaryDirectory[str]] = []
"""Folders of such files, which are deleted when the process ends."""


class MappedTexts(Sequence[str]):
    """A column of a table that is mapped from a file; read block by block, and never held as a whole.

    Args:
        source: the table, a ``datasets.Dataset``.
        column_name: the name of the column.
    """

    def __init__(self, source: Any, column_name: str) -> None:
        self.source, self.column_name = source, column_name
        self._alone = source.select_columns(column_name)

    def __len__(self) -> int:
        return len(self._alone)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of a row, or a list of those of several, by a slice or a list."""
        return self._alone[rows][self.column_name]

    def at(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of these rows, in the order given; those that stand near each other quickly."""
        if not len(rows) or (first := int(rows.min())) + 10 * len(rows) < (last := int(rows.max())):
            return list(self[rows.tolist()])
        near = self._alone.data.column(self.column_name).slice(first, last + 1 - first)
        found: list[str] = near.take(rows - first).to_pylist()
        return found

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self[start : start + BLOCK] for start in range(0, len(self), BLOCK))


def gathered(texts: Iterable[str], *, once: bool) -> Sequence[str]:
    """Return texts in their order, of equal ones the first where they shall be there ``once``.

    More than :data:`MOST_IN_MEMORY` are mapped from a file among the temporary ones of this machine; OutputError if
    that has no room.
    """
    keys = array("q")  # 64 bits: of 100 million texts, two differ and have one key with a probability of 0.0003

    def noted() -> Iterator[tuple[str]]:
        for text in texts:
            if once:
                keys.append(hash(text))
            yield (text,)

    (found,) = columns_of(noted(), [COLUMN])
    if not once or not is_mapped(found):
        return list(dict.fromkeys(found)) if once else found
    rows = np.sort(np.unique(np.frombuffer(keys, np.int64), return_index=True)[1])
    return found if len(rows) == len(found) else rows_of([found], rows)[0]


def columns_of(rows: Iterable[Sequence[str]], names: Sequence[str]) -> list[Sequence[str]]:
    """Return rows of texts as columns of these names: lists, or mapped from one file as :func:`gathered` says."""
    every, most = iter(rows), MOST_IN_MEMORY // len(names)
    first = deque(islice(every, most + 1))
    if len(first) > most:
        table = _written(chain(_emptied(first), every), names)
        return [MappedTexts(table, name) for name in names]
    return [list(column) for column in zip(*first, strict=True)] or [[] for _ in names]


def is_mapped(texts: Sequence[Any]) -> TypeGuard[MappedTexts]:
    """Return whether texts stand in a file."""
    return isinstance(texts, MappedTexts)


def taken(texts: Sequence[str], rows: Iterable[int]) -> list[str]:
    """Return the texts of these rows, in the order given."""
    return texts.at(np.fromiter(rows, np.int64)) if is_mapped(texts) else [texts[row] for row in rows]


def rows_of(columns: Sequence[Sequence[str]], rows: Iterable[int]) -> list[Sequence[str]]:
    """Return these rows of columns, in the order given; of mapped ones, as many as no list should hold are mapped."""
    chosen = np.fromiter(rows, np.int64)
    if not any(map(is_mapped, columns)):
        return [taken(column, chosen) for column in columns]
    return columns_of(in_order(columns, chosen), [str(at) for at in range(len(columns))])


def in_order(columns: Sequence[Sequence[str]], rows: npt.NDArray[np.intp]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of these rows, one of each column, read block by block."""
    for start in range(0, len(rows), BLOCK):
        yield from zip(*(taken(column, rows[start : start + BLOCK]) for column in columns), strict=True)


def _emptied(held: deque[Any]) -> Iterator[Any]:
    """Yield what is held, and hold it no longer."""
    while held:
        yield held.popleft()


def _written(rows: Iterator[Sequence[str]], names: Sequence[str]) -> Any:
    import pyarrow as pa

    datasets = imported("datasets", "train")
    _PLACES.append(TemporaryDirectory(prefix="samesense-", ignore_cleanup_errors=True))
    path, schema = Path(_PLACES[-1].name) / "texts.arrow", pa.schema([(name, pa.large_string()) for name in names])
    with writing(path), pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while block := list(islice(rows, BLOCK)):
            columns = [pa.array(column, pa.large_string()) for column in zip(*block, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
    return datasets.Dataset.from_file(str(path))
