"""How each metric is shown: its name, factor, decimals and direction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


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

    def best(self, values: Collection[float]) -> float:
        """Return the best of values of a metric that has a better direction."""
        return max(values) if self.better == "higher" else min(values)

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
