"""Parquet from anywhere: how much memory a column takes is known from the heads of its pages, before one is unpacked.

A page says its size packed and unpacked, and how many values it holds. The footer says that too, but pyarrow unpacks
what the page says, so only the page can be relied on. pyarrow does not show the heads of pages, so they are read here.

Source: https://github.com/apache/parquet-format, ``parquet.thrift`` and the compact protocol of Thrift.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from samesense.errors import DataError
from samesense.failures import DAMAGED, shortened
from samesense.urls import open_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK_BYTES = 64 * 2**20
"""Bytes that a block of values may take once it is decoded."""

BLOCK_ROWS = 4096
"""Rows of a block, at most."""

BLOCK_CELLS = 2**20
"""Cells of the blocks of all columns together, where these are many."""

LARGEST_PAGE = 256 * 2**20
"""Bytes of an unpacked page that are allowed for any packed size."""

PAGE_RATIO = 20
"""How many times its packed size a page that is larger than :data:`LARGEST_PAGE` may have."""

ELEMENT_BYTES = 12
"""Bytes that an element of a list takes while it is decoded: its levels, and a number."""

ELEMENT_RATIO = 100
"""How many times their packed size the elements of lists may take, if that is more than :data:`LARGEST_PAGE`."""

ROWS_A_BYTE = 100
"""Rows that a file may have for each of its bytes: no column of texts has more."""

FEW_ROWS = 1_000_000
"""Rows that a file of any size may have."""

LARGEST_TOTAL = 2**30
"""Bytes of the values of a column that may be read from a file of any size."""

TOTAL_RATIO = 1000
"""How many times the size of its file the values of a column may have, as with gzip."""

FIX = "Download or write it again."
"""What can be done about a damaged file."""

_LARGEST_HEAD = 16 * 2**20  # pyarrow's own limit
_FEWEST_ROWS = 64  # of a block, however many columns there are
_BUFFER = 2**20  # bytes that are read at once, so that a dictionary is read without the rest
_SMALL_DICTIONARY = 16 * 1024  # bytes of a dictionary whose values are copied into each row
_DELTA = 7  # DELTA_BYTE_ARRAY: a value repeats the beginning of the one before it
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3


@dataclass(frozen=True)
class Page:
    """What the head of a page says: its kind, its bytes packed and unpacked, its values, and how they are written."""

    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int


def pages(stream: IO[bytes], chunk: pq.ColumnChunkMetaData, name: str) -> Iterator[Page]:
    """Yield the pages of the part of a column that one group of rows has; DataError if they are damaged."""
    position = chunk.data_page_offset
    # As in pyarrow: some writers give an offset of 0 where there is no dictionary.
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < position:
        position = chunk.dictionary_page_offset
    end = position + chunk.total_compressed_size
    values = 0
    while values < chunk.num_values and position < end:
        fields, length = _head(stream, position, name)
        # The head of a data page, of one of version 2, or of a dictionary, as numbered in parquet.thrift.
        data = fields.get(5) or fields.get(8) or fields.get(7) or {}
        page = Page(
            kind=_number(fields, 1),
            unpacked=_number(fields, 2),
            packed=_number(fields, 3),
            values=_number(data, 1),
            # Version 2 has the numbers of nulls and rows before its encoding.
            encoding=_number(data, 4 if 8 in fields else 2),
        )
        if min(page.unpacked, page.packed, page.values) < 0:
            raise DataError(
                f"{name}: this is not a whole Parquet file (a page has no size). Download or write it again."
            )
        yield page
        # The values of a dictionary page are not those of rows.
        values += page.values if page.kind in (_DATA, _DATA_V2) else 0
        position += length + page.packed


@dataclass(frozen=True)
class Bounds:
    """How a block of a column is read: its rows, and whether dictionary texts are decoded once or in each row."""

    rows: int
    as_dictionary: bool


def bounds(
    stream: IO[bytes], chunks: Sequence[pq.ColumnChunkMetaData], widths: Sequence[int], rows: int, location: str
) -> Bounds:
    """Return how the parts that a column has in a group of rows are read within :data:`BLOCK_BYTES`.

    Args:
        stream: the file.
        chunks: one for each leaf of the type of the column; several of a struct.
        widths: bytes of a value of each leaf that has a fixed length, else 0.
        rows: of the group.
        location: what messages call the column.

    Raises:
        DataError: if a page, or the lists of a row, would take far more memory than the file.
    """
    size = 1
    as_dictionary = False
    for chunk, width in zip(chunks, widths, strict=True):
        leaf = _Leaf(width)
        for page in pages(stream, chunk, location):
            _check_page(page, location)
            leaf.add(page)
        # Values beyond one a row can only be elements of lists.
        _check_elements(leaf.values - rows, chunk.total_compressed_size, location)
        size = max(size, leaf.largest_row(rows))
        as_dictionary |= leaf.has_large_dictionary
    return Bounds(max(1, min(BLOCK_ROWS, BLOCK_BYTES // size)), as_dictionary)


class _Leaf:
    """What the pages of a leaf say of the memory that its values take."""

    def __init__(self, width: int) -> None:
        self.values = 0
        self._width = width
        self._dictionary = 0
        self._density = 0.0

    def add(self, page: Page) -> None:
        if page.kind == _DICTIONARY:
            self._dictionary = page.unpacked
        if page.kind not in (_DATA, _DATA_V2) or not page.values:
            return
        self.values += page.values
        # one value may repeat all the bytes of those before it
        repeated = page.unpacked if page.encoding == _DELTA else page.unpacked / page.values
        self._density = max(self._density, repeated)

    @property
    def has_large_dictionary(self) -> bool:
        return not self._width and self._dictionary > _SMALL_DICTIONARY

    def largest_row(self, rows: int) -> int:
        """Return the bytes of a row as far as the pages tell: of lists, on average."""
        # Values of a small dictionary are copied into each row, and one may be nearly all of it.
        dictionary = 0 if self.has_large_dictionary or self._width else self._dictionary
        elements = -(-self.values // max(rows, 1))
        return int(max(self._density, dictionary, self._width)) * max(elements, 1)


def _check_page(page: Page, location: str) -> None:
    if page.unpacked > max(LARGEST_PAGE, PAGE_RATIO * page.packed):
        raise DataError(
            f"{location}: a page of {page.packed:,} bytes would take {page.unpacked / 2**20:,.0f} MB unpacked; at most "
            f"{LARGEST_PAGE // 2**20} MB, or {PAGE_RATIO} times its size, are read. Write the file again with smaller "
            "pages, or as JSON lines."
        )


def _check_elements(elements: int, packed: int, location: str) -> None:
    if elements * ELEMENT_BYTES > max(LARGEST_PAGE, ELEMENT_RATIO * packed):
        raise DataError(
            f"{location}: lists of {elements:,} elements stand in {packed:,} bytes, which is too many to be texts or "
            "vectors. Leave the column out, or write the file again as JSON lines."
        )


def leaf_count(kind: pa.DataType) -> int:
    """Return how many columns of the file hold a column of this type: several for a struct."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return 1
    return sum(leaf_count(kind.field(index).type) for index in range(kind.num_fields)) if kind.num_fields else 1


