"""Which figures of a suite a report puts first."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.evaluation.suites import SUITES
from samesense.results import MEASURES, WHOLE_SUBSETS
from samesense.types import Result

Key = tuple[str, str, str]
"""Suite, data set and metric."""

Seeds = dict[tuple[str, int | None], Result]
"""Results by model and seed."""


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
