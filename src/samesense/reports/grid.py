"""The main tables: a row per model, a column per data set, with marks for the best and for what is not worse."""

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
from samesense.results.measures import Measure, measure_of
from samesense.results.results import mean_name
from samesense.types import Result

ABSENT = "-"
"""Text of a cell without a figure."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model on one data set."""

    values: tuple[float, ...] = ()  # in the natural unit, one per seed; empty without a figure
    interval: tuple[float, float] | None = None  # ends of the 95 % interval, for one seed
    undefined: str = ""  # why there is no figure, if that is known
    failed: int = 0  # training runs without a figure beside those with one; all runs whose training failed
    waiting: int = 0  # training runs that are planned and not finished
    comparison: Comparison | None = None  # with the reference, if it was tested
    best: bool = False  # whether the figure is set in bold

    @classmethod
    def of(cls, rows: Sequence[Result]) -> Cell:
        """Return the cell of one model's results, one per seed; several seeds have no interval."""
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
        """Return the mean, with the standard deviation over several seeds, or why there is no figure."""
        if not self.values:
            return self._absence()
        missing = self.failed + self.waiting
        text = measure.text(self.mean)
        if len(self.values) > 1:
            text += f" ± {measure.factor * np.std(self.values, ddof=1):.{measure.digits}f}"
        if missing:
            text += f" ({len(self.values)} of {len(self.values) + missing} runs)"
        return text

    def _absence(self) -> str:
        """Return why the cell has no figure."""
        if self.failed:
            return "failed"
        if self.waiting:
            return "not run"
        if self.undefined:
            return "undefined"
        return ABSENT

    def interval_text(self, measure: Measure) -> str:
        """Return the interval as text; empty if there is none."""
        if self.interval is None:
            return ""
        return f"[{measure.text(self.interval[0])}, {measure.text(self.interval[1])}]"


@dataclass(frozen=True)
class Column:
    """A data set and metric, or an average over data sets."""

    label: str
    measure: Measure
    average: bool = False
    mixed: bool = False  # whether models are averaged over different data sets
    key: Key = ("", "", "")  # suite, data set or average, and metric


Filled = tuple[Column, dict[str, Cell]]
"""A column and its cell for each model."""


