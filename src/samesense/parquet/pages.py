"""The heads of Parquet pages, which pyarrow does not show: what each says of its size, before it is unpacked.

The footer says sizes too, but pyarrow unpacks what the page says, so only the page can be relied on.

Source: https://github.com/apache/parquet-format, ``parquet.thrift`` and the compact protocol of Thrift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from samesense.errors import DataError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LARGEST_HEAD = 16 * 2**20  # pyarrow's own limit

DATA, DICTIONARY, DATA_V2 = 0, 2, 3


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
        values += page.values if page.kind in (DATA, DATA_V2) else 0
        position += length + page.packed


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
