"""Rows of tables that are stored by columns: Parquet, and Arrow in memory or in a folder of datasets.

A column is decoded when a row is first asked for its cell, so that columns that no one reads cost nothing; the names of
all columns are there. What is damaged is a DataError with the file, the column and the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from samesense.data.formats.columns import is_index, listed
from samesense.data.formats.delimited import refuse_repeated
from samesense.data.formats.lines import LONGEST_ROW
from samesense.errors import DataError
from samesense.parquet import BLOCK_BYTES, FIX, ParquetTable, damage, most_bytes, reason_of, values_of

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1024
"""Rows of an Arrow table whose cells are turned into Python objects at once."""


class _Block(Protocol):
    """Rows that stand together, column by column."""

    names: tuple[str, ...]
    known: frozenset[str]

    def value(self, name: str, offset: int) -> object:
        """Return the cell of a row, from 0, in a column; KeyError if there is no such column."""

    def may_hold_texts(self, name: str) -> bool:
        """Return whether the type of a column is one that texts have."""


class Cells(Mapping[str, object]):
    """The cells of a row by the names of their columns; each is decoded when it is first asked for."""

    __slots__ = ("_block", "_offset", "_values")

    def __init__(self, block: _Block, offset: int) -> None:
        self._block = block
        self._offset = offset
        self._values: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        values = self._values
        if name not in values:
            values[name] = self._block.value(name, self._offset)
        return values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the cell in a column, or ``default`` if there is no such column."""
        values = self._values
        if name not in values:
            try:
                values[name] = self._block.value(name, self._offset)
            except KeyError:
                return default
        return values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._block.names)

    def __len__(self) -> int:
        return len(self._block.names)

    def __contains__(self, name: object) -> bool:
        return name in self._block.known

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns: one object for the rows that stand together."""
        return self._block.names

    def may_hold_texts(self, name: str) -> bool:
        """Return whether the type of a column is one that texts have; nothing is decoded."""
        return self._block.may_hold_texts(name)

    def __repr__(self) -> str:
        return f"Cells({listed(self._block.names)})"


def row_names(cells: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of a row's columns: one object for all rows of a table that is stored by columns."""
    return cells.names if isinstance(cells, Cells) else tuple(cells)


def may_hold_texts(cells: Mapping[str, object], name: str) -> bool:
    """Return whether a column may hold texts by its type; yes where the source has no types."""
    return not isinstance(cells, Cells) or cells.may_hold_texts(name)


class ArrowBlock:
    """Rows of an Arrow table.

    Args:
        table: the rows.
        source: what messages call the table.
        first: number of the first row.
        converted: what a value of a column becomes, where that is not the value itself.
    """

    def __init__(
        self,
        table: pa.Table,
        source: str,
        first: int = 1,
        converted: Mapping[str, Callable[[Any], object]] | None = None,
    ) -> None:
        self.names = tuple(name for name in table.column_names if not is_index(name))
        self.known = frozenset(self.names)
        self._table = table
        self._source = source
        self._first = first
        self._converted = converted or {}
        self._columns: dict[str, list[object]] = {}

    def rows(self) -> Iterator[tuple[int, Cells]]:
        """Yield the rows with their numbers."""
        for offset in range(self._table.num_rows):
            yield self._first + offset, Cells(self, offset)

    def value(self, name: str, offset: int) -> object:
        """Return the cell of a row in a column."""
        if name not in self._columns:
            if name not in self.known:
                raise KeyError(name)
            column = [value for chunk in self._table.column(name).chunks for value in self._decoded(name, chunk)]
            convert = self._converted.get(name)
            self._columns[name] = column if convert is None else [convert(value) for value in column]
        return self._columns[name][offset]

    def _decoded(self, name: str, chunk: pa.Array) -> list[object]:
        with_row = _Place(self._source, name, self._first)
        return decoded(chunk, with_row)

    def may_hold_texts(self, name: str) -> bool:
        """Return whether the type of a column is one that texts have."""
        return name in self._converted or _is_textual(self._table.schema.field(name).type)


class _Place:
    """Where an array of values comes from, for messages."""

    def __init__(self, source: str, column: str, row: int) -> None:
        self.source, self.column, self.row = source, column, row

    def error(self, reason: object, offset: int | None = None) -> DataError:
        row = "" if offset is None else f", row {self.row + offset}"
        return DataError(f"{self.source}{row}, column {self.column!r}: the cells are damaged ({reason}). {FIX}")

    def too_large(self, size: int, offset: int) -> DataError:
        return DataError(
            f"{self.source}, row {self.row + offset}, column {self.column!r}: a cell has at most "
            f"{LONGEST_ROW // 2**20} MB, and this one has {size / 2**20:,.1f}. Shorten it, or leave the column out."
        )


