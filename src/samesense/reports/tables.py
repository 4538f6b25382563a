"""Results as text: for the terminal, and in Markdown."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from samesense.errors import DataError
from samesense.types import Result

NUMERIC = ("value x100", "interval", "n", "seed", "mean ± sd (x100)", "seeds")
"""Columns that are set flush right."""

Rows = list[list[str]]


def results_table(results: Sequence[Result]) -> str:
    """Lay out results as aligned plain text for a terminal.

    Values are multiplied by 100, with two decimals; intervals have one. A column for the model, the split or the
    seed appears where the results differ in it.

    Args:
        results: what to show, in this order.

    Returns:
        Lines joined by newlines, without one at the end.
    """
    header, rows = _cells(results)
    widths = [max(_width(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [_aligned(header, header, widths), "  ".join("-" * width for width in widths)]
    lines += [_aligned(row, header, widths) for row in rows]
    return "\n".join(lines)


def markdown_table(results: Sequence[Result]) -> str:
    """Lay out results as a Markdown table with the same columns as :func:`results_table`.

    Args:
        results: what to show, in this order.

    Returns:
        Lines joined by newlines, without one at the end.
    """
    return markdown(*_cells(results))


def seeds_table(rows: Mapping[str, Sequence[float]]) -> str:
    """Lay out repeated runs as a Markdown table of mean and standard deviation.

    The deviation is that of a sample (divided by one less than the number of seeds), and so absent for one seed.

    Args:
        rows: for each name, the value of every seed in its natural unit; shown multiplied by 100.

    Returns:
        Lines joined by newlines, without one at the end.

    Raises:
        DataError: if a row has no value, or one that is not finite.
    """
    cells: Rows = []
    for name, values in rows.items():
        numbers = 100 * np.asarray(values, dtype=np.float64)
        if not len(numbers) or not np.isfinite(numbers).all():
            raise DataError(f"Each row needs one finite value or more, and {name!r} has {list(values)}.")
        shown = f"{numbers.mean():z.2f}"
        if len(numbers) > 1:
            shown += f" ± {numbers.std(ddof=1):.2f}"
        cells.append([one_line(name), shown, str(len(numbers))])
    return markdown(["name", "mean ± sd (x100)", "seeds"], cells)


def _cells(results: Sequence[Result]) -> tuple[list[str], Rows]:
    """Return the header and the rows that both layouts share."""
    differing = [name for name in ("model", "split", "seed") if len({getattr(row, name) for row in results}) > 1]
    header = [*differing, "dataset", "subset", "metric", "value x100", "interval", "n"]
    rows = []
    for row in results:
        own = [getattr(row, name) for name in differing]
        cells = ["" if cell is None else str(cell) for cell in [*own, row.dataset, row.subset, row.metric]]
        rows.append([*map(one_line, cells), f"{100 * row.value:z.2f}", _interval(row), str(row.n)])
    return header, rows


def _interval(row: Result) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"[{100 * row.low:z.1f}, {100 * row.high:z.1f}]"


def markdown(header: list[str], rows: Rows, numeric: Collection[str] = NUMERIC) -> str:
    """Lay out cells as a Markdown table.

    Args:
        header: name of each column, as Markdown.
        rows: cells of each row, as Markdown; a vertical bar is escaped.
        numeric: names of the columns that are set flush right.

    Returns:
        Lines joined by newlines, without one at the end.
    """
    rule = ["---:" if name in numeric else "---" for name in header]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [header, rule, *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)


def _aligned(row: list[str], header: list[str], widths: list[int]) -> str:
    cells = []
    for cell, name, width in zip(row, header, widths, strict=True):
        space = " " * (width - _width(cell))
        cells.append(space + cell if name in NUMERIC else cell + space)
    return "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Return the terminal columns of a text; Chinese, Japanese and Korean characters take two."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())
