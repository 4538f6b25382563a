"""Splits a file into blocks of rows by their offsets, so that each can be read again without the rest of the file.

For text files and tables an offset is a byte, for compressed files a byte of the decompressed content, and for Parquet
and JSON lists the number of a row, from 0.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from samesense.data.rows.columnar import parquet_rows
from samesense.data.rows.compression import open_decompressed, split_suffix
from samesense.data.rows.delimited import Form, form_of, rows_in_form
from samesense.data.rows.encodings import in_utf8
from samesense.data.rows.load import read_rows, rows_of_lines
from samesense.data.rows.table_options import current_options
from samesense.data.rows.text import Line, numbered_lines, read_lines
from samesense.types import Row

MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, with which a text file may begin."""

TABLES = (".tsv", ".csv")
"""Endings of delimited tables."""

BY_ROWS = (".parquet", ".json")
"""Endings of files whose offsets are rows."""


@dataclass(frozen=True)
class Block:
    """Consecutive rows with their start and end offsets, and the form in which they are read.

    ``form`` is a :class:`~samesense.data.rows.delimited.Form` as JSON, ``""`` for files whose offsets are rows.
    """

    start: int
    end: int
    form: str
    rows: list[Row]


def blocks(name: str, size: int) -> Iterator[Block]:
    """Yield all rows of a file in blocks of ``size``; a line of text is a row with the column ``text``.

    Raises the errors of :func:`~samesense.data.rows.load.read_rows`.
    """
    suffix = split_suffix(name).suffix
    if suffix in BY_ROWS:
        yield from _by_rows(name, size)
        return
    again = partial(read_lines, name, carriage_returns=suffix == ".csv")
    lines = _Lines(again(), _mark(name))
    rows = rows_of_lines(suffix, name, iter(lines))
    block_rows = list(islice(rows, size))
    start = lines.start_of(block_rows[0][0]) if block_rows else 0
    form = Form(encoding=current_options().encoding)
    if block_rows and suffix in TABLES:
        # From the start of the file, as the lines read so far are gone.
        form = form_of(suffix, name, again())
    while block_rows:
        following = list(islice(rows, size))  # read ahead, because a block ends where the next one begins
        end = lines.start_of(following[0][0]) if following else lines.end
        yield Block(start, end, form.to_json(), block_rows)
        start = end
        block_rows = following


def rows_at(name: str, start: int, end: int, form: str) -> Iterator[Row]:
    """Yield the rows of a block, numbered from 1; of a file that was changed meanwhile, its present rows."""
    suffix = split_suffix(name).suffix
    if suffix == ".parquet":
        rows = parquet_rows(name, start)
        yield from (row for row in rows if start < row[0] <= end)
    elif suffix in BY_ROWS:
        yield from islice(read_rows(name), start, end)
    else:
        table_form = Form.from_json(form)
        content = _content(name, start, end, table_form.encoding)
        # numbered_lines removes one byte order mark; an extra one protects a mark that belongs to the content.
        lines = numbered_lines(io.BytesIO(MARK + content), name, carriage_returns=suffix == ".csv")
        if suffix in TABLES:
            yield from rows_in_form(name, table_form, lines)
        else:
            yield from rows_of_lines(suffix, name, lines)


def _content(name: str, start: int, end: int, encoding: str | None) -> bytes:
    """Return the bytes of a file between two offsets, recoded to UTF-8; the offsets are those in UTF-8."""
    with open_decompressed(name) as stream:
        if encoding is None:
            # A plain file is not read up to there; a compressed one is decompressed.
            stream.seek(start)
            return stream.read(end - start)
        recoded = in_utf8(stream, encoding, name)
        offset = 0
        while offset < start and (skipped := len(recoded.read(min(2**20, start - offset)))):
            offset += skipped
        return recoded.read(end - start)


def _by_rows(name: str, size: int) -> Iterator[Block]:
    rows = read_rows(name)
    start = 0
    while block_rows := list(islice(rows, size)):
        yield Block(start, start + len(block_rows), "", block_rows)
        start += len(block_rows)


def _mark(name: str) -> int:
    """Return the length of the byte order mark of a file, recoded to UTF-8; 0 if there is none."""
    encoding = current_options().encoding
    with open_decompressed(name) as stream:
        content = stream if encoding is None else in_utf8(stream, encoding, name)
        if content.read(len(MARK)) != MARK:
            return 0
        return len(MARK)


class _Lines:
    """An iterable over lines that records the byte offset of each."""

    def __init__(self, lines: Iterator[Line], start: int) -> None:
        self._lines = lines
        self.end = start
        self._starts: deque[tuple[int, int]] = deque()

    def __iter__(self) -> Iterator[Line]:
        for number, line in self._lines:
            self._starts.append((number, self.end))
            self.end += len(line.encode())
            yield number, line

    def start_of(self, number: int) -> int:
        """Return the offset of a line; the offsets of the lines before it are discarded."""
        # Blocks are asked for in order, so that earlier offsets are not needed again.
        while self._starts[0][0] < number:
            self._starts.popleft()
        return self._starts[0][1]
