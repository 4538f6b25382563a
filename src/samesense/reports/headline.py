"""Which figures of a suite a report puts first, and how each is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from samesense.evaluation.suites import SUITES
from samesense.results import WHOLE_SUBSETS
from samesense.types import Result


@dataclass(frozen=True)
class Measure:
    """How a metric is shown."""

    label: str  # its name for people
    factor: float = 100.0  # what values are multiplied by
    digits: int = 2  # decimals that are shown
    better: Literal["higher", "lower", ""] = "higher"  # which direction is better; "" where neither is so by itself

    def text(self, value: float) -> str:
        """Return a value in its natural unit as text."""
        return f"{self.factor * value:z.{self.digits}f}"


MEASURES = {
    "spearman": Measure("Spearman"),
    "pearson": Measure("Pearson"),
    "accuracy": Measure("accuracy"),
    "average_precision": Measure("average precision"),
    "f1": Measure("F1"),
    "kcc": Measure("Kendall"),
    "ndcg": Measure("NDCG"),
    "alignment": Measure("alignment", factor=1, digits=3, better=""),
    "uniformity": Measure("uniformity", factor=1, digits=3, better=""),
    "anisotropy": Measure("anisotropy", factor=1, digits=3, better=""),
    "effective_rank": Measure("effective rank", factor=1, digits=1, better=""),
}
"""Every metric by name. Geometry describes a space: a collapsed one has the best alignment, so none is marked best."""

Key = tuple[str, str, str]
"""Suite, data set and metric."""

Seeds = dict[tuple[str, int | None], Result]
"""Results by model and seed."""


def measure_of(metric: str) -> Measure:
    """Return how a metric is shown; one of another name is shown as it is, four decimals, no direction."""
    return MEASURES.get(metric, Measure(metric, factor=1, digits=4, better=""))


def is_headline(suite: str, metric: str) -> bool:
    """Return whether the main table of a suite shows this metric; one of another name is always shown."""
    return metric not in MEASURES or (suite in SUITES and metric in SUITES[suite].metrics)


def headlines(results: Sequence[Result]) -> dict[Key, Seeds]:
    """Pick the one figure of every data set and metric that stands for the whole of it.

    That is subset ``"all"`` where any model has it, else ``"mean"``, else ``"wmean"``; the same for all models.
    Returned are, for each suite, data set and metric, by appearance, the results by model and seed.
    """
    found: dict[Key, dict[str, Seeds]] = {}
    for row in results:
        if row.subset in WHOLE_SUBSETS:
            parts = found.setdefault((row.task, row.dataset, row.metric), {})
            parts.setdefault(row.subset, {})[row.model, row.seed] = row
    return {key: parts[min(parts, key=WHOLE_SUBSETS.index)] for key, parts in found.items()}