@dataclass(frozen=True)
class Grid:
    """One table."""

    suite: str  # such as "sts"
    title: str
    columns: list[Column]
    rows: dict[str, list[Cell]]  # for each model one cell per column


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

    A suite has a table for each of its main metrics, or a single table if the metrics only have a meaning together, as
    in geometry. A table of several data sets ends with ``averages``, or with the plain mean if there are none for it; a
    model that lacks one of the data sets has no mean.

    ``waiting`` is the number of planned runs without a figure, by model and data set. The best figure of a column is
    set in bold; with ``shown_best`` only that of the model it names for the column.
    """
    models = _models(results, failures, waiting)
    figures = {key: runs for key, runs in headlines(results).items() if is_headline(key[0], key[2])}
    average_figures = headlines(averages)
    tables: dict[tuple[str, str], list[Filled]] = {}
    for (suite, dataset, metric), runs in figures.items():
        label = dataset
        table = suite, metric
        if suite in SUITES and SUITES[suite].one_table:
            label = f"{dataset}: {measure_of(metric).label}"
            table = suite, ""
        column = Column(label, measure_of(metric), key=(suite, dataset, metric))
        cells = _cells(runs)
        _annotate(cells, suite, dataset, metric, comparisons, failures)
        _add_waiting(cells, dataset, waiting)
        tables.setdefault(table, []).append((column, cells))
    laid_out = []
    for (suite, metric), columns in tables.items():
        title = suite
        if metric:
            title = f"{suite}: {measure_of(metric).label}"
            # All are made before any is added: the runs that an average lacks are counted in the data sets alone.
            columns += [
                _average_column(average, by_model, (suite, average.label, metric), columns, comparisons)
                for average, by_model in _averages(suite, metric, average_figures, figures)
            ]
        marked = [_marked(by_model, column, shown_best) for column, by_model in columns]
        rows = {model: [by_model.get(model, Cell()) for by_model in marked] for model in models}
        laid_out.append(Grid(suite, title, [column for column, _ in columns], rows))
    return laid_out


def _models(
    results: Sequence[Result], failures: Sequence[Failure], waiting: Mapping[tuple[str, str], int]
) -> list[str]:
    """Return the models in their order: those with results, then those that failed, then those that wait."""
    started = [*(row.model for row in results), *(failure.model for failure in failures)]
    return list(dict.fromkeys([*started, *(model for model, _ in waiting)]))


def _average_column(
    average: Column,
    by_model: Mapping[str, Cell],
    key: Key,
    columns: Sequence[Filled],
    comparisons: Sequence[Comparison],
) -> Filled:
    """Return the column of an average with its comparisons, and the number of runs that it lacks."""
    cells = _with_failed(by_model, columns)
    _annotate(cells, *key, comparisons, ())
    return replace(average, key=key), cells


def _cells(runs: Seeds) -> dict[str, Cell]:
    """Return the cell of each model that has runs."""
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
    """Add comparisons and failures to the cells of a column."""
    for comparison in comparisons:
        of_column = (comparison.task, comparison.dataset, comparison.metric) == (suite, dataset, metric)
        if of_column and comparison.model in cells:
            cells[comparison.model] = replace(cells[comparison.model], comparison=comparison)
    for failure in failures:
        if (failure.task, failure.dataset) == (suite, dataset):
            cell = cells.get(failure.model, Cell(undefined=failure.reason))
            counts = bool(cell.values) or not failure.trained
            cells[failure.model] = replace(cell, failed=cell.failed + counts)


def _add_waiting(cells: dict[str, Cell], dataset: str, waiting: Mapping[tuple[str, str], int]) -> None:
    """Add to the cells of a column the number of planned runs without a figure."""
    for (model, name), count in waiting.items():
        if name == dataset:
            cells[model] = replace(cells.get(model, Cell()), waiting=count)


def _averages(suite: str, metric: str, averages: Mapping[Key, Seeds], figures: Mapping[Key, Seeds]) -> list[Filled]:
    """Return the average columns of a table, with their cells by model."""
    suite_averages = [(name, runs) for (task, name, kind), runs in averages.items() if (task, kind) == (suite, metric)]
    if suite_averages:
        return [(_average(name, measure_of(metric), runs), _cells(runs)) for name, runs in suite_averages]
    sets = [runs for (task, _, kind), runs in figures.items() if (task, kind) == (suite, metric)]
    if len(sets) < 2:
        return []
    everywhere = [run for run in sets[0] if all(run in runs for runs in sets)]
    cells: dict[str, Cell] = {}
    for run in everywhere:
        before = cells.get(run[0], Cell()).values
        cells[run[0]] = Cell(values=(*before, float(np.mean([runs[run].value for runs in sets]))))
    return [(Column(mean_name(len(sets)), measure_of(metric), average=True), cells)]


def _with_failed(averages: Mapping[str, Cell], columns: Sequence[tuple[Column, Mapping[str, Cell]]]) -> dict[str, Cell]:
    """Return the averages with the number of runs that lack a figure on one of the data sets."""
    marked = {}
    for model, average in averages.items():
        model_cells = [cells[model] for _, cells in columns if model in cells]
        runs = max((len(cell.values) + cell.failed + cell.waiting for cell in model_cells), default=0)
        marked[model] = replace(average, failed=max(0, runs - len(average.values)))
    return marked


def _average(name: str, measure: Measure, runs: Seeds) -> Column:
    """Return the column of an average, labelled as mixed if models are averaged over different data sets."""
    mixed = len({members_of(row) for row in runs.values()}) > 1
    return Column(f"{name}, not the same" if mixed else name, measure, average=True, mixed=mixed)


def _marked(cells: dict[str, Cell], column: Column, shown_best: Mapping[Key, str] | None) -> dict[str, Cell]:
    """Mark the best model of a column with two or more comparable models, or the one that ``shown_best`` names."""
    if shown_best is not None:
        return {model: replace(cell, best=shown_best.get(column.key) == model) for model, cell in cells.items()}
    means = {model: cell.mean for model, cell in cells.items() if cell.values}
    if len(means) < 2 or not column.measure.better or column.mixed:
        return cells
    top = column.measure.best(means.values())
    return {model: replace(cell, best=means.get(model) == top) for model, cell in cells.items()}
