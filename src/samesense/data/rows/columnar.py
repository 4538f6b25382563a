"""Reads rows of columnar tables: Parquet, and Arrow in memory or in a folder of ``datasets``.

A column is decoded when one of its cells is first read, so that unread columns cost nothing. Damaged data raise a
DataError with the file, the column and the row.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.data.conventions.column_names import is_index
from samesense.data.conventions.named_columns import listed
from samesense.data.rows.delimited import refuse_repeated
from samesense.data.rows.text import LONGEST_ROW
from samesense.errors import DataError
from samesense.parquet.arrays import most_bytes, values_of
from samesense.parquet.limits import BLOCK_BYTES
from samesense.parquet.table import FIX, ParquetTable, damage, reason_of

if TYPE_CHECKING:
    import pyarrow as pa


BATCH = 1024
"""Rows of an Arrow table that are converted to Python objects at once."""


Convert = Callable[[Any], object]
"""Converts a value of a column."""

UNLABELLED = "-"
"""Cell for a class label of -1, by which ``datasets`` marks a hidden or missing label."""


def class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, Convert]:
    """Return what gives the class labels of a table their names, by column.

    ``datasets`` stores class labels as integers, and their names in the metadata of the Arrow schema. Metadata that
    are written otherwise are ignored.
    """
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        labels = {name: feature for name, feature in features.items() if feature.get("_type") == "ClassLabel"}
        return to_names({name: list(map(str, feature["names"])) for name, feature in labels.items()})
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return {}


def to_names(names: Mapping[str, Sequence[str]]) -> dict[str, Convert]:
    """Return functions that give class labels their names, for the names of the classes of each column."""
    return {column: partial(_label_name, names=values) for column, values in names.items()}


def _label_name(value: Any, names: Sequence[str]) -> object:
    # A column of another type than that of the metadata is kept as it is.
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if 0 <= value < len(names):
        return names[value]
    if value == -1:
        return UNLABELLED
    return value


class _Block(ABC):
    """A block of consecutive rows, stored by column: the names of its columns, and what converts their values."""

    def __init__(self, names: tuple[str, ...], name_set: frozenset[str], converted: Mapping[str, Convert]) -> None:
        self.names = names
        self.name_set = name_set
        self._converted = converted

    @abstractmethod
    def value(self, name: str, offset: int) -> object:
        """Return the cell of a column in the row at this offset, from 0; KeyError if there is no such column."""

    @abstractmethod
    def _type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""

    def may_hold_texts(self, name: str) -> bool:
        """Return whether the type of a column allows texts."""
        return name in self._converted or _is_textual(self._type_of(name))

    def may_nest_texts(self, name: str) -> bool:
        """Return whether the type of a column allows objects or lists that hold texts."""
        return _nests_texts(self._type_of(name))


class Cells(Mapping[str, object]):
    """The cells of a row by column name; a cell is decoded when it is first read."""

    __slots__ = ("_offset", "_values", "block")

    def __init__(self, block: _Block, offset: int) -> None:
        self.block = block
        self._offset = offset
        self._values: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        values = self._values
        if name not in values:
            values[name] = self.block.value(name, self._offset)
        return values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return the cell in a column, or ``default`` if there is no such column."""
        values = self._values
        if name not in values:
            try:
                values[name] = self.block.value(name, self._offset)
            except KeyError:
                return default
        return values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.block.names)

    def __len__(self) -> int:
        return len(self.block.names)

    def __contains__(self, name: object) -> bool:
        return name in self.block.name_set

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns; the rows of a block share this object."""
        return self.block.names

    def __repr__(self) -> str:
        return f"Cells({listed(self.block.names)})"


def may_hold_texts(cells: Mapping[str, object], name: str) -> bool:
    """Return whether the type of a column allows texts; true if the source has no types. Nothing is decoded."""
    return not isinstance(cells, Cells) or cells.block.may_hold_texts(name)


def may_nest_texts(cells: Mapping[str, object], name: str) -> bool:
    """Return whether the type of a column allows objects or lists that hold texts; true if the source has no types."""
    return not isinstance(cells, Cells) or cells.block.may_nest_texts(name)


class ArrowBlock(_Block):
    """Rows of an Arrow table.

    Args:
        table: the rows.
        source: name of the table in messages.
        first: number of the first row.
        converted: functions that convert the values of a column, by column name.
    """

    def __init__(
        self,
        table: pa.Table,
        source: str,
        first: int = 1,
        converted: Mapping[str, Convert] | None = None,
    ) -> None:
        names = tuple(name for name in table.column_names if not is_index(name))
        super().__init__(names, frozenset(names), converted or {})
        self._table = table
        self._source = source
        self._first = first
        self._columns: dict[str, list[object]] = {}

    def rows(self) -> Iterator[tuple[int, Cells]]:
        """Yield the rows with their numbers."""
        for offset in range(self._table.num_rows):
            yield self._first + offset, Cells(self, offset)

    def value(self, name: str, offset: int) -> object:
        """Return the cell of a column in the row at this offset."""
        if name not in self._columns:
            if name not in self.name_set:
                raise KeyError(name)
            location = _Location(self._source, name, self._first)
            # A table of several chunks is decoded chunk by chunk, without joining them.
            column = [value for chunk in self._table.column(name).chunks for value in decoded(chunk, location)]
            convert = self._converted.get(name)
            self._columns[name] = column if convert is None else [convert(value) for value in column]
        return self._columns[name][offset]

    def _type_of(self, name: str) -> pa.DataType:
        return self._table.schema.field(name).type


class _Location:
    """Source, column and first row of an array of values, for messages."""

    def __init__(self, source: str, column: str, row: int) -> None:
        self.source = source
        self.column = column
        self.row = row

    def error(self, reason: object, offset: int | None = None) -> DataError:
        row = "" if offset is None else f", row {self.row + offset}"
        return DataError(f"{self.source}{row}, column {self.column!r}: the cells are damaged ({reason}). {FIX}")

    def too_large(self, size: int, offset: int) -> DataError:
        return DataError(
            f"{self.source}, row {self.row + offset}, column {self.column!r}: a cell has at most "
            f"{LONGEST_ROW // 2**20} MB, and this one has {size / 2**20:,.1f}. Shorten it, or leave the column out."
        )


def decoded(array: pa.Array, location: _Location) -> list[object]:
    """Return the values of an array; DataError, with the row, if one is damaged or larger than a row may be."""
    try:
        # Decoding invalid Arrow data could crash the process.
        array.validate(full=True)
        _check_sizes(array, location)
        return values_of(array)
    except DataError:
        raise
    except damage() as error:
        raise _first_damaged(array, location) or location.error(reason_of(error)) from error


def _first_damaged(array: pa.Array, location: _Location) -> DataError | None:
    """Return the error of the first value that cannot be decoded."""
    for offset in range(len(array)):
        try:
            value = array.slice(offset, 1)
            value.validate(full=True)
            values_of(value)
        except damage() as error:
            return location.error(reason_of(error), offset)
    return None


def _check_sizes(array: pa.Array, location: _Location) -> None:
    """Raise DataError for a value larger than a row may be."""
    # The size of the whole array is known at once, and nearly always small enough.
    if most_bytes(array) <= LONGEST_ROW:
        return
    for offset in range(len(array)):
        size = most_bytes(array.slice(offset, 1))
        if size > LONGEST_ROW:
            raise location.too_large(size, offset)


def _is_textual(kind: pa.DataType) -> bool:
    """Return whether values of a type may be texts."""
    import pyarrow as pa

    # An extension type, such as arrow.json, stores values of another type.
    if isinstance(kind, pa.BaseExtensionType):
        return _is_textual(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _is_textual(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _nests_texts(kind: pa.DataType) -> bool:
    """Return whether values of a type are objects or lists that may hold texts."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _nests_texts(kind.value_type) or _is_textual(kind.value_type)
    return bool(pa.types.is_struct(kind))