def check_rows(rows: int, size: int, name: str) -> None:
    """Raise DataError if a file of ``size`` bytes says that it has more rows than texts can be in it."""
    if rows > max(FEW_ROWS, ROWS_A_BYTE * size):
        raise DataError(
            f"{name}: {rows:,} rows stand in {size:,} bytes, which is too many to be rows of texts. Write it again."
        )


def most_bytes(array: pa.Array) -> int:
    """Return the bytes that the values of an array take at most, a text of a dictionary as often as it stands there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ExtensionArray):
        return most_bytes(array.storage)
    if isinstance(array, pa.DictionaryArray):
        used = array.indices.drop_null()
        if not _has_lengths(array.dictionary.type):
            # An upper bound: one value is taken to be as large as the whole dictionary.
            return len(used) * most_bytes(array.dictionary)
        return pc.sum(pc.binary_length(array.dictionary).take(used)).as_py() or 0
    if _has_lengths(array.type):
        return pc.sum(pc.binary_length(array)).as_py() or 0
    if isinstance(array, pa.MapArray):
        # The children of a slice are those of the whole array, so its own part is cut out.
        start, end = (array.offsets[index].as_py() for index in (0, -1))
        return sum(most_bytes(child.slice(start, end - start)) for child in (array.keys, array.items)) + len(array)
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return most_bytes(array.flatten()) + len(array)
    if isinstance(array, pa.StructArray):
        return sum(map(most_bytes, array.flatten()))
    return int(array.nbytes)


def _has_lengths(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def values_of(array: pa.Array) -> list[object]:
    """Return the values of an array; those of a dictionary are decoded once, however often they stand there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(array, pa.DictionaryArray):
        return list(array.to_pylist())
    indices = array.indices
    distinct = pc.unique(indices).drop_null()
    dictionary = array.dictionary
    # Arrow does not take from views, which polars gives for categories.
    if pa.types.is_string_view(dictionary.type):
        dictionary = dictionary.cast(pa.large_string())
    texts = dict(zip(distinct.to_pylist(), dictionary.take(distinct).to_pylist(), strict=True))
    return [None if index is None else texts[index] for index in indices.to_pylist()]


