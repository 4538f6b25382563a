"""The main tables: a row a model, a column a data set, the best marked and what is not significantly worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from samesense.evaluation.averages import members_of
from samesense.evaluation.run import Failure
from samesense.evaluation.suites import SUITES
from samesense.reports.headline import Key, Seeds, headlines, is_headline
from samesense.reports.significance import Comparison
from samesense.results import Measure, mean_name, measure_of
from samesense.types import Result

ABSENT = "-"
"""What a cell without a figure shows."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model on one data set."""

    values: tuple[float, ...] = ()  # in the natural unit, one a seed; none where there is no figure
    interval: tuple[float, float] | None = None  # ends of the 95 % interval, for one seed
    undefined: str = ""  # why there is no figure, where that is known
    failed: int = 0  # training runs without a figure, beside those with one; of trainings that failed all
    waiting: int = 0  # training runs that are planned and not finished
    comparison: Comparison | None = None  # with the reference, where one was made
    best: bool = False  # whether this is the figure of the column that is set in bold

    @classmethod
    def of(cls, rows: Sequence[Result]) -> Cell:
        """Return the cell of one model's results, one a seed; several have no interval."""
        interval = None
        if len(rows) == 1 and rows[0].low is not None and rows[0].high is not None:
            interval = (rows[0].low, rows[0].high)
        return cls(values=tuple(row.value for row in rows), interval=interval)

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.values))

    @property
    def as_good(self) -> bool:
        """Whether the difference from the reference was tested and is not significant."""
        return self.comparison is not None and not self.comparison.significant

    def text(self, measure: Measure) -> str:
        """Return mean, or mean ± sd over seeds, and how many there are if some are missing, or that there is none."""
        if not self.values and self.waiting and not self.failed:
            return "not run"
        if not self.values:
            return "failed" if self.failed else "undefined" if self.undefined else ABSENT
        missing = self.failed + self.waiting
        shown = measure.text(self.mean)
        if len(self.values) > 1:
            shown += f" ± {measure.factor * np.std(self.values, ddof=1):.{measure.digits}f}"
        return shown + (f" ({len(self.values)} of {len(self.values) + missing} runs)" if missing else "")

    def interval_text(self, measure: Measure) -> str:
        """Return the interval, or nothing."""
        if self.interval is None:
            return ""
        return f"[{measure.text(self.interval[0])}, {measure.text(self.interval[1])}]"


@dataclass(frozen=True)
class Column:
    """A data set and metric, or an average over data sets."""

    label: str
    measure: Measure
    average: bool = False
    mixed: bool = False  # whether the average is over other data sets for one model than for another
    key: Key = ("", "", "")  # suite, data set or average, and metric


Filled = tuple[Column, dict[str, Cell]]
"""A column and its cell for each model."""


@dataclass(frozen=True)
class Grid:
    """One table."""

    suite: str  # such as "sts"
    title: str
    columns: list[Column]  # what stands side by side
    rows: dict[str, list[Cell]]  # for each model one cell a column


def grids(
    results: Sequence[Result],
    *,
    averages: Sequence[Result] = (),
    comparisons: Sequence[Comparison] = (),
    failures: Sequence[Failure] = (),
    waiting: Mapping[tuple[str, str], int] = MappingProxyType({}),
    shown_best: Mapping[Key, str] | None = None,
) -> list[Grid]:
    """Lay out the main figures of every suite.

    A suite has a table for each of its main metrics, or a single one where metrics only mean something together, as
    in geometry. A table of several data sets ends with the given averages, or with the plain mean where none is given;
    a model that lacks one of the data sets has no mean.

    ``waiting`` has the number of planned runs without a figure, by model and data set. The best figure of a column is
    set in bold; with ``shown_best`` only that of the model which it names for the column.
    """
    begun = [row.model for row in results] + [failure.model for failure in failures]
    models = list(dict.fromkeys([*begun, *(model for model, _ in waiting)]))
    found = {key: runs for key, runs in headlines(results).items() if is_headline(key[0], key[2])}
    given = headlines(averages)
    tables: dict[tuple[str, str], list[Filled]] = {}
    for (suite, dataset, metric), runs in found.items():
        joined = suite in SUITES and SUITES[suite].one_table
        label = f"{dataset}: {measure_of(metric).label}" if joined else dataset
        column = (Column(label, measure_of(metric), key=(suite, dataset, metric)), _cells(runs))
        _annotate(column[1], suite, dataset, metric, comparisons, failures)
        _add_waiting(column[1], dataset, waiting)
        tables.setdefault((suite, "" if joined else metric), []).append(column)
    made = []
    for (suite, metric), columns in tables.items():
        if metric:
            averages_of = _averages(suite, metric, given, found)
            means = [
                (replace(column, key=(suite, column.label, metric)), _with_failed(cells, columns))
                for column, cells in averages_of
            ]
            for average, by_model in means:
                _annotate(by_model, suite, average.label, metric, comparisons, ())
            columns += means
        title = f"{suite}: {measure_of(metric).label}" if metric else suite
        cells = [_marked(by_model, column, shown_best) for column, by_model in columns]
        rows = {model: [by_model.get(model, Cell()) for by_model in cells] for model in models}
        made.append(Grid(suite, title, [column for column, _ in columns], rows))
    return made


