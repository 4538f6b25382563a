"""Which differences between models are more than chance: paired comparisons on the same examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from samesense.errors import DataError
from samesense.metrics import PairedDifference, holm, paired_bootstrap, paired_mean
from samesense.reports.headline import Key, Seeds, headlines, is_headline, measure_of
from samesense.types import Evidence, Result, Scores

LEVEL = 0.05
"""A difference is called significant if its adjusted p-value is smaller."""

SAMPLES = 2000
"""Fewest resamples of a comparison."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A model against the reference on one data set."""

    task: str  # as in the results, as are dataset and metric
    dataset: str
    metric: str
    model: str  # what is compared
    reference: str  # what it is compared with
    difference: float  # figure of the model less that of the reference
    low: float  # lower end of the 95 % interval of the difference
    high: float  # upper end of it
    p_value: float  # two-sided, of this comparison alone
    adjusted: float  # by Holm, over all comparisons of the suite and metric
    n: int  # examples behind it

    @property
    def significant(self) -> bool:
        """Whether the difference is significant after adjustment."""
        return self.adjusted < LEVEL


def paired_comparisons(
    evidence: Sequence[Evidence], results: Sequence[Result], *, against: str | None = None
) -> tuple[list[Comparison], list[str]]:
    """Compare every model with the reference on every data set, by paired bootstrap.

    The p-values of one suite and metric, over its data sets and models, are adjusted together, since a table is read as
    a whole; the number of resamples grows with them so that significance stays within reach. A model with several seeds
    is represented by the run with the median figure (the lower one of two). Without ``against``, and where that has no
    figure, the best model of a data set is the reference. Returned are the comparisons, and a line about each one that
    could not be made and each data set without the reference.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure", for the adjustment.
    """
    behind: dict[Key, dict[str, Evidence]] = {}
    figures = headlines(results)
    for key, runs in figures.items():
        if is_headline(key[0], key[2]):
            found = _representatives(key, runs, evidence)
            if len(found) > 1:
                behind[key] = found
    comparisons: list[Comparison] = []
    problems: list[str] = []
    for family in dict.fromkeys((suite, metric) for suite, _, metric in behind):
        keys = [key for key in behind if (key[0], key[2]) == family]
        made: list[Comparison] = []
        samples = max(SAMPLES, 50 * sum(len(behind[key]) - 1 for key in keys))
        for key in keys:
            reference = against if against in behind[key] else _best(key, figures[key], behind[key])
            if against not in (None, reference):
                problems.append(f"{key[1]}, {key[2]}: {against} has no figure; the reference is the best, {reference}.")
            for model, own in behind[key].items():
                if model == reference:
                    continue
                try:
                    made.append(_compared(own, behind[key][reference], samples))
                except DataError as error:
                    problems.append(f"{key[1]}, {key[2]}: {model} against {reference} is undefined: {error}")
        adjusted = holm([one.p_value for one in made]) if made else []
        comparisons += [replace(one, adjusted=p) for one, p in zip(made, adjusted, strict=True)]
    return comparisons, problems


def _representatives(key: Key, runs: Seeds, evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """Return the evidence of each model's run with the median figure."""
    suite, dataset, metric = key
    known = {
        (one.model, one.seed): one
        for one in evidence
        if (one.task, one.dataset, one.metric) == (suite, dataset, metric) and (one.model, one.seed) in runs
    }
    chosen = {}
    for model in dict.fromkeys(model for model, _ in known):
        seeds = sorted((run for run in known if run[0] == model), key=lambda run: runs[run].value)
        chosen[model] = known[seeds[(len(seeds) - 1) // 2]]
    return chosen


def _best(key: Key, runs: Seeds, among: Mapping[str, Evidence]) -> str:
    """Return the model with the best mean over its seeds."""
    sign = -1.0 if measure_of(key[2]).better == "lower" else 1.0
    means = {model: np.mean([row.value for (name, _), row in runs.items() if name == model]) for model in among}
    return max(means, key=lambda model: sign * means[model])


def _compared(own: Evidence, other: Evidence, samples: int) -> Comparison:
    """Return the comparison of two models, with the p-value not yet adjusted."""
    first, second, labels = _aligned(own, other)
    found: PairedDifference
    if own.statistic == "mean":
        found = paired_mean(first, second, samples=samples)
    else:
        found = paired_bootstrap(first, second, labels, "spearman", samples=samples)
    return Comparison(
        task=own.task,
        dataset=own.dataset,
        metric=own.metric,
        model=own.model,
        reference=other.model,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        adjusted=found.p_value,
        n=len(first),
    )


def _aligned(own: Evidence, other: Evidence) -> tuple[Scores, Scores, Scores]:
    """Return values of both models and labels on the examples that both have, in the order of the first."""
    rows, columns = list(range(len(own.examples))), list(range(len(other.examples)))
    if list(own.examples) != list(other.examples):
        place = {example: at for at, example in enumerate(other.examples)}
        if len(place) < len(columns) or len(set(own.examples)) < len(rows):
            raise DataError("the models were evaluated on different examples, and some of them occur twice.")
        rows = [at for at in rows if own.examples[at] in place]
        columns = [place[own.examples[at]] for at in rows]
    if not rows:
        raise DataError("the models have no example in common.")
    labels = np.zeros(len(rows)) if own.labels is None else own.labels[rows]
    if other.labels is not None and not np.array_equal(labels, other.labels[columns]):
        raise DataError("the models were evaluated against different labels.")
    return own.values[rows], other.values[columns], labels
