"""Results of evaluations, which print as a table, a line a data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from samesense.results.markup import one_line
from samesense.results.measures import Measure, measure_of
from samesense.results.shown import ShownRows, import_pandas
from samesense.results.tables import Table, html_table, text_table
from samesense.types import Result

WHOLE_SUBSETS = ("all", "mean", "wmean")
"""Names of the rows that stand for all of the data, the one that is shown first."""


class Results(ShownRows, list[Result]):
    """A list of results that prints as a table, a line a data set.

    A line has the figure for the whole of a data set, by each metric, with its 95 % interval; :meth:`table` shows the
    subsets too. Correlations and shares are multiplied by 100. A column for the model appears where there are several,
    one for the split or the seed where nothing else tells two lines apart.
    """

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return "\n".join(html_table(*table) for table in result_tables(self))

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


def _interval(row: Result | None, measure: Measure) -> str:
    if row is None or row.low is None or row.high is None:
        return ""
    digits = 1 if measure.factor == 100 else measure.digits
    return f"[{measure.factor * row.low:z.{digits}f}, {measure.factor * row.high:z.{digits}f}]"
