"""Tables of text as they are written: each row with its cells and its very characters, to write them out again."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from samesense.data.formats.delimited import Form, open_table
from samesense.data.formats.endings import opened, split_suffix
from samesense.data.formats.files import rows_of_lines
from samesense.data.formats.lines import Line, read_lines
from samesense.data.formats.options import current_options

MARKS = {
    "utf_8": codecs.BOM_UTF8,
    "utf_16_le": codecs.BOM_UTF16_LE,
    "utf_16_be": codecs.BOM_UTF16_BE,
    "utf_32_le": codecs.BOM_UTF32_LE,
    "utf_32_be": codecs.BOM_UTF32_BE,
}
"""Byte order marks by encoding; those of UTF-32 begin as those of UTF-16 do."""


class WrittenRow(NamedTuple):
    """One row: its first line in the file, its characters, what ends its last line, and its cells.

    A row without cells is a blank one; an end is empty at the end of some files.
    """

    number: int
    text: str
    end: str
    cells: Mapping[str, object] | None


@dataclass(frozen=True)
class WrittenTable:
    """A table of text.

    Attributes:
        suffix: its kind, ``.tsv``, ``.csv`` or ``.jsonl``.
        form: how its rows are read; of JSON lines the default.
        names: of its columns; of JSON lines none.
        top: what stands before the first row: the header, and a line that names the delimiter.
        header: whether the last row of ``top`` has the names of the columns.
        encoding: as Python names it.
        mark: its byte order mark, or nothing.
        line_end: what ends its first line.
        rows: once.
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
    """Return whether a file is a table of text of which rows can be written as they are."""
    return split_suffix(source)[0] in (".tsv", ".csv", ".jsonl", ".ndjson")


def read_written(path: str | Path, suffix: str | None = None) -> WrittenTable:
    """Open a table of text; see :class:`WrittenTable`.

    Raises:
        DataError: as :func:`~samesense.data.formats.files.read_rows` does; of rows, when they are read.
    """
    suffix = suffix or split_suffix(str(path))[0]
    encoding, mark = _encoding_of(path)
    if suffix in (".jsonl", ".ndjson"):
        lines = _Noted(read_lines(path))
        rows = _grouped(lines, rows_of_lines(suffix, path, lines), _NOTHING)
        line_end = _end_of(lines.first)
        return WrittenTable(".jsonl", Form(), (), [], False, encoding, mark, line_end, rows)
    lines = _Noted(read_lines(path, carriage_returns=suffix == ".csv"))
    table = open_table(suffix, path, lines)
    blank = _blank_rows(table.form)
    top: list[WrittenRow] = []
    if table.before:
        top += _rows_between(lines.taken_until(table.before + 1), None, blank)
    records = _grouped(lines, table.rows, blank, header=table.header)
    if table.header is not None:
        top.append(next(records))
    line_end = _end_of(lines.first)
    return WrittenTable(
        suffix, table.form, table.form.names, top, table.header is not None, encoding, mark, line_end, records
    )


class _Noted(Iterator[Line]):
    """Lines that pass by, kept until they are taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._passed: deque[Line] = deque()
        self.first = ""

    def __next__(self) -> Line:
        line = next(self._lines)
        self.first = self.first or line[1]
        self._passed.append(line)
        return line

    def taken_until(self, number: int | None) -> list[Line]:
        """Take the lines before the one of this number, or all that passed by."""
        taken = []
        while self._passed and (number is None or self._passed[0][0] < number):
            taken.append(self._passed.popleft())
        return taken


def _grouped(
    lines: _Noted,
    rows: Iterator[tuple[int, Mapping[str, object]]],
    blank: re.Pattern[str],
    header: int | None = None,
) -> Iterator[WrittenRow]:
    """Yield rows with their lines: those from its first line to the next row, but for blank ones behind it."""
    number, cells = header, dict[str, object]()
    for next_number, next_cells in rows:
        yield from _rows_between(lines.taken_until(next_number), None if number is None else cells, blank)
        number, cells = next_number, dict(next_cells)
    yield from _rows_between(lines.taken_until(None), None if number is None else cells, blank)


def _rows_between(
    lines: list[Line], cells: Mapping[str, object] | None, blank: re.Pattern[str]
) -> Iterator[WrittenRow]:
    """Yield a row, if there is one in these lines, and the blank ones behind it, or before the first."""
    count = 0
    if cells is not None:
        count = len(lines)
        while count > 1 and _is_blank_line(lines[count - 1][1], blank):
            count -= 1
        yield _row(lines[:count], cells)
    for line in lines[count:]:
        yield _row([line], None)


def _is_blank_line(line: str, blank: re.Pattern[str]) -> bool:
    # a line that closes a quoted field has an odd number of quotes
    return blank.fullmatch(line) is not None and line.count('"') % 2 == 0


def _row(lines: list[Line], cells: Mapping[str, object] | None) -> WrittenRow:
    text = "".join(line for _, line in lines)
    end = _end_of(text)
    return WrittenRow(lines[0][0], text.removesuffix(end), end, cells)


def _end_of(text: str) -> str:
    """Return what ends a line: a line feed, with a carriage return before it, or nothing."""
    if text.endswith("\r\n"):
        return "\r\n"
    return "\n" if text.endswith("\n") else ""


_NOTHING = re.compile(r"\s*")
"""A blank line of JSON lines."""


def _blank_rows(form: Form) -> re.Pattern[str]:
    """Return what lines without a filled cell look like."""
    characters = re.escape(form.delimiter) + ('"' if form.rules == "csv" else "") + (" " if form.spaced else "")
    return re.compile(f"[{characters}]*[\r\n]*")


def _encoding_of(path: str | Path) -> tuple[str, bytes]:
    """Return the encoding in which a file is read, with the order of its bytes, and its byte order mark."""
    encoding = current_options().encoding or "utf_8"
    with opened(path) as stream:
        start = stream.read(4)
    for name, mark in reversed(MARKS.items()):
        if start.startswith(mark) and name.startswith(encoding.replace("-", "_")):
            return name, mark
    return encoding, b""


def same_without_empty_end(row: WrittenRow, form: Form) -> str:
    """Return the characters of a row without the empty fields behind the last named column."""
    extra = form.width - len(form.names)
    if extra <= 0:
        return row.text
    return re.sub(f'(?:{re.escape(form.delimiter)}(?:"")?){{1,{extra}}}$', "", row.text)


def with_cells(row: WrittenRow, cells: Mapping[str, object]) -> str:
    """Return a row of JSON lines with further cells, its own characters unchanged."""
    text = row.text.rstrip()
    if not text.endswith("}"):  # a list of texts
        return json.dumps({**(row.cells or {}), **cells}, ensure_ascii=False)
    added = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(cell)}" for name, cell in cells.items())
    inside = text[:-1].rstrip()
    return f"{inside}{'' if inside.endswith('{') else ', '}{added}}}"