def parquet_rows(path: str | Path, first: int = 0) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of a Parquet file; row groups that end before the row ``first``, from 0, are skipped.

    Raises:
        DataError: if the file is damaged, or a page, cell or column would need far more memory than the file; for
            cells, when they are read.
    """
    table = ParquetTable(path)
    # Two columns of one name would give a row one cell less.
    refuse_repeated(table.path, list(table.names))
    names = tuple(name for name in table.names if not is_index(name))
    name_set = frozenset(names)
    converted = class_names(table.metadata)
    for index, start in enumerate(table.starts):
        rows = table.sizes[index]
        # A group that is skipped is not even opened.
        if start + rows > first:
            group = _Group(table, index, names, name_set, converted)
            for offset in range(rows):
                yield start + offset + 1, Cells(group, offset)


class _Group(_Block):
    """A row group of a Parquet file."""

    def __init__(
        self,
        table: ParquetTable,
        index: int,
        names: tuple[str, ...],
        name_set: frozenset[str],
        converted: Mapping[str, Convert],
    ) -> None:
        super().__init__(names, name_set, converted)
        self._table = table
        self._index = index
        self._columns: dict[str, _Column] = {}

    def value(self, name: str, offset: int) -> object:
        column = self._columns.get(name)
        if column is None:
            if name not in self.name_set:
                raise KeyError(name)
            column = _Column(self._table, self._index, name, self._converted.get(name))
            self._columns[name] = column
        # The usual case, without a further call for each cell.
        if column.values is not None and column.start <= offset < column.end:
            return column.values[offset - column.start]
        return column.value(offset)

    def _type_of(self, name: str) -> pa.DataType:
        return self._table.type_of(name)


class _Column:
    """A column of a row group, read block by block as the rows are read."""

    def __init__(self, table: ParquetTable, group: int, name: str, convert: Convert | None) -> None:
        self._table = table
        self._group = group
        self._name = name
        self._convert = convert
        self._blocks: Iterator[pa.Array] | None = None
        self.start = 0
        self.end = 0
        self._array: Any = None
        self.values: Sequence[object] | None = None  # of the block, if it is small enough to decode as a whole

    def value(self, offset: int) -> object:
        if not self.start <= offset < self.end:
            self._seek(offset)
        if self.values is not None:
            return self.values[offset - self.start]
        return self._decoded(self._array.slice(offset - self.start, 1), offset)[0]

    def _decoded(self, array: pa.Array, offset: int) -> list[object]:
        """Return the values of an array whose first value is in the row at this offset."""
        values = decoded(array, self._location(offset))
        return values if self._convert is None else [self._convert(value) for value in values]

    def _location(self, offset: int) -> _Location:
        return _Location(self._table.path, self._name, self._table.starts[self._group] + offset + 1)

    def _seek(self, offset: int) -> None:
        """Advance to the block with this row, from the first block again if the row is before the current one."""
        if self._blocks is None or offset < self.start:
            self._blocks = self._table.blocks(self._group, self._name)
            self.start = 0
            self.end = 0
        while offset >= self.end:
            self._array = next(self._blocks, None)
            if self._array is None:
                self._blocks = None
                raise self._location(self.end).error("the column ends before this row", 0)
            self.start = self.end
            self.end += len(self._array)
        shares_texts = _is_textual(self._array.type)  # equal texts of a dictionary column share one object
        decode_all = shares_texts or most_bytes(self._array) <= BLOCK_BYTES
        self.values = self._decoded(self._array, self.start) if decode_all else None


def arrow_rows(
    tables: Iterable[pa.Table], source: str, converted: Mapping[str, Convert] | None = None
) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of tables, one after the other, numbered from 1; see :class:`ArrowBlock`."""
    number = 1
    remaining = iter(tables)
    damages = damage()
    while True:
        try:
            # Reading the next batch may fail, so a for loop would not do.
            table = next(remaining, None)
        except damages as error:
            raise DataError(
                f"{source}, after row {number - 1}: the table is damaged ({reason_of(error)}). {FIX}"
            ) from error
        if table is None:
            return
        yield from ArrowBlock(table, source, number, converted).rows()
        number += table.num_rows
