"""Everything that a report shows, gathered before any of it is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from samesense.evaluation.run import EvaluatedModel, Failure
from samesense.reports.figures.plot import Plot
from samesense.reports.grid import Grid, grids
from samesense.reports.significance import LEVEL, Comparison
from samesense.types import Evidence, Result


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a report shows.

    Attributes:
        models: in the order of the tables.
        results: of all models on all data sets.
        averages: over data sets.
        evidence: what lies behind the results.
        comparisons: of models, data set by data set.
        against: name of the reference, or ``None`` for the best of each data set.
        failures: data sets on which a model failed.
        notes: what was left out, and why.
        general: figures about models or runs, not about one data set.
        by_dataset: figures by suite and data set.
        environment: versions and machine.
        title: heading of the page.
    """

    models: Sequence[EvaluatedModel]
    results: Sequence[Result]
    averages: Sequence[Result] = ()
    evidence: Sequence[Evidence] = ()
    comparisons: Sequence[Comparison] = ()
    against: str | None = None
    failures: Sequence[Failure] = ()
    notes: Sequence[str] = ()
    general: Sequence[Plot] = ()
    by_dataset: dict[tuple[str, str], list[Plot]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    title: str = "Model comparison"

    def grids(self) -> list[Grid]:
        """Return the main tables."""
        return grids(self.results, averages=self.averages, comparisons=self.comparisons, failures=self.failures)

    def plots(self) -> list[Plot]:
        """Return all figures."""
        return [*self.general, *(plot for plots in self.by_dataset.values() for plot in plots)]

    def marks(self) -> str:
        """Return in short what the marks of the main tables mean."""
        reference = "the best" if self.against is None else self.against
        return f"Bold: best. ≈: not significantly different from {reference} (paired bootstrap, Holm, {LEVEL})."

    def legend(self) -> str:
        """Return what the marks of the main tables mean."""
        reference = "the best of its column" if self.against is None else self.against
        return (
            "Bold: the best of a column. Correlations, accuracies and gains are multiplied by 100; several seeds are "
            f"shown as mean ± standard deviation. ≈: not significantly different from {reference} (paired bootstrap "
            f"over the same examples, p adjusted by Holm over the table, level {LEVEL}; it says nothing about seeds of "
            "training, of which the median run is compared). Averages, and columns without a ≈ or a p-value, are not "
            "tested."
        )
