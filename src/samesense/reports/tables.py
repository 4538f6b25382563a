"""Tables in Markdown and, for papers, in LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from samesense.reports.grid import ABSENT, Grid
from samesense.reports.recommendation import milliseconds_text
from samesense.reports.significance import p_text
from samesense.reports.standing import Ranking, Standing
from samesense.reports.verdict import direction, short
from samesense.results.markup import one_line, plain
from samesense.results.results import result_tables
from samesense.results.tables import TEXT, Rows
from samesense.types import Result


@dataclass(frozen=True)
class TitledTable:
    """A table beside the main ones."""

    title: str
    header: list[str]
    rows: Rows
    numeric: Collection[str]  # columns that are set flush right

    def markdown(self) -> str:
        """Return the table as Markdown, without its title."""
        return markdown(self.header, self.rows, self.numeric)


def markdown_table(results: Sequence[Result]) -> str:
    """Lay out results as Markdown tables, as :class:`samesense.results.results.Results` prints them."""
    tables = result_tables(results)
    return "\n\n".join(markdown(header, rows, [name for name in header if name not in TEXT]) for header, rows in tables)


def markdown(header: list[str], rows: Rows, numeric: Collection[str], *, marked: bool = False) -> str:
    """Lay out cells as a Markdown table.

    Markup in a cell is escaped unless the cells are ``marked`` up; a vertical bar is always escaped. Columns named in
    ``numeric`` hold figures, which are set flush right and not escaped.
    """
    rule = ["---:" if name in numeric else "---" for name in header]
    if not marked:
        names = [name not in numeric for name in header]
        rows = [[plain(cell) if name else cell for cell, name in zip(row, names, strict=True)] for row in rows]
        header = [plain(cell) for cell in header]
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
    "[": "{[}",  # at the start of a row it would be an option of the rule or line end above
    "]": "{]}",
    "*": "{*}",  # as "[" is
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
            if cell.best:
                text = f"**{text}**"
            if cell.as_good:
                text += f" {AS_GOOD}"
            row.append(text)
        rows.append(row)
    return markdown(header, rows, numeric=header[1:], marked=True)


COMPUTED = "computed"
"""The column that says in which arithmetic the speed was measured."""


def ranking_cells(ranking: Ranking) -> tuple[list[str], Rows]:
    """Return the header and a row for each model, the best first: score, lead over the reference, time, memory, size.

    A column that is empty for every model is left out, and so is the arithmetic if it is the same for all.
    """
    measure = ranking.measure
    rows = []
    for standing in ranking.standings:
        interval = f"{short(standing.low, measure)} to {short(standing.high, measure)}"
        lead = _lead(ranking, standing)
        rows.append([standing.model, short(standing.score, measure), interval, lead, *_costs(standing)])
    header = ["model", measure.label, "95 % interval", f"against {ranking.reference}", "ms a text (range)"]
    header += ["MB of memory", "MB on disk", "million parameters", COMPUTED]
    columns = [index for index in range(len(header)) if any(row[index] not in (ABSENT, "") for row in rows)]
    if len({row[-1] for row in rows} - {""}) == 1:
        columns = [index for index in columns if header[index] != COMPUTED]
    return [header[index] for index in columns], [[row[index] for index in columns] for row in rows]


def _lead(ranking: Ranking, standing: Standing) -> str:
    """Return the difference of a model from the reference with its p-value."""
    comparison = ranking.against_reference.get(standing.model)
    if comparison is not None:
        return f"{direction(comparison.difference, ranking.measure, 1)}, {p_text(comparison.adjusted)}"
    if standing.model == ranking.reference:
        return "the reference"
    return ABSENT


def _costs(standing: Standing) -> list[str]:
    """Return time, memory, size on disk, parameters and arithmetic of a model."""
    memory = ABSENT
    megabytes = ABSENT
    parameters = ABSENT
    if standing.memory is not None:
        memory = f"{standing.memory:,.0f}"
    if standing.megabytes is not None:
        megabytes = f"{standing.megabytes:.1f}"
    if standing.parameters is not None:
        parameters = f"{standing.parameters / 1e6:.1f}"
    return [milliseconds_text(standing) or ABSENT, memory, megabytes, parameters, standing.computed]


def markdown_opening(ranking: Ranking, lines: Sequence[str]) -> str:
    """Return the answer in Markdown: its sentences, then a table with a row per model."""
    header, rows = ranking_cells(ranking)
    numeric = [name for name in header[1:] if name != COMPUTED]
    return "\n\n".join([" ".join(map(plain, lines)), markdown(header, rows, numeric=numeric)])


def latex_grids(grids: Sequence[Grid], *, captions: Sequence[str], legend: Sequence[str], note: str = "") -> str:
    """Return the tables in LaTeX, for a document that loads booktabs.

    Each grid has a caption; the lines of ``legend`` stand as comments above the tables, and ``note`` below each table.
    """
    comments = "\n".join(f"% {one_line(line)}" for line in legend)
    tables = [_latex_grid(grid, caption, note) for grid, caption in zip(grids, captions, strict=True)]
    return "\n\n".join([comments, *tables]) + "\n"


def _latex_grid(grid: Grid, caption: str, note: str) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(grid.columns)}}}",
        r"\toprule",
        " & ".join(["model", *(escape(column.label) for column in grid.columns)]) + r" \\",
        r"\midrule",
    ]
    for model, cells in grid.rows.items():
        row = [escape(model)]
        for cell, column in zip(cells, grid.columns, strict=True):
            text = escape(cell.text(column.measure))
            if cell.values and text.startswith("-"):  # a hyphen is not a minus sign
                text = f"$-${text[1:]}"
            if cell.best:
                text = rf"\textbf{{{text}}}"
            if cell.as_good:
                text += r"$^{\approx}$"
            row.append(text)
        lines.append(" & ".join(row) + r" \\")
    below = []
    if note:
        below.append(rf"\par\smallskip\emph{{{escape(note)}}}")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *below, r"\end{table}"])


def escape(text: str) -> str:
    """Return text on one line in which LaTeX sees no command."""
    signs = "".join(_SPECIAL.get(sign, sign) for sign in one_line(text))
    return signs.replace("--", "-{}-").replace("--", "-{}-")  # which would be set as one dash
