"""Tables as aligned plain text and as HTML, and cells of rows that are dictionaries."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any

from samesense.failures import shorten_text
from samesense.results.markup import one_line

TEXT = ("suite", "model", "split", "dataset", "subset")
"""Columns that are set flush left."""

Rows = list[list[str]]
Table = tuple[list[str], Rows]
"""Header and rows."""


def dict_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return header and cells of rows that have the same keys; long texts are cut, fractions have four decimals."""
    header = list(rows[0])
    columns = [_cells([row[name] for row in rows]) for name in header]
    return header, [list(cells) for cells in zip(*columns, strict=True)]


def text_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the columns of texts, which are set flush left."""
    return [name for name, value in rows[0].items() if isinstance(value, str)]


CELL = 60
"""Characters of a text in a table."""


def _cells(values: Sequence[Any]) -> list[str]:
    """Return the cells of a column; numbers that are all whole have no decimals."""
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return [f"{value:.0f}" if whole else _cell(value) for value in values]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return shorten_text(one_line(str(value)), CELL)


def text_table(header: list[str], rows: Rows, *, left: Sequence[str] = TEXT) -> str:
    """Return aligned plain text; the columns whose headings are in ``left`` are set flush left, the others right."""
    widths = [max(_width(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(row: list[str]) -> str:
        cells = []
        for cell, name, width in zip(row, header, widths, strict=True):
            space = " " * (width - _width(cell))
            if name in left:
                cells.append(cell + space)
            else:
                cells.append(space + cell)
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])


def _width(text: str) -> int:
    """Return the terminal columns of a text; Chinese, Japanese and Korean characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def html_table(header: list[str], rows: Rows, left: Sequence[str] = TEXT) -> str:
    """Return an HTML table; columns are set flush left as in :func:`text_table`."""
    lines = [_html_row("th", header, header, left), *(_html_row("td", row, header, left) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _html_row(element: str, row: list[str], header: list[str], left: Sequence[str]) -> str:
    """Return a row; numbers are flush right, as in a terminal."""
    cells = [
        f'<{element} style="text-align: {"left" if name in left else "right"}">{escape(cell)}</{element}>'
        for cell, name in zip(row, header, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"
