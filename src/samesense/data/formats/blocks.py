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
from samesense.data.formats.delimited import Form, form_of, rows_in_form
from samesense.data.formats.encodings import in_utf8
from samesense.data.formats.endings import opened, split_suffix
from samesense.data.formats.files import Row, read_rows, rows_of_lines
from samesense.data.formats.lines import Line, numbered_lines, read_lines
from samesense.data.formats.options import current_options

MARK = b"\xef\xbb\xbf"
"""The byte order mark that a file of text may begin with."""

TABLES = (".tsv", ".csv")
"""Endings of tables whose fields have something between them."""

LINE_END = "\r\n"
"""What is taken off the end of a line of text."""

BY_ROWS = (".parquet", ".json")
"""Endings of files whose places are rows."""


@dataclass(frozen=True)
class Block:
    """Rows that stand together: where they begin and end, how they are read, and the rows.

    ``form`` is that of :class:`~samesense.data.formats.delimited.Form` as JSON, ``""`` for rows by their number.
    """

    start: int
    end: int
    form: str
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
    held = list(islice(rows, size))
    start = lines.start_of(held[0][0]) if held else 0
    form = Form(encoding=current_options().encoding)
    if held and suffix in TABLES:
        form = form_of(suffix, name, again())
    while held:
        after = list(islice(rows, size))
        end = lines.start_of(after[0][0]) if after else lines.end
        yield Block(start, end, form.to_json(), held)
        start, held = end, after


def rows_at(name: str, start: int, end: int, form: str) -> Iterator[Row]:
    """Yield the rows of a block, numbered from 1; what there is, if the file has been changed since."""
    suffix = split_suffix(name)[0]
    if suffix == ".parquet":
        rows = parquet_rows(name, start)
        yield from (row for row in rows if start < row[0] <= end)
    elif suffix in BY_ROWS:
        yield from islice(read_rows(name), start, end)
    else:
        known = Form.from_json(form)
        content = _content(name, start, end, known.encoding)
        # the mark is taken off again, where one at the beginning of the content would be
        lines = numbered_lines(io.BytesIO(MARK + content), name, carriage_returns=suffix == ".csv")
        yield from rows_in_form(name, known, lines) if suffix in TABLES else _rows(suffix, name, lines)


def _content(name: str, start: int, end: int, encoding: str | None) -> bytes:
    """Return bytes of a file, of another encoding those that it would have in UTF-8."""
    with opened(name) as stream:
        if encoding is None:
            stream.seek(start)
            return stream.read(end - start)
        recoded = in_utf8(stream, encoding, name)
        passed = 0
        while passed < start and (skipped := len(recoded.read(min(2**20, start - passed)))):
            passed += skipped
        return recoded.read(end - start)


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
    """Return the length of the byte order mark at the beginning of a file in UTF-8, 0 if there is none."""
    encoding = current_options().encoding
    with opened(name) as stream:
        content = stream if encoding is None else in_utf8(stream, encoding, name)
        return len(MARK) if content.read(len(MARK)) == MARK else 0


class _Lines:
    """Lines that pass through, and the byte at which each begins, for as long as it may be asked for."""

    def __init__(self, lines: Iterator[Line], start: int) -> None:
        self._lines, self.end = lines, start
        self._starts: deque[tuple[int, int]] = deque()

    def __iter__(self) -> Iterator[Line]:
        for number, line in self._lines:
            self._starts.append((number, self.end))
            self.end += len(line.encode())
            yield number, line

    def start_of(self, number: int) -> int:
        """Return where a line begins; those before it are forgotten."""
        while self._starts[0][0] < number:
            self._starts.popleft()
        return self._starts[0][1]