def decoded(array: pa.Array, place: _Place) -> list[object]:
    """Return the values of an array; DataError, with the row, if one is damaged or larger than a row may be."""
    try:
        array.validate(full=True)
        _check_sizes(array, place)
        return values_of(array)
    except DataError:
        raise
    except damage() as error:
        raise _first_damaged(array, place) or place.error(reason_of(error)) from error


def _first_damaged(array: pa.Array, place: _Place) -> DataError | None:
    """Return the error of the first value that cannot be decoded."""
    for offset in range(len(array)):
        try:
            value = array.slice(offset, 1)
            value.validate(full=True)
            values_of(value)
        except damage() as error:
            return place.error(reason_of(error), offset)
    return None


def _check_sizes(array: pa.Array, place: _Place) -> None:
    """Raise DataError for a value larger than a row may be."""
    if most_bytes(array) <= LONGEST_ROW:
        return
    for offset in range(len(array)):
        size = most_bytes(array.slice(offset, 1))
        if size > LONGEST_ROW:
            raise place.too_large(size, offset)


def _is_textual(kind: pa.DataType) -> bool:
    """Return whether values of a type may be texts."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _is_textual(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _is_textual(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parquet_rows(path: str | Path, first: int = 0) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of a Parquet file; groups of rows that end before the row ``first``, from 0, are not read.

    Raises:
        DataError: if the file is damaged, or a page, cell or column of it would take far more memory than the file; for
            the cells, when they are asked for.
    """
    table = ParquetTable(path)
    refuse_repeated(table.path, list(table.names))
    names = tuple(name for name in table.names if not is_index(name))
    known = frozenset(names)
    for index, start in enumerate(table.starts):
        rows = table.sizes[index]
        if start + rows > first:
            group = _Group(table, index, names, known)
            for offset in range(rows):
                yield start + offset + 1, Cells(group, offset)


class _Group:
    """A group of rows of a Parquet file."""

    def __init__(self, table: ParquetTable, index: int, names: tuple[str, ...], known: frozenset[str]) -> None:
        self.names = names
        self.known = known
        self._table = table
        self._index = index
        self._columns: dict[str, _Column] = {}

    def value(self, name: str, offset: int) -> object:
        """Return the cell of a row in a column."""
        column = self._columns.get(name)
        if column is None:
            if name not in self.known:
                raise KeyError(name)
            column = self._columns[name] = _Column(self._table, self._index, name)
        if column.values is not None and column.start <= offset < column.end:
            return column.values[offset - column.start]
        return column.value(offset)

    def may_hold_texts(self, name: str) -> bool:
        """Return whether the type of a column is one that texts have."""
        return _is_textual(self._table.type_of(name))


class _Column:
    """What a group of rows has of a column, read block by block as the rows go by."""

    def __init__(self, table: ParquetTable, group: int, name: str) -> None:
        self._table = table
        self._group = group
        self._name = name
        self._blocks: Iterator[pa.Array] | None = None
        self.start = self.end = 0
        self._array: Any = None
        self.values: Sequence[object] | None = None  # of the block, if they may all be in memory

    def value(self, offset: int) -> object:
        if not self.start <= offset < self.end:
            self._seek(offset)
        if self.values is not None:
            return self.values[offset - self.start]
        return decoded(self._array.slice(offset - self.start, 1), self._place(offset))[0]

    def _place(self, offset: int) -> _Place:
        return _Place(self._table.path, self._name, self._table.starts[self._group] + offset + 1)

    def _seek(self, offset: int) -> None:
        """Go on to the block that has a row, or begin anew if it was passed."""
        if self._blocks is None or offset < self.start:
            self._blocks = self._table.blocks(self._group, self._name)
            self.start = self.end = 0
        while offset >= self.end:
            self._array = next(self._blocks, None)
            if self._array is None:
                self._blocks = None
                raise self._place(self.end).error("the column ends before this row", 0)
            self.start, self.end = self.end, self.end + len(self._array)
        shared = _is_textual(self._array.type)  # a text of a dictionary is there once
        whole = shared or most_bytes(self._array) <= BLOCK_BYTES
        self.values = decoded(self._array, self._place(self.start)) if whole else None


def arrow_rows(
    tables: Iterable[pa.Table], source: str, converted: Mapping[str, Callable[[Any], object]] | None = None
) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of tables, one after the other, numbered from 1; see :class:`ArrowBlock`."""
    number = 1
    remaining = iter(tables)
    damages = damage()
    while True:
        try:
            table = next(remaining, None)
        except damages as error:
            raise DataError(
                f"{source}, after row {number - 1}: the table is damaged ({reason_of(error)}). {FIX}"
            ) from error
        if table is None:
            return
        yield from ArrowBlock(table, source, number, converted).rows()
        number += table.num_rows
