"""Tables in Markdown and, for papers, in LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from samesense.reports.grid import Grid
from samesense.results import NUMERIC, Rows, one_line, result_cells
from samesense.types import Result


def markdown_table(results: Sequence[Result]) -> str:
    """Lay out results as a Markdown table with the same columns as :func:`samesense.results.results_table`."""
    return markdown(*result_cells(results))


def markdown(header: list[str], rows: Rows, numeric: Collection[str] = NUMERIC) -> str:
    """Lay out cells as a Markdown table.

    A vertical bar in a cell is escaped; columns named in ``numeric`` are set flush right.
    """
    rule = ["---:" if name in numeric else "---" for name in header]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in [header, rule, *rows]]
    return "\n".join("| " + " | ".join(row) + " |" for row in escaped)


AS_GOOD = "≈"
"""Marks a figure whose difference from the reference is not significant."""

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    AS_GOOD: r"$\approx$",
}


def markdown_grids(grids: Sequence[Grid]) -> str:
    """Return the tables in Markdown, each under a heading; the best is bold, the reference's equals marked."""
    return "\n\n".join(f"## {plain(grid.title)}\n\n{_markdown_grid(grid)}" for grid in grids) + "\n"


def _markdown_grid(grid: Grid) -> str:
    header = ["model", *(plain(column.label) for column in grid.columns)]
    rows = []
    for model, cells in grid.rows.items():
        row = [plain(model)]
        for cell, column in zip(cells, grid.columns, strict=True):
            text = cell.text(column.measure)
            row.append((f"**{text}**" if cell.best else text) + (f" {AS_GOOD}" if cell.as_good else ""))
        rows.append(row)
    return markdown(header, rows, numeric=header[1:])


def plain(text: str) -> str:
    """Return text in which Markdown sees no markup."""
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>" else sign for sign in one_line(text))


def latex_grids(grids: Sequence[Grid], *, marks: str, legend: str) -> str:
    """Return the tables in LaTeX, for a document that loads booktabs.

    ``marks`` stands in each caption, after the title; ``legend`` says the same at length, as a comment above the
    tables.
    """
    return "\n\n".join([f"% {one_line(legend)}", *(_latex_grid(grid, marks) for grid in grids)]) + "\n"


def _latex_grid(grid: Grid, marks: str) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(grid.title)}. {escape(marks)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(grid.columns)}}}",
        r"\toprule",
        " & ".join(["model", *(escape(column.label) for column in grid.columns)]) + r" \\",
        r"\midrule",
    ]
    for model, cells in grid.rows.items():
        row = [escape(model)]
        for cell, column in zip(cells, grid.columns, strict=True):
            text = escape(cell.text(column.measure))
            if cell.values and text.startswith("-"):
                text = f"$-${text[1:]}"
            text = rf"\textbf{{{text}}}" if cell.best else text
            row.append(text + (r"$^{\approx}$" if cell.as_good else ""))
        lines.append(" & ".join(row) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def escape(text: str) -> str:
    """Return text on one line in which LaTeX sees no command."""
    return "".join(_SPECIAL.get(sign, sign) for sign in one_line(text))
