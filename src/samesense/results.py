"""Results that show themselves: as a table in a terminal and in a notebook, and as a data frame."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any

from samesense.errors import MissingExtraError
from samesense.types import Result

WHOLE_SUBSETS = ("all", "mean", "wmean")
"""Names of the rows that stand for all of the data, the one that a report shows first."""

NUMERIC = ("value x100", "interval", "n", "seed")
"""Columns that are set flush right."""

Rows = list[list[str]]


class Results(list[Result]):
    """A list of results that prints as a table.

    Values are multiplied by 100, with two decimals; intervals have one. A column for the model, the split or the
    seed appears where the results differ in it.
    """

    def __str__(self) -> str:
        """Return the table that :func:`results_table` makes."""
        return results_table(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, rows = result_cells(self)
        lines = [_html_row("th", header, header), *(_html_row("td", row, header) for row in rows)]
        return "<table>\n" + "\n".join(lines) + "\n</table>"

    def whole(self) -> Results:
        """Return those that stand for all of a data set: ``all``, and where it has subsets ``mean`` and ``wmean``."""
        return Results(row for row in self if row.subset in WHOLE_SUBSETS)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each result as a dictionary of the fields that are present, plain JSON types."""
        return [result.to_dict() for result in self]

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row a result and a column a field; absent values are missing ones.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise MissingExtraError("pandas", "train") from error
        return pandas.DataFrame([vars(result) for result in self], columns=list(Result.__dataclass_fields__))


def results_table(results: Sequence[Result]) -> str:
    """Lay out results, in this order, as aligned plain text for a terminal; see :class:`Results`."""
    header, rows = result_cells(results)
    widths = [max(_width(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [_aligned(header, header, widths), "  ".join("-" * width for width in widths)]
    lines += [_aligned(row, header, widths) for row in rows]
    return "\n".join(lines)


def result_cells(results: Sequence[Result]) -> tuple[list[str], Rows]:
    """Return the header and the rows that all layouts share."""
    differing = [name for name in ("model", "split", "seed") if len({getattr(row, name) for row in results}) > 1]
    header = [*differing, "dataset", "subset", "metric", "value x100", "interval", "n"]
    rows = []
    for row in results:
        own = [getattr(row, name) for name in differing]
        cells = ["" if cell is None else str(cell) for cell in [*own, row.dataset, row.subset, row.metric]]
        rows.append([*map(one_line, cells), f"{100 * row.value:z.2f}", _interval(row), str(row.n)])
    return header, rows


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())


def _interval(row: Result) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"[{100 * row.low:z.1f}, {100 * row.high:z.1f}]"


def _aligned(row: list[str], header: list[str], widths: list[int]) -> str:
    cells = []
    for cell, name, width in zip(row, header, widths, strict=True):
        space = " " * (width - _width(cell))
        cells.append(space + cell if name in NUMERIC else cell + space)
    return "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Return the terminal columns of a text; Chinese, Japanese and Korean characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _html_row(element: str, row: list[str], header: list[str]) -> str:
    """Return a row; numbers are flush right, as in a terminal."""
    cells = [
        f'<{element} style="text-align: {"right" if name in NUMERIC else "left"}">{escape(cell)}</{element}>'
        for cell, name in zip(row, header, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"
