"""Everything that a report shows, gathered before any of it is laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from samesense.evaluation.run import EvaluatedModel, Failure
from samesense.execution.speed import ROUNDS
from samesense.reports.figures.plot import Plot
from samesense.reports.grid import Grid, grids
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
"""What the seconds of compared models are."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a report shows."""

    models: Sequence[EvaluatedModel]  # in the order of the tables
    results: Sequence[Result]  # of all models on all data sets
    averages: Sequence[Result] = ()  # over data sets
    evidence: Sequence[Evidence] = ()  # what lies behind the results
    comparisons: Sequence[Comparison] = ()  # of models, data set by data set
    against: str | None = None  # name of the reference, or None for the first model
    ranking: Ranking | None = None  # which model is best, where something says so
    recommendation: Recommendation | None = None  # which of them to take, where models are compared for that
    opening: Sequence[Plot] = ()  # the figure that the report opens with: for a desk, and for a phone
    failures: Sequence[Failure] = ()  # data sets on which a model failed
    notes: Sequence[str] = ()  # what was left out, and why
    warnings: Sequence[str] = ()  # what is to be known of the data
    data: Sequence[TitledTable] = ()  # what the evaluated data are, and what models do not read of them
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # first digits of the hash of a model, by its spec
    tables: Sequence[TitledTable] = ()  # beside those of figures
    general: Sequence[Plot] = ()  # figures about models or runs, not about one data set
    by_dataset: dict[tuple[str, str], list[Plot]] = field(default_factory=dict)  # figures by suite and data set
    marked: Mapping[str, Mapping[Pair, tuple[Marked, Marked]]] = field(default_factory=dict)  # of words, by model
    environment: dict[str, str] = field(default_factory=dict)  # versions and machine
    title: str = "Model comparison"
    times: str = TIMES  # what the seconds of the models are

    def grids(self) -> list[Grid]:
        """Return the main tables."""
        return grids(self.results, averages=self.averages, comparisons=self.comparisons, failures=self.failures)

    def verdict(self) -> list[str]:
        """Return the answer sentence by sentence; nothing where nothing says which model is better."""
        if self.recommendation is not None:
            return self.recommendation.lines()
        return [] if self.ranking is None else verdict(self.ranking)

    def plots(self) -> list[Plot]:
        """Return all figures."""
        return [*self.opening[:1], *self.general, *(plot for plots in self.by_dataset.values() for plot in plots)]

    def marks(self) -> str:
        """Return in short what the marks of the main tables mean."""
        return f"Bold: best. ≈: not significantly different from {self.reference} (Holm, {LEVEL}).{self._few_seeds()}"

    def legend(self) -> str:
        """Return what the marks of the main tables mean."""
        return (
            "Bold: the best of a column. Correlations, accuracies and gains are multiplied by 100; several seeds are "
            f"shown as mean ± standard deviation. ≈: not significantly different from {self.reference}, by a test over "
            f"the same examples, and over seeds where there are several; p adjusted by Holm over the table, level "
            f"{LEVEL}; a mean over data sets apart.{self._few_seeds()} Only what the report compares is tested."
        )

    @property
    def reference(self) -> str:
        """Name of the model that the others are compared with."""
        return self.against or next((one.reference for one in self.comparisons), "the first model")

    def _few_seeds(self) -> str:
        """Return what a difference does not say where a method was trained a few times only."""
        few = any(one.scope == "runs" for one in self.comparisons)
        said = f" With fewer than {MIN_SEEDS} seeds a difference is one of these runs, not of their methods."
        return said if few else ""
