"""The report of a comparison, which prints itself and saves itself in the format of a file's suffix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from samesense.errors import ConfigError
from samesense.files import write_text
from samesense.reports.content import Content
from samesense.reports.figures.plot import save_plots
from samesense.reports.page import html_page, html_tables
from samesense.reports.tables import latex_grids, markdown_grids, markdown_opening
from samesense.results.markup import plain
from samesense.results.shown import Shown


class Report(Shown, Content):
    """The comparison of several models; it prints as its main tables in Markdown with the answer last."""

    def __str__(self) -> str:
        return "\n\n".join([markdown_grids(self.grids()).rstrip(), *filter(None, [" ".join(self.verdict())])])

    def _repr_html_(self) -> str:
        return html_tables(self)

    def save(self, path: str | Path, kind: str | None = None) -> Path:
        """Write the report to a file atomically.

        Args:
            path: ends in ``.html`` for a self-contained page with everything, in ``.md`` or ``.tex`` for the main
                tables, in ``.jsonl`` for results and averages, one a line.
            kind: ``"html"``, ``"md"``, ``"tex"`` or ``"jsonl"`` for a path that ends otherwise.

        Returns:
            The path.

        Raises:
            ConfigError: if there is no such kind.
            OutputError: if the file cannot be written; an existing file is then unchanged.
        """
        kind = kind or Path(path).suffix.removeprefix(".")
        if kind not in FORMATS:
            raise ConfigError(f"A report ends in .{', .'.join(FORMATS)}; received {Path(path).name!r}.")
        return write_text(path, FORMATS[kind](self))

    def save_figures(self, folder: str | Path) -> list[Path]:
        """Write every figure as SVG, PNG and PDF into a folder, and return the files."""
        return save_plots(self.plots(), Path(folder))


def _markdown(report: Report) -> str:
    opening = ""
    if report.ranking is not None:
        opening = f"{markdown_opening(report.ranking, report.verdict())}\n\n"
    return f"{opening}{markdown_grids(report.grids())}\n{plain(report.legend())}\n"


def _latex(report: Report) -> str:
    grids = report.grids()
    captions = [report.caption(grid) for grid in grids]
    recommended = [] if report.recommendation is None else report.recommendation.lines()
    legend = [*recommended, report.legend(), *(f"warning: {line}" for line in report.warnings if report.protocol)]
    return latex_grids(grids, captions=captions, legend=legend, note=report.incomplete)


def _json_lines(report: Report) -> str:
    rows = [*report.results, *report.averages]
    return "".join(json.dumps(row.to_dict(), allow_nan=False) + "\n" for row in rows)


FORMATS: dict[str, Callable[[Report], str]] = {"html": html_page, "md": _markdown, "tex": _latex, "jsonl": _json_lines}
"""Writers of a report, by the suffix of its file."""
