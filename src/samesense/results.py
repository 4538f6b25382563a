"""Results that show themselves: as a table in a terminal and in a notebook, and as a data frame."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any, Literal

from samesense.errors import MissingExtraError
from samesense.failures import shorten_text
from samesense.types import Result

WHOLE_SUBSETS = ("all", "mean", "wmean")
"""Names of the rows that stand for all of the data, the one that is shown first."""

TEXT = ("suite", "model", "split", "dataset", "subset")
"""Columns that are set flush left."""

Rows = list[list[str]]
Table = tuple[list[str], Rows]
"""Header and rows."""


@dataclass(frozen=True)
class Measure:
    """How a metric is shown."""

    label: str  # its name in tables and messages
    factor: float = 100.0  # what values are multiplied by
    digits: int = 2  # decimals that are shown
    better: Literal["higher", "lower", ""] = "higher"  # which direction is better; "" where neither is so by itself

    @property
    def heading(self) -> str:
        """Its name and what its values are multiplied by, if by anything."""
        if self.factor != 100:
            return self.label
        return f"{self.label} x100"

    def text(self, value: float, *, sign: Literal["", "+"] = "") -> str:
        """Return a value in its natural unit as text, a difference with its ``sign``."""
        # The z keeps a value that rounds to zero from being shown as -0.00.
        return f"{self.factor * value:{sign}z.{self.digits}f}"


MEASURES = {
    "spearman": Measure("Spearman"),
    "pearson": Measure("Pearson"),
    "accuracy": Measure("accuracy"),
    "average_precision": Measure("average precision"),
    "f1": Measure("F1"),
    "kcc": Measure("Kendall"),
    "ndcg": Measure("NDCG"),
    "mrr": Measure("MRR"),
    "alignment": Measure("alignment", factor=1, digits=3, better=""),
    "uniformity": Measure("uniformity", factor=1, digits=3, better=""),
    "anisotropy": Measure("anisotropy", factor=1, digits=3, better=""),
    "effective_rank": Measure("effective rank", factor=1, digits=1, better=""),
}
"""Every metric by name. Geometry describes a space: a collapsed one has the best alignment, so none is marked best."""


def measure_of(metric: str) -> Measure:
    """Return how a metric is shown; one of another name is shown as it is, four decimals, no direction."""
    return MEASURES.get(metric, Measure(metric, factor=1, digits=4, better=""))


REPR_LINES = 4
"""Lines of a result in a console; ``print`` shows all of it."""

REPR_LENGTH = 300
"""Characters of a result in a console."""

SHOWN_ROWS = 10
"""Rows of a long table that a notebook shows."""


class Shown:
    """A result that shows itself: briefly in a console, whole by ``print`` and in a notebook."""

    def __repr__(self) -> str:
        """Return the first lines of what ``print`` shows, and how many there are."""
        lines = str(self).splitlines() or [""]
        brief = lines[:REPR_LINES]
        while len(brief) > 1 and sum(map(len, brief)) > REPR_LENGTH:
            brief.pop()
        brief = [line[:REPR_LENGTH] for line in brief]
        if len(brief) < len(lines):
            brief.append(f"... {len(lines) - len(brief)} more lines: print it")
        name = type(self).__name__
        if len(brief) == 1:
            return f"<{name}: {brief[0]}>"
        return "\n".join([f"<{name}>", *brief])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class ShownRows(Shown):
    """A result that has rows: a table in a notebook, and dictionaries or a data frame for programs."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary of plain JSON types."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with the rows of :meth:`to_dicts`.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        return import_pandas().DataFrame(self.to_dicts())

    def _first_dicts(self, count: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows, and how many there are."""
        rows = self.to_dicts()
        return rows[:count], len(rows)

    def table(self, rows: int = SHOWN_ROWS) -> str:
        """Return the first rows as aligned plain text, and how many more there are."""
        first, total = self._first_dicts(rows)
        if not first:
            return ""
        ellipsis = []
        if total > len(first):
            ellipsis.append(f"... {total - len(first):,} more rows")
        return "\n".join([text_table(*dict_table(first), left=_text_columns(first)), *ellipsis])

    def _repr_html_(self) -> str:
        first, total = self._first_dicts(SHOWN_ROWS)
        drawn = ""
        if first:
            drawn = _html_table(*dict_table(first), left=_text_columns(first))
        title = str(self).partition("\n")[0]
        return f"<p>{escape(title)}</p>\n{drawn}" + (f"\n<p>{total:,} rows</p>" if total > len(first) else "")


class Markdown(Shown, str):
    """Tables in Markdown: a text, which a console does not show whole."""

    def __str__(self) -> str:
        return str.__str__(self)


class RowList(ShownRows, list[Any]):
    """A list of results that each are a row; it prints as a table. A list in all else."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary of the fields of its class."""
        return [_fields_of(row) for row in self]

    def __str__(self) -> str:
        if not self:
            return "none"
        return self.table(rows=len(self))

    def _repr_html_(self) -> str:
        first = self.to_dicts()[:SHOWN_ROWS]
        if not first:
            return "<p>none</p>"
        return _html_table(*dict_table(first), left=_text_columns(first))


def _fields_of(row: Any) -> dict[str, Any]:
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    return dict(vars(row))


def dict_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return header and cells of rows that have the same keys; long texts are cut, fractions have four decimals."""
    header = list(rows[0])
    columns = [_cells([row[name] for row in rows]) for name in header]
    return header, [list(cells) for cells in zip(*columns, strict=True)]


def _text_columns(rows: Sequence[dict[str, Any]]) -> list[str]:
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


def import_pandas() -> Any:
    """Return pandas; MissingExtraError if it is not installed."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise MissingExtraError("pandas", "train") from error


class Results(ShownRows, list[Result]):
    """A list of results that prints as a table, a line a data set.

    A line has the figure for the whole of a data set, by each metric, with its 95 % interval; :meth:`table` shows the
    subsets too. Correlations and shares are multiplied by 100. A column for the model appears where there are several,
    one for the split or the seed where nothing else tells two lines apart.
    """

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return "\n".join(_html_table(*table) for table in result_tables(self))

    def table(self, *, subsets: bool = False) -> str:  # type: ignore[override]
        """Return the results as aligned plain text, a table a suite; ``subsets`` adds a line for each subset."""
        return "\n\n".join(text_table(*table) for table in result_tables(self, subsets=subsets))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each result as a dictionary of the fields that are present, plain JSON types."""
        return [result.to_dict() for result in self]

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a row a result and a column a field; absent values are missing ones.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        return import_pandas().DataFrame([vars(result) for result in self], columns=list(Result.__dataclass_fields__))


def mean_name(sets: int) -> str:
    """Return the name of a mean over ``sets`` data sets that has no other name."""
    return f"mean of {sets}"


def is_mean(dataset: str) -> bool:
    """Return whether a data set is called as :func:`mean_name` calls a mean."""
    return re.fullmatch(r"mean of \d+", dataset) is not None


def result_tables(results: Sequence[Result], *, subsets: bool = False) -> list[Table]:
    """Return the tables that all layouts share, one a suite, in the order of the results; see :class:`Results`."""
    selected = list(results if subsets else _whole(results))
    suites = list(dict.fromkeys(row.task for row in selected))
    if len(suites) < 2:
        return [_table(selected, _fields(selected))]
    of_suites = [[row for row in selected if row.task == suite] for suite in suites]
    return [_table(suite_rows, ["task", *_fields(suite_rows)]) for suite_rows in of_suites]


def _fields(results: Sequence[Result]) -> list[str]:
    """Return the fields that tell the lines of a table apart: a split or a seed only where nothing else does."""
    fields = ["dataset"]
    if len({row.model for row in results}) > 1:
        fields.insert(0, "model")
    if any(row.subset != "all" for row in results):
        fields.append("subset")
    for name in ("split", "seed"):
        values: dict[tuple[Any, ...], set[Any]] = {}
        for row in results:
            values.setdefault(tuple(getattr(row, field) for field in fields), set()).add(getattr(row, name))
        if any(len(field_values) > 1 for field_values in values.values()):
            fields.append(name)
    return fields


def _whole(results: Sequence[Result]) -> Iterator[Result]:
    """Yield what stands for the whole of a data set: ``all``, else ``mean``, else ``wmean``, else what there is."""
    groups: dict[tuple[Any, ...], list[Result]] = {}
    for row in results:
        groups.setdefault((row.task, row.dataset, row.split, row.model, row.seed, row.metric), []).append(row)
    for rows in groups.values():
        subsets = {row.subset for row in rows}
        chosen = next((name for name in WHOLE_SUBSETS if name in subsets), None)
        yield from (row for row in rows if chosen in (row.subset, None))


def _table(results: Sequence[Result], fields: Sequence[str]) -> Table:
    """Return a line for each value of the fields, with each metric and, where it has any, its intervals."""
    lines = _lines(results, fields)
    metrics = {name: measure_of(name) for name in dict.fromkeys(row.metric for row in results)}
    bounded = {row.metric for row in results if row.low is not None}
    header = ["suite" if name == "task" else name for name in fields]
    for name, measure in metrics.items():
        header.append(measure.heading)
        if name in bounded:
            header.append("95 % interval")
    rows = []
    for key, row_results in lines.items():
        cells = ["" if cell is None else one_line(str(cell)) for cell in key[: len(fields)]]
        for name, measure in metrics.items():
            result = row_results.get(name)
            cells.append("" if result is None else measure.text(result.value))
            if name in bounded:
                cells.append(_interval(result, measure))
        rows.append([*cells, str(next(iter(row_results.values())).n)])
    return [*header, "n"], rows


def _lines(results: Sequence[Result], fields: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Result]]:
    """Return the results by the values of the fields, and by metric."""
    lines: dict[tuple[Any, ...], dict[str, Result]] = {}
    for row in results:
        key = tuple(getattr(row, name) for name in fields)
        while row.metric in lines.get(key, ()):  # two results alike in every field that is shown
            key = (*key, "")
        lines.setdefault(key, {})[row.metric] = row
    return lines


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())


def plain(text: str) -> str:
    """Return text in which Markdown sees no markup; a mark before a space, as in "p < 0.001", is none."""
    return re.sub(r"[\\`*~\[\]>&]|<(?! )|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", one_line(text))


def code(text: str) -> str:
    """Return text as code of Markdown, in which nothing is markup; its marks are more than any that it holds."""
    text = one_line(text)
    marks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def _interval(row: Result | None, measure: Measure) -> str:
    if row is None or row.low is None or row.high is None:
        return ""
    digits = 1 if measure.factor == 100 else measure.digits
    return f"[{measure.factor * row.low:z.{digits}f}, {measure.factor * row.high:z.{digits}f}]"


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


def _html_table(header: list[str], rows: Rows, left: Sequence[str] = TEXT) -> str:
    lines = [_html_row("th", header, header, left), *(_html_row("td", row, header, left) for row in rows)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _html_row(element: str, row: list[str], header: list[str], left: Sequence[str]) -> str:
    """Return a row; numbers are flush right, as in a terminal."""
    cells = [
        f'<{element} style="text-align: {"left" if name in left else "right"}">{escape(cell)}</{element}>'
        for cell, name in zip(row, header, strict=True)
    ]
    return f"<tr>{''.join(cells)}</tr>"
