"""Parquet files from anywhere, read in blocks of bounded memory."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING

from samesense.errors import DataError
from samesense.failures import DAMAGED, shortened
from samesense.parquet.arrays import has_lengths, leaf_count, most_bytes
from samesense.parquet.limits import BLOCK_BYTES, bounds, check_rows, check_total
from samesense.urls import open_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BLOCK_CELLS = 2**20
"""Cells of the blocks of all columns together, where these are many."""

FIX = "Download or write it again."
"""What can be done about a damaged file."""

_FEWEST_ROWS = 64  # of a block, however many columns there are
_BUFFER = 2**20  # bytes that are read at once, so that a dictionary is read without the rest


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
        if not isinstance(block, pa.DictionaryArray) or not has_lengths(block.dictionary.type):
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
