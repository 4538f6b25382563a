"""Blocks of rows by where they lie in a file: found in one pass, and each read again without the rest of the file.

Of a file of lines, text or table, a place is a byte, of a compressed file one of what it holds; of Parquet and of
JSON lists it is a row, from 0.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from samesense.data.formats.columnar import parquet_rows
from samesense.data.formats.delimited import first_line_of
from samesense.data.formats.endings import opened, split_suffix
from samesense.data.formats.files import Row, read_rows, rows_of_lines
from samesense.data.formats.lines import Line, numbered_lines, read_lines

MARK = b"\xef\xbb\xbf"
"""The byte order mark that a file of text may begin with."""

LINE_END = "\r\n"
"""What is taken off the end of a line of text."""

BY_ROWS = (".parquet", ".json")
"""Endings of files whose places are rows."""


@dataclass(frozen=True)
class Block:
    """Rows that stand together: where they begin and end, the line of names that is read before them, and the rows."""

    start: int
    end: int
    header: str
    rows: list[Row]


def blocks(name: str, size: int) -> Iterator[Block]:
    """Yield all rows of a file in blocks of ``size``; a line of text is a row with the column ``text``.

    DataError as of :func:`~samesense.data.formats.files.read_rows`.
    """
    suffix = split_suffix(name)[0]
    if suffix in BY_ROWS:
        yield from _by_rows(name, size)
        return
    again = partial(read_lines, name, carriage_returns=suffix == ".csv")
    lines = _Lines(again(), _mark(name))
    rows = _rows(suffix, name, iter(lines))
    held, header = list(islice(rows, size)), ""
    start = lines.start_of(held[0][0]) if held else 0
    if held and suffix in (".tsv", ".csv"):
        header = first_line_of(suffix, again(), lines.before)
    while held:
        after = list(islice(rows, size))
        end = lines.start_of(after[0][0]) if after else lines.end
        yield Block(start, end, header, held)
        start, held = end, after


def rows_at(name: str, start: int, end: int, header: str) -> Iterator[Row]:
    """Yield the rows of a block, numbered from 1; what there is, if the file has been changed since."""
    suffix = split_suffix(name)[0]
    if suffix == ".parquet":
        rows = parquet_rows(name, start)
        yield from (row for row in rows if start < row[0] <= end)
    elif suffix in BY_ROWS:
        yield from islice(read_rows(name), start, end)
    else:
        with opened(name) as stream:
            stream.seek(start)
            content = stream.read(end - start)
        before = header.encode() or MARK  # taken off again, where a mark at the beginning of the content would be
        lines = numbered_lines(io.BytesIO(before + content), name, carriage_returns=suffix == ".csv")
        yield from _rows(suffix, name, lines)


def _by_rows(name: str, size: int) -> Iterator[Block]:
    rows, start = read_rows(name), 0
    while held := list(islice(rows, size)):
        yield Block(start, start + len(held), "", held)
        start += len(held)


def _rows(suffix: str, name: str, lines: Iterable[Line]) -> Iterator[Row]:
    if suffix:
        return rows_of_lines(suffix, name, lines)
    return ((number, {"text": line.rstrip(LINE_END)}) for number, line in lines)


def _mark(name: str) -> int:
    """Return the length of the byte order mark at the beginning of a file, 0 if there is none."""
    with opened(name) as stream:
        return len(MARK) if stream.read(len(MARK)) == MARK else 0


class _Lines:
    """Lines that pass through, and the byte at which each begins, for as long as it may be asked for."""

    def __init__(self, lines: Iterator[Line], start: int) -> None:
        self._lines, self.end = lines, start
        self._starts: deque[tuple[int, int, str]] = deque()
        self.before = ""  # lines before the first that was asked for

    def __iter__(self) -> Iterator[Line]:
        for number, line in self._lines:
            self._starts.append((number, self.end, line))
            self.end += len(line.encode())
            yield number, line

    def start_of(self, number: int) -> int:
        """Return where a line begins; those before it are forgotten."""
        passed = []
        while self._starts[0][0] < number:
            passed.append(self._starts.popleft()[2])
        self.before = self.before or "".join(passed)
        return self._starts[0][1]
