"""Choose the figures of a suite that a report shows first."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.evaluation.suites import SUITES
from samesense.results.measures import MEASURES
from samesense.results.results import WHOLE_SUBSETS
from samesense.types import Result

Key = tuple[str, str, str]
"""Suite, data set and metric."""

Seeds = dict[tuple[str, int | None], Result]
"""Results by model and seed."""


def is_headline(suite: str, metric: str) -> bool:
    """Return whether the main table of a suite shows this metric; metrics that are not ours are always shown."""
    return metric not in MEASURES or (suite in SUITES and metric in SUITES[suite].metrics)


def headlines(results: Sequence[Result]) -> dict[Key, Seeds]:
    """Pick for each data set and metric the figure of the whole set.

    That is subset ``"all"`` if any model has it, else ``"mean"``, else ``"wmean"``; the same for all models. Returns
    the results by model and seed, for each suite, data set and metric in order of appearance.
    """
    by_subset: dict[Key, dict[str, Seeds]] = {}
    for row in results:
        if row.subset in WHOLE_SUBSETS:
            subsets = by_subset.setdefault((row.task, row.dataset, row.metric), {})
            subsets.setdefault(row.subset, {})[row.model, row.seed] = row
    return {key: subsets[min(subsets, key=WHOLE_SUBSETS.index)] for key, subsets in by_subset.items()}
