"""Write rows with their scores as text: appended to the unchanged rows, or in the form that Excel opens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from samesense.choices import DecimalMark
from samesense.data.rows.written import WrittenRow, WrittenTable, text_without_empty_end, with_cells
from samesense.errors import ConfigError

ScoredRow = tuple[WrittenRow, Mapping[str, Any]]
"""The text of a row, and its new cells; a blank row has none."""

_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_POINT = re.compile(r"[+-]?\d+\.\d+", re.ASCII)


def decimal_of(cells: Iterable[object]) -> DecimalMark | None:
    """Return the decimal mark in the cells of a table, ``None`` if there is none, or both occur.

    >>> decimal_of(["ein Haus", "1,50", "2024"]), decimal_of(["1,50", "1.5"])
    ('comma', None)
    """
    marks = set[DecimalMark]()
    for cell in cells:
        text = str(cell).strip()
        if _COMMA.fullmatch(text):
            marks.add("comma")
        elif _POINT.fullmatch(text):
            marks.add("point")
    if len(marks) != 1:
        return None
    return marks.pop()


def number_text(value: float, decimal: DecimalMark) -> str:
    """Return a number in decimal notation, never in scientific notation, which spreadsheets read inconsistently.

    >>> number_text(0.00001, "comma"), number_text(-0.0, "point")
    ('0,00001', '0.0')
    """
    # Adding 0.0 makes a plain zero of -0.0.
    text = f"{value + 0.0:.6f}".rstrip("0")
    if text.endswith("."):
        text = f"{text}0"
    # Rounding may leave a minus before a zero.
    if text == "-0.0":
        text = "0.0"
    if decimal != "comma":
        return text
    return text.replace(".", ",")


def added_text(value: object, decimal: DecimalMark) -> str:
    """Return a new cell as text: a number, yes or no, or ""."""
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if not isinstance(value, float):
        return ""
    return number_text(value, decimal)


class TextWriter:
    """Writes the rows of a text file unchanged, with new cells appended."""

    def __init__(self, table: WrittenTable, names: Sequence[str], decimal: DecimalMark) -> None:
        """Check that delimiter and encoding of the table allow the new columns; ConfigError if they do not."""
        self._table = table
        self._names = list(names)
        self._decimal = decimal
        self._delimiter = table.form.delimiter
        if table.form.rules == "none" and decimal == "comma" and self._delimiter == ",":
            raise ConfigError(
                "Commas stand between the fields of the table, and quotes are characters: scores cannot have decimal "
                "commas. Give `decimal` point."
            )
        try:
            "".join(names).encode(table.encoding)
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"The names of the new columns must be in {table.encoding}, as the table is; received {list(names)}. "
                "Choose another `prefix`."
            ) from error

    def write(self, rows: Iterable[ScoredRow], stream: IO[bytes]) -> None:
        """Write the table to an open file."""
        stream.write(self._table.mark)
        for text in self._texts(rows):
            stream.write(text.encode(self._table.encoding))

    def _texts(self, rows: Iterable[ScoredRow]) -> Iterator[str]:
        top = list(self._table.top)
        header = None
        if self._table.header:  # the last line of the top; those above it stay as they are
            header = top.pop()
        for row in top:
            yield row.text + row.end
        if header is not None:
            # A header that is all of its file may have no line end.
            yield self._header(header) + (header.end or self._table.line_end)
        for row, cells in rows:
            yield self._line(row, cells) + row.end

    def _header(self, row: WrittenRow) -> str:
        text = text_without_empty_end(row, self._table.form)
        quoted = self._table.form.rules == "csv" and text[:1] == text[-1:] == '"'
        # Names are quoted where the table's own are, which keeps its style.
        names = [f'"{name}"' if quoted else self._field(name) for name in self._names]
        return self._delimiter.join([text, *names])

    def _line(self, row: WrittenRow, cells: Mapping[str, Any]) -> str:
        if row.cells is None:
            return self._blank(row)
        if self._table.suffix == ".jsonl":
            return with_cells(row, cells)
        fields = [self._field(added_text(cells[name], self._decimal)) for name in self._names]
        return self._delimiter.join([text_without_empty_end(row, self._table.form), *fields])

    def _blank(self, row: WrittenRow) -> str:
        """Return a blank row, widened to the number of columns; an empty line stays empty."""
        if not self._delimiter or self._delimiter not in row.text:
            return row.text
        return self._delimiter * (len(self._table.names) + len(self._names) - 1)

    def _field(self, text: str) -> str:
        if self._delimiter not in text:
            return text
        return f'"{text}"'