def check_total(total: int, size: int, location: str) -> None:
    """Raise DataError if the values of a column take far more memory than their file of ``size`` bytes."""
    if total > max(LARGEST_TOTAL, TOTAL_RATIO * size):
        raise DataError(
            f"{location}: up to here the column takes {total / 2**30:,.1f} GB unpacked, and the file {size:,} bytes, "
            "which is no table of texts. If it is, write JSON lines."
        )


class ParquetTable:
    """A Parquet file that is open for as long as this object, or a block of it, is held.

    Args:
        path: a file, or the URL of an object.

    Attributes:
        path: what messages call it.
        names: its columns.
        sizes: the rows of each group of rows.
        starts: the row, from 0, at which each group begins.

    Raises:
        DataError: if it is damaged, or says that it has far too many rows.
    """

    def __init__(self, path: str | Path) -> None:
        import pyarrow.parquet as pq

        self.path = str(path)
        self._stream: IO[bytes] = open_file(path)
        weakref.finalize(self, self._stream.close)
        try:
            self._file = pq.ParquetFile(self._stream)
            self._schema = self._file.schema_arrow
            self.metadata: Mapping[bytes, bytes] = self._schema.metadata or {}
            self.names = tuple(self._schema.names)
            groups = self._file.metadata.num_row_groups
            self.sizes = [self._file.metadata.row_group(index).num_rows for index in range(groups)]
            self._size = self._stream.seek(0, os.SEEK_END)
        except damage() as error:
            raise self._damaged(reason_of(error)) from error
        self.starts = [end - size for end, size in zip(accumulate(self.sizes), self.sizes, strict=True)]
        check_rows(sum(self.sizes), self._size, self.path)
        self._totals: dict[str, tuple[int, int]] = {}  # of a column, the rows and the bytes that were read
        self._leaves = self._leaves_of()
        self._with_dictionaries: pq.ParquetFile | None = None

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self._schema.field(name).type

    def column(self, name: str) -> Iterator[pa.Array]:
        """Yield a whole column; see :meth:`blocks`."""
        for group in range(len(self.sizes)):
            yield from self.blocks(group, name)

    def blocks(self, group: int, name: str) -> Iterator[pa.Array]:
        """Yield what a group of rows has of a column in blocks of at most about :data:`BLOCK_BYTES`.

        A text that stands in many rows is there once, in a dictionary. DataError with the row if the column is damaged,
        or would take far more memory than the file.
        """
        row = self.starts[group]
        damages = damage()  # not where an exception is looked at: a generator may be closed while Python ends
        try:
            for batch in self._batches(group, name):
                block = batch.column(batch.schema.get_field_index(name))
                row += len(block)
                self._count(name, block, row)
                yield block
        except damages as error:
            raise DataError(
                f"{self.path}, after row {row}, column {name!r}: the column is damaged ({reason_of(error)}). {FIX}"
            ) from error

    def _batches(self, group: int, name: str) -> Iterator[pa.RecordBatch]:
        chunks = [self._file.metadata.row_group(group).column(leaf) for leaf in self._leaves[name]]
        leaves = [self._file.schema.column(leaf) for leaf in self._leaves[name]]
        widths = [leaf.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0 for leaf in leaves]
        location = f"{self.path}, column {name!r}"
        limits = bounds(self._stream, chunks, widths, self.sizes[group], location)
        rows = min(limits.rows, max(_FEWEST_ROWS, BLOCK_CELLS // len(self.names)))
        file = self._file
        if limits.as_dictionary and self._longest(group, name) * rows > BLOCK_BYTES:
            file = self._reading_dictionaries()  # slower where nearly all texts differ
        batches: Iterator[pa.RecordBatch] = file.iter_batches(
            rows, row_groups=[group], columns=[leaf.path for leaf in leaves]
        )
        return batches

    def _longest(self, group: int, name: str) -> int:
        """Return the bytes of the longest text in the dictionary of a group; for lists and structs, more than any."""
        import pyarrow as pa
        import pyarrow.compute as pc

        paths = [self._file.schema.column(leaf).path for leaf in self._leaves[name]]
        # One row is enough, as a batch carries the dictionary of its group.
        batch = next(self._reading_dictionaries().iter_batches(1, row_groups=[group], columns=paths), None)
        block = None if batch is None else batch.column(batch.schema.get_field_index(name))
        if not isinstance(block, pa.DictionaryArray) or not _has_lengths(block.dictionary.type):
            return sys.maxsize
        return pc.max(pc.binary_length(block.dictionary)).as_py() or 0

    def _count(self, name: str, block: pa.Array, row: int) -> None:
        """Add the bytes of a block to those of the column; DataError if these are far too many."""
        rows, total = self._totals.get(name, (0, 0))
        if row > rows:  # else they were counted when they were first read
            total += most_bytes(block)
            self._totals[name] = row, total
            check_total(total, self._size, f"{self.path}, row {row}, column {name!r}")

    def _reading_dictionaries(self) -> pq.ParquetFile:
        """Return the file read so that a text that stands in many rows is there once."""
        import pyarrow.parquet as pq

        if self._with_dictionaries is None:
            leaves = [self._file.schema.column(leaf) for leaf in range(self._file.metadata.num_columns)]
            texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
            metadata = self._file.metadata
            self._with_dictionaries = pq.ParquetFile(
                self._stream, metadata=metadata, read_dictionary=texts, pre_buffer=False, buffer_size=_BUFFER
            )
        return self._with_dictionaries

    def _leaves_of(self) -> dict[str, range]:
        """Return which columns of the file hold each column of the table."""
        ends = list(accumulate(leaf_count(field.type) for field in self._schema))
        if (ends or [0])[-1] != self._file.metadata.num_columns:
            raise self._damaged("its columns are not those that it names")
        return {name: range(start, end) for name, start, end in zip(self.names, [0, *ends], ends, strict=False)}

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self.path}: this is not a whole Parquet file ({reason}). {FIX}")


def read_table(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return columns of a file whole, in Arrow: for files whose rows have to be there together.

    Args:
        path: a file.
        columns: those that are read; all of them by default.

    Raises:
        DataError: as for :class:`ParquetTable`; also if it does not have one of the columns, or values are damaged.
    """
    import pyarrow as pa

    table = ParquetTable(path)
    names = table.names if columns is None else columns
    absent = [name for name in names if name not in table.names]
    if absent:
        raise DataError(f"{path}: the columns {', '.join(names)} are needed; {', '.join(absent)} is not there.")
    return pa.table([_whole(table, name) for name in names], names=list(names))


def _whole(table: ParquetTable, name: str) -> pa.ChunkedArray:
    """Return a column whose values are checked, in the type that the file names."""
    import pyarrow as pa

    kind = table.type_of(name)
    blocks = []
    try:
        for block in table.column(name):
            # Decoding checks neither offsets nor UTF-8, and damaged ones could crash whoever reads the values.
            block.validate(full=True)
            blocks.append(block if block.type == kind else block.cast(kind))
    except damage() as error:
        raise DataError(f"{table.path}, column {name!r}: the column is damaged ({reason_of(error)}). {FIX}") from error
    return pa.chunked_array(blocks, kind)


def reason_of(error: BaseException) -> str:
    """Return what an error says on one line, or its class where it says nothing."""
    return shortened(error) or type(error).__name__


def damage() -> tuple[type[BaseException], ...]:
    """Return what decoding damaged bytes raises."""
    import pyarrow as pa

    return (pa.ArrowException, ArithmeticError, *DAMAGED)


def _head(stream: IO[bytes], position: int, name: str) -> tuple[dict[int, Any], int]:
    """Return the fields of the head of a page by their numbers, and its bytes."""
    # Most heads take a few dozen bytes; statistics with long texts make some larger.
    length = 512
    while True:
        try:
            stream.seek(position)
            content = stream.read(length)
            reader = _Compact(content)
            return reader.struct(0), reader.position
        except IndexError:
            # The file has ended, or no head is that long: more bytes would not help.
            if len(content) < length or length >= _LARGEST_HEAD:
                break
            length *= 8
        except (OSError, ValueError, ArithmeticError):
            break
    raise DataError(
        f"{name}: this is not a whole Parquet file (the head of a page is broken). Download or write it again."
    )


def _number(fields: Any, key: int) -> int:
    value = fields.get(key, -1) if isinstance(fields, dict) else -1
    return value if isinstance(value, int) else -1


class _Compact:
    """Reads a struct in the compact protocol of Thrift; of lists and texts only where they end.

    IndexError if the bytes end before it does; ValueError if they are none.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.position = 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > 8:  # a head has three
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        key = 0
        while (first := self._byte()) & 0x0F:
            step = first >> 4
            # A step of 0 says that the number of the field follows in full.
            key = key + step if step else self._zigzag()
            fields[key] = self._value(first & 0x0F, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # true and false
            return None
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind in (7, 8):  # a double, or bytes
            return self._skip(8 if kind == 7 else self._varint())
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (9, 10):
            return self._list(depth)
        raise ValueError(f"no type {kind}")

    def _list(self, depth: int) -> None:
        first = self._byte()
        count = first >> 4
        # A count of 15 says that the real one follows.
        for _ in range(self._varint() if count == 15 else count):
            # In a list a truth value takes a byte; in a field it is part of the type.
            self._value(first & 0x0F, depth + 1) if first & 0x0F not in (1, 2) else self._byte()

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self._content):
            raise IndexError

    def _byte(self) -> int:
        byte = self._content[self.position]
        self.position += 1
        return byte

    def _varint(self) -> int:
        number = 0
        shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise ValueError("too long a number")

    def _zigzag(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)
