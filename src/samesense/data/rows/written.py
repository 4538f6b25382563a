"""Reads text tables with the exact characters of each row, so that rows can be written out again unchanged."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from samesense.data.rows.compression import open_decompressed, split_suffix
from samesense.data.rows.delimited import Form, open_table
from samesense.data.rows.load import rows_of_lines
from samesense.data.rows.table_options import current_options
from samesense.data.rows.text import Line, read_lines

MARKS = {
    "utf_8": codecs.BOM_UTF8,
    "utf_16_le": codecs.BOM_UTF16_LE,
    "utf_16_be": codecs.BOM_UTF16_BE,
    "utf_32_le": codecs.BOM_UTF32_LE,
    "utf_32_be": codecs.BOM_UTF32_BE,
}
"""Byte order marks by encoding; those of UTF-32 begin like those of UTF-16, so they must be checked first."""


class WrittenRow(NamedTuple):
    """One row: its first line number, its characters, the end of its last line, and its cells.

    A blank row has no cells; the line end may be empty at the end of the file.
    """

    number: int
    text: str
    end: str
    cells: Mapping[str, object] | None


@dataclass(frozen=True)
class WrittenTable:
    """A text table.

    Attributes:
        suffix: its format, ``.tsv``, ``.csv`` or ``.jsonl``.
        form: how its rows are read; the default for JSON lines.
        names: names of its columns; none for JSON lines.
        top: the rows before the first data row: the header, and a line that declares the delimiter.
        header: whether the last row of ``top`` is the header.
        encoding: Python name of the encoding.
        mark: its byte order mark, or nothing.
        line_end: line end of its first line.
        rows: iterator over the data rows.
    """

    suffix: str
    form: Form
    names: tuple[str, ...]
    top: list[WrittenRow]
    header: bool
    encoding: str
    mark: bytes
    line_end: str
    rows: Iterator[WrittenRow]


def is_written(source: str) -> bool:
    """Return whether a file is a text table whose rows can be written out unchanged."""
    return split_suffix(source).suffix in (".tsv", ".csv", ".jsonl", ".ndjson")


def read_written(path: str | Path) -> WrittenTable:
    """Open a text table; see :class:`WrittenTable`.

    Raises:
        DataError: like :func:`~samesense.data.rows.load.read_rows`; for bad rows, when they are read.
    """
    suffix = split_suffix(str(path)).suffix
    encoding, mark = _encoding_of(path)
    if suffix in (".jsonl", ".ndjson"):
        lines = _CopyingLines(read_lines(path))
        rows = _rows_with_lines(lines, rows_of_lines(suffix, path, lines), _NOTHING)
        line_end = _end_of(lines.first)
        return WrittenTable(".jsonl", Form(), (), [], False, encoding, mark, line_end, rows)
    lines = _CopyingLines(read_lines(path, carriage_returns=suffix == ".csv"))
    table = open_table(suffix, path, lines)
    # Rows of empty fields are no data, and are written as they are.
    blank = _blank_rows(table.form)
    top: list[WrittenRow] = []
    if table.before:
        top += _rows_between(lines.taken_until(table.before + 1), None, blank)
    records = _rows_with_lines(lines, table.rows, blank, header=table.header)
    # The header is the first of these rows.
    if table.header is not None:
        top.append(next(records))
    line_end = _end_of(lines.first)
    return WrittenTable(
        suffix, table.form, table.form.names, top, table.header is not None, encoding, mark, line_end, records
    )


class _CopyingLines(Iterator[Line]):
    """An iterator over lines that keeps a copy of them until it is taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._copies: deque[Line] = deque()
        self.first = ""

    def __next__(self) -> Line:
        line = next(self._lines)
        self.first = self.first or line[1]
        self._copies.append(line)
        return line

    def taken_until(self, number: int | None) -> list[Line]:
        """Take the copies of the lines before the line with this number, or of all lines so far."""
        taken = []
        while self._copies and (number is None or self._copies[0][0] < number):
            taken.append(self._copies.popleft())
        return taken


def _rows_with_lines(
    lines: _CopyingLines,
    rows: Iterator[tuple[int, Mapping[str, object]]],
    blank: re.Pattern[str],
    header: int | None = None,
) -> Iterator[WrittenRow]:
    """Yield rows with their lines: those from the row's first line to the next row, without blank lines at the end."""
    # The header is a row without cells; without a header, there is no row before the first.
    cells: dict[str, object] | None = None
    if header is not None:
        cells = {}
    for next_number, next_cells in rows:
        yield from _rows_between(lines.taken_until(next_number), cells, blank)
        cells = dict(next_cells)
    yield from _rows_between(lines.taken_until(None), cells, blank)


def _rows_between(
    lines: list[Line], cells: Mapping[str, object] | None, blank: re.Pattern[str]
) -> Iterator[WrittenRow]:
    """Yield the row in these lines, if there is one, and the blank rows after it (or before the first row)."""
    count = 0
    if cells is not None:
        count = len(lines)
        while count > 1 and _is_blank_line(lines[count - 1][1], blank):
            count -= 1
        yield _row(lines[:count], cells)
    for line in lines[count:]:
        yield _row([line], None)


def _is_blank_line(line: str, blank: re.Pattern[str]) -> bool:
    # A line that closes a quoted field has an odd number of quotes, so it is not blank.
    return blank.fullmatch(line) is not None and line.count('"') % 2 == 0


def _row(lines: list[Line], cells: Mapping[str, object] | None) -> WrittenRow:
    text = "".join(line for _, line in lines)
    end = _end_of(text)
    return WrittenRow(lines[0][0], text.removesuffix(end), end, cells)


def _end_of(text: str) -> str:
    """Return the line end of a text: a line feed, a carriage return and line feed, or nothing."""
    if text.endswith("\r\n"):
        return "\r\n"
    if text.endswith("\n"):
        return "\n"
    return ""


_NOTHING = re.compile(r"\s*")
"""Matches a blank line of a JSON lines file."""


def _blank_rows(form: Form) -> re.Pattern[str]:
    """Return a pattern of lines without a filled cell."""
    characters = re.escape(form.delimiter)
    if form.rules == "csv":
        characters += '"'
    if form.spaced:
        characters += " "
    return re.compile(f"[{characters}]*[\r\n]*")


def _encoding_of(path: str | Path) -> tuple[str, bytes]:
    """Return the encoding of a file, including its byte order, and its byte order mark."""
    encoding = current_options().encoding or "utf_8"
    with open_decompressed(path) as stream:
        start = stream.read(4)
    # UTF-32 first, because its marks begin like those of UTF-16.
    for name, mark in reversed(MARKS.items()):
        if start.startswith(mark) and name.startswith(encoding.replace("-", "_")):
            return name, mark
    return encoding, b""


def text_without_empty_end(row: WrittenRow, form: Form) -> str:
    """Return the characters of a row without the empty fields after the last named column."""
    extra = form.width - len(form.names)
    if extra <= 0:
        return row.text
    return re.sub(f'(?:{re.escape(form.delimiter)}(?:"")?){{1,{extra}}}$', "", row.text)


def with_cells(row: WrittenRow, cells: Mapping[str, object]) -> str:
    """Return a row of JSON lines with additional cells; its own characters are unchanged."""
    text = row.text.rstrip()
    if not text.endswith("}"):  # the row is a list of texts, which must become an object
        return json.dumps({**(row.cells or {}), **cells}, ensure_ascii=False)
    added = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(cell)}" for name, cell in cells.items())
    content = text[:-1].rstrip()
    if content.endswith("{"):  # an empty object
        return f"{content}{added}}}"
    return f"{content}, {added}}}"
