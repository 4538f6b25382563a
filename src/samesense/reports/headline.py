"""Which figures of a suite a report puts first, and how each is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from samesense.types import Result

WHOLE = ("all", "mean", "wmean")
"""Subsets that stand for a whole data set, the one that is shown first."""


@dataclass(frozen=True)
class Measure:
    """How a metric is shown.

    Attributes:
        label: its name for people.
        factor: what values are multiplied by.
        digits: decimals that are shown.
        better: which direction is better; ``""`` where neither is so by itself.
        suites: suites whose main tables show it.
    """

    label: str
    factor: float = 100.0
    digits: int = 2
    better: Literal["higher", "lower", ""] = "higher"
    suites: tuple[str, ...] = ()

    def text(self, value: float) -> str:
        """Return a value in its natural unit as text."""
        return f"{self.factor * value:z.{self.digits}f}"


MEASURES = {
    "spearman": Measure("Spearman", suites=("sts", "argument")),
    "pearson": Measure("Pearson", suites=("argument",)),
    "accuracy": Measure("accuracy", suites=("transfer", "binary", "sections")),
    "average_precision": Measure("average precision", suites=("binary",)),
    "f1": Measure("F1", suites=("binary",)),
    "kcc": Measure("Kendall", suites=("ranking",)),
    "ndcg": Measure("NDCG", suites=("ranking",)),
    "alignment": Measure("alignment", factor=1, digits=3, better="", suites=("geometry",)),
    "uniformity": Measure("uniformity", factor=1, digits=3, better="", suites=("geometry",)),
    "anisotropy": Measure("anisotropy", factor=1, digits=3, better="", suites=("geometry",)),
    "effective_rank": Measure("effective rank", factor=1, digits=1, better="", suites=("geometry",)),
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
    """Return whether the main table of a suite shows this metric."""
    known = MEASURES.get(metric)
    return known is None or suite in known.suites


def headlines(results: Sequence[Result]) -> dict[Key, Seeds]:
    """Pick the one figure of every data set and metric that stands for the whole of it.

    That is subset ``"all"`` where any model has it, else ``"mean"``, else ``"wmean"``; the same for all models.

    Args:
        results: of all models.

    Returns:
        For each suite, data set and metric, in order of appearance, the results by model and seed.
    """
    found: dict[Key, dict[str, Seeds]] = {}
    for row in results:
        if row.subset in WHOLE:
            parts = found.setdefault((row.task, row.dataset, row.metric), {})
            parts.setdefault(row.subset, {})[row.model, row.seed] = row
    return {key: parts[min(parts, key=WHOLE.index)] for key, parts in found.items()}
