"""How much memory the values of a column may take, by the heads of its pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from samesense.errors import DataError
from samesense.parquet.pages import DATA, DATA_V2, DICTIONARY, Page, pages

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BLOCK_BYTES = 64 * 2**20
"""Bytes that a block of values may take once it is decoded."""

BLOCK_ROWS = 4096
"""Rows of a block, at most."""

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

_SMALL_DICTIONARY = 16 * 1024  # bytes of a dictionary whose values are copied into each row
_DELTA = 7  # DELTA_BYTE_ARRAY: a value repeats the beginning of the one before it


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
        if page.kind == DICTIONARY:
            self._dictionary = page.unpacked
        if page.kind not in (DATA, DATA_V2) or not page.values:
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


def check_rows(rows: int, size: int, name: str) -> None:
    """Raise DataError if a file of ``size`` bytes says that it has more rows than texts can be in it."""
    if rows > max(FEW_ROWS, ROWS_A_BYTE * size):
        raise DataError(
            f"{name}: {rows:,} rows stand in {size:,} bytes, which is too many to be rows of texts. Write it again."
        )


def check_total(total: int, size: int, location: str) -> None:
    """Raise DataError if the values of a column take far more memory than their file of ``size`` bytes."""
    if total > max(LARGEST_TOTAL, TOTAL_RATIO * size):
        raise DataError(
            f"{location}: up to here the column takes {total / 2**30:,.1f} GB unpacked, and the file {size:,} bytes, "
            "which is no table of texts. If it is, write JSON lines."
        )