def _cells(runs: Seeds) -> dict[str, Cell]:
    models = dict.fromkeys(model for model, _ in runs)
    return {model: Cell.of([row for (name, _), row in runs.items() if name == model]) for model in models}


def _annotate(
    cells: dict[str, Cell],
    suite: str,
    dataset: str,
    metric: str,
    comparisons: Sequence[Comparison],
    failures: Sequence[Failure],
) -> None:
    """Add to the cells of a column what was compared, and what failed."""
    for one in comparisons:
        if (one.task, one.dataset, one.metric) == (suite, dataset, metric) and one.model in cells:
            cells[one.model] = replace(cells[one.model], comparison=one)
    for failed in failures:
        if (failed.task, failed.dataset) == (suite, dataset):
            cell = cells.get(failed.model, Cell(undefined=failed.reason))
            counts = bool(cell.values) or not failed.trained
            cells[failed.model] = replace(cell, failed=cell.failed + counts)


def _add_waiting(cells: dict[str, Cell], dataset: str, waiting: Mapping[tuple[str, str], int]) -> None:
    """Add to the cells of a column how many planned runs have no figure yet."""
    for (model, name), count in waiting.items():
        if name == dataset:
            cells[model] = replace(cells.get(model, Cell()), waiting=count)


def _averages(
    suite: str, metric: str, given: dict[tuple[str, str, str], Seeds], found: dict[tuple[str, str, str], Seeds]
) -> list[tuple[Column, dict[str, Cell]]]:
    """Return the columns of averages of a table."""
    own = [(name, runs) for (task, name, kind), runs in given.items() if (task, kind) == (suite, metric)]
    if own:
        return [(_average(name, measure_of(metric), runs), _cells(runs)) for name, runs in own]
    sets = [runs for (task, _, kind), runs in found.items() if (task, kind) == (suite, metric)]
    if len(sets) < 2:
        return []
    everywhere = [run for run in sets[0] if all(run in runs for runs in sets)]
    cells: dict[str, Cell] = {}
    for run in everywhere:
        before = cells.get(run[0], Cell()).values
        cells[run[0]] = Cell(values=(*before, float(np.mean([runs[run].value for runs in sets]))))
    return [(Column(mean_name(len(sets)), measure_of(metric), average=True), cells)]


def _with_failed(averages: Mapping[str, Cell], columns: Sequence[tuple[Column, Mapping[str, Cell]]]) -> dict[str, Cell]:
    """Return averages that say of how many runs they lack a figure on one of the sets."""
    made = {}
    for model, average in averages.items():
        own = [cells[model] for _, cells in columns if model in cells]
        runs = max((len(cell.values) + cell.failed + cell.waiting for cell in own), default=0)
        made[model] = replace(average, failed=max(0, runs - len(average.values)))
    return made


def _average(name: str, measure: Measure, runs: Seeds) -> Column:
    """Return the column of an average, and say where models lack different data sets."""
    mixed = len({members_of(row) for row in runs.values()}) > 1
    return Column(f"{name}, not the same" if mixed else name, measure, average=True, mixed=mixed)


def _marked(cells: dict[str, Cell], column: Column, shown_best: Mapping[Key, str] | None) -> dict[str, Cell]:
    """Mark the best of a column of two models or more, whose figures can be compared; or what is shown to be it."""
    if shown_best is not None:
        return {model: replace(cell, best=shown_best.get(column.key) == model) for model, cell in cells.items()}
    means = {model: cell.mean for model, cell in cells.items() if cell.values}
    if len(means) < 2 or not column.measure.better or column.mixed:
        return cells
    top = max(means.values()) if column.measure.better == "higher" else min(means.values())
    return {model: replace(cell, best=means.get(model) == top) for model, cell in cells.items()}
