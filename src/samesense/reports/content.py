"""The content of a report, gathered before it is laid out as HTML, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from samesense.evaluation.run import EvaluatedModel, Failure
from samesense.execution.speed import ROUNDS
from samesense.reports.figures.plot import Plot
from samesense.reports.grid import Grid, grids
from samesense.reports.headline import Key
from samesense.reports.recommendation import Recommendation
from samesense.reports.significance import LEVEL, MIN_SEEDS, Comparison
from samesense.reports.standing import Ranking
from samesense.reports.tables import TitledTable
from samesense.reports.verdict import verdict
from samesense.types import Evidence, Marked, Pair, Result

TIMES = (
    "Wall time in seconds. Encoding: each distinct text once for all suites; what was read from the cache is not "
    "measured. A suite: from vectors to figures with their intervals; for a model that only scores pairs, the scoring "
    "too. The speed above is measured apart from these, before them and with nothing remembered: on up to 256 of the "
    f"evaluated sentences, after a warm-up, models in turns, {ROUNDS} rounds, with median and range."
)
"""Explains the seconds of compared models."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a report."""

    models: Sequence[EvaluatedModel]  # in the order of the tables
    results: Sequence[Result]  # of all models on all data sets
    averages: Sequence[Result] = ()  # over data sets
    evidence: Sequence[Evidence] = ()  # scores behind the results
    comparisons: Sequence[Comparison] = ()  # of models, data set by data set
    against: str | None = None  # name of the reference, or None for the first model
    ranking: Ranking | None = None  # None if no figure says which model is better
    recommendation: Recommendation | None = None  # None if the models are not compared to choose one
    opening: Sequence[Plot] = ()  # the opening figure, for wide and for narrow screens
    failures: Sequence[Failure] = ()  # data sets on which a model failed
    waiting: Mapping[tuple[str, str], int] = field(default_factory=dict)  # planned runs, by model and data set
    shown_best: Mapping[Key, str] | None = None  # the bold model of each column; None: the one with the best figure
    protocol: Sequence[str] = ()  # of the training runs, in sentences for a caption
    incomplete: str = ""  # which runs are missing, in a sentence
    notes: Sequence[str] = ()  # on what was left out
    warnings: Sequence[str] = ()  # about the data
    data: Sequence[TitledTable] = ()  # describe the evaluated data, and what models truncate
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # first digits of the hash of a model, by its spec
    tables: Sequence[TitledTable] = ()  # beside the main ones
    general: Sequence[Plot] = ()  # figures about models or runs, not about one data set
    by_dataset: dict[tuple[str, str], list[Plot]] = field(default_factory=dict)  # figures by suite and data set
    marked: Mapping[str, Mapping[Pair, tuple[Marked, Marked]]] = field(default_factory=dict)  # of words, by model
    environment: dict[str, str] = field(default_factory=dict)  # versions and machine
    title: str = "Model comparison"
    times: str = TIMES  # explains the seconds of the models

    def grids(self) -> list[Grid]:
        """Return the main tables."""
        return grids(
            self.results,
            averages=self.averages,
            comparisons=self.comparisons,
            failures=self.failures,
            waiting=self.waiting,
            shown_best=self.shown_best,
        )

    def verdict(self) -> list[str]:
        """Return the answer sentence by sentence; empty if no figure says which model is better."""
        if self.recommendation is not None:
            return self.recommendation.lines()
        if self.ranking is None:
            return []
        return verdict(self.ranking)

    def plots(self) -> list[Plot]:
        """Return all figures."""
        return [*self.opening[:1], *self.general, *(plot for plots in self.by_dataset.values() for plot in plots)]

    def caption(self, grid: Grid) -> str:
        """Return the caption of a table for a paper: what it shows, the protocol, and the meaning of its marks."""
        if not self.protocol:
            return f"{grid.title}. {self.marks()}"
        title = ", ".join(dict.fromkeys(column.measure.heading for column in grid.columns))
        opening = "Partial table; what is missing stands below it. " if self.incomplete else ""
        opening += f"{title}, mean ± standard deviation over seeds."
        return " ".join([opening, *self.protocol, self._tested(grid)])

    def _tested(self, grid: Grid) -> str:
        """Return the meaning of bold and ≈ in a table, and the comparisons over which its p-values are adjusted."""
        cells = [
            (column, cell)
            for by_column in grid.rows.values()
            for column, cell in zip(grid.columns, by_column, strict=True)
        ]
        singles = sum(cell.comparison is not None and not column.average for column, cell in cells)
        means = sum(cell.comparison is not None and column.average for column, cell in cells)
        if not singles:
            return "No difference was tested."
        comparisons = f"{singles} comparisons" if singles != 1 else "one comparison"
        adjustment = f"Holm over the {comparisons} with {self.reference} in this table"
        if means:
            adjustment += f", and over the {means} of means"
        bold = {model for model, by_column in grid.rows.items() if any(cell.best for cell in by_column)}
        if bold - {self.reference}:  # a bold row was also compared with rows other than the reference
            adjustment += "; between two other rows times the number of pairs of rows"
        return (
            f"≈: not significantly different from {self.reference}. Bold: significantly different from every other row "
            f"of the column. Tests over seeds and pairs together, level {LEVEL}, p-values adjusted by {adjustment}."
            f"{self._few_seeds()}"
        )

    def marks(self) -> str:
        """Return a short explanation of the marks in the main tables."""
        if self.shown_best is not None:
            return (
                f"Bold: significantly different from every other row. ≈: not significantly different from "
                f"{self.reference} (Holm over the comparisons of a table, {LEVEL}).{self._few_seeds()}"
            )
        return f"Bold: best. ≈: not significantly different from {self.reference} (Holm, {LEVEL}).{self._few_seeds()}"

    def legend(self) -> str:
        """Return the full explanation of the marks in the main tables."""
        bold = "the best of a column"
        if self.shown_best is not None:
            bold = "the best of a column, where its difference from every other row is significant"
        return (
            f"Bold: {bold}. Correlations, accuracies and gains are multiplied by 100; several seeds are "
            f"shown as mean ± standard deviation. ≈: not significantly different from {self.reference}, by a test over "
            f"the same examples, and over seeds where there are several; p adjusted by Holm over the table, level "
            f"{LEVEL}; a mean over data sets apart.{self._few_seeds()} Only what the report compares is tested."
        )

    @property
    def reference(self) -> str:
        """Name of the model that the others are compared with."""
        return self.against or next((comparison.reference for comparison in self.comparisons), "the first model")

    def _few_seeds(self) -> str:
        """Return the caveat for methods that were trained a few times only; empty if there are none."""
        if all(comparison.scope != "runs" for comparison in self.comparisons):
            return ""
        note = f" With fewer than {MIN_SEEDS} seeds a difference is one of these runs, not of their methods"
        if self.shown_best == {}:
            return f"{note}, and nothing is bold."
        return f"{note}."
