"""Which differences between models are more than chance: over the same examples, and over seeds of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from samesense.errors import DataError
from samesense.metrics import PairedDifference, holm, paired_bootstrap, paired_mean, paired_seeds
from samesense.reports.headline import Key, Seeds, headlines, is_headline
from samesense.types import Evidence, Result, Scores

LEVEL = 0.05
"""A difference is called significant if its adjusted p-value is smaller."""

MIN_SEEDS = 5
"""Fewest training runs of a method from which a comparison speaks of the method, not only of these runs."""

SAMPLES = 2000
"""Fewest resamples of a comparison."""


Scope = Literal["methods", "models", "runs"]
"""What a comparison speaks of: methods, models as they are, or only the training runs at hand."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A model against the reference on one data set."""

    task: str  # as in the results, as are dataset and metric
    dataset: str
    metric: str
    model: str  # what is compared
    reference: str  # what it is compared with
    difference: float  # figure of the model less that of the reference, means over their seeds
    low: float  # lower end of the 95 % interval of the difference
    high: float  # upper end of it
    p_value: float  # two-sided, of this comparison alone
    adjusted: float  # by Holm, over all comparisons of the suite and metric; of means over data sets, over these
    n: int  # examples behind it
    seeds: int | None  # fewest training runs behind a side that was trained; None if neither was

    def turned(self) -> Comparison:
        """Return the same comparison seen from the other side."""
        return replace(
            self, model=self.reference, reference=self.model, difference=-self.difference, low=-self.high,
            high=-self.low,
        )  # fmt: skip

    @property
    def significant(self) -> bool:
        """Whether the difference is significant after adjustment, of what ``scope`` says."""
        return self.adjusted < LEVEL

    @property
    def scope(self) -> Scope:
        """Of what the comparison speaks: fewer than ``MIN_SEEDS`` runs say nothing of the methods that made them."""
        return "models" if self.seeds is None else "methods" if self.seeds >= MIN_SEEDS else "runs"

    @property
    def finding(self) -> str:
        """``yes``, ``no``, or ``of these runs``, whether the difference is significant."""
        return "no" if not self.significant else "of these runs" if self.scope == "runs" else "yes"


def p_text(p: float) -> str:
    """Return a p-value as in ``p < 0.001``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def paired_comparisons(
    evidence: Sequence[Evidence], results: Sequence[Result], *, against: str | None = None
) -> tuple[list[Comparison], list[str]]:
    """Compare every model with the reference on every data set.

    A model with several seeds enters with the mean of all its runs, and the test is over seeds and examples together
    (:func:`~samesense.metrics.paired_seeds`); single runs are compared by paired bootstrap. The p-values of one suite
    and metric, over its data sets and models, are adjusted together, since a table is read as a whole; the number of
    resamples of a bootstrap grows with them so that significance stays within reach.

    The reference is chosen before the figures are seen: ``against``, else the first model. The best on the test data
    would be the luckiest of several equal models, from which the others seem to differ. A data set on which the
    reference has no figure is not compared. Returned are the comparisons, and a line about each one that could not be
    made.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure", for the adjustment.
    """
    figures = headlines(results)
    models = list(dict.fromkeys(model for runs in figures.values() for model, _ in runs))
    reference = against or (models[0] if models else "")
    behind = {key: runs_behind(key, runs, evidence) for key, runs in figures.items() if is_headline(key[0], key[2])}
    comparisons: list[Comparison] = []
    problems: list[str] = []
    for family in dict.fromkeys((suite, metric) for suite, _, metric in behind):
        compared: list[Key] = []
        for key, found in behind.items():
            if (key[0], key[2]) != family or len(found) < 2:
                continue
            if reference in found:
                compared.append(key)
            else:
                problems.append(f"{key[1]}, {key[2]}: nothing is compared, since {reference} has no figure.")
        samples = max(SAMPLES, 50 * sum(len(behind[key]) - 1 for key in compared))
        made: list[Comparison] = []
        for key in compared:
            for model, own in behind[key].items():
                if model == reference:
                    continue
                try:
                    made.append(compare_runs(own, behind[key][reference], samples))
                except DataError as error:
                    problems.append(f"{key[1]}, {key[2]}: {model} against {reference} is undefined: {error}")
        adjusted = holm([one.p_value for one in made]) if made else []
        comparisons += [replace(one, adjusted=p) for one, p in zip(made, adjusted, strict=True)]
    return comparisons, problems


def runs_behind(key: Key, runs: Seeds, evidence: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Return the evidence of every run of each model."""
    found: dict[str, dict[int | None, Evidence]] = {}
    for one in evidence:
        if (one.task, one.dataset, one.metric) == key and (one.model, one.seed) in runs:
            found.setdefault(one.model, {})[one.seed] = one
    return {model: list(own.values()) for model, own in found.items()}


def compare_runs(own: Sequence[Evidence], other: Sequence[Evidence], samples: int) -> Comparison:
    """Return the comparison of two models by all their runs, with the p-value not yet adjusted.

    DataError if they were evaluated on different examples, or against different labels.
    """
    own, other = in_seed_order(own), in_seed_order(other)
    values, labels = aligned([*own, *other])
    first, second = values[: len(own)], values[len(own) :]
    statistic = own[0].statistic
    found: PairedDifference
    if len(values) > 2:
        same = len(own) > 1 and [run.seed for run in own] == [run.seed for run in other]
        found = paired_seeds(first, second, labels, statistic, same_seeds=same)
    elif statistic == "mean":
        found = paired_mean(first[0], second[0], samples=samples)
    else:
        found = paired_bootstrap(first[0], second[0], labels, statistic, samples=samples)
    trained = [len(runs) for runs in (own, other) if runs[0].seed is not None]
    return Comparison(
        task=own[0].task,
        dataset=own[0].dataset,
        metric=own[0].metric,
        model=own[0].model,
        reference=other[0].model,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        adjusted=found.p_value,
        n=len(labels),
        seeds=min(trained, default=None),
    )


def in_seed_order(runs: Sequence[Evidence]) -> list[Evidence]:
    """Return the runs of one model in the order of their seeds, so that equal ones can be compared."""
    return sorted(runs, key=lambda run: seed_order(run.seed))


def seed_order(seed: int | None) -> int:
    """Return the place of a run among those of its model: one without a seed comes first."""
    return -1 if seed is None else seed


def aligned(runs: Sequence[Evidence]) -> tuple[list[Scores], Scores]:
    """Return values of all runs and the labels on the examples that all have, in the order of the first run's."""
    first = runs[0]
    if all(list(run.examples) == list(first.examples) for run in runs):
        rows = [list(range(len(first.examples)))] * len(runs)
    else:
        places = [{example: at for at, example in enumerate(run.examples)} for run in runs]
        if any(len(place) < len(run.examples) for place, run in zip(places, runs, strict=True)):
            raise DataError("the models were evaluated on different examples, and some of them occur twice.")
        common = [example for example in first.examples if all(example in place for place in places)]
        rows = [[place[example] for example in common] for place in places]
    if not rows[0]:
        raise DataError("the models have no example in common.")
    labels = np.zeros(len(rows[0])) if first.labels is None else first.labels[rows[0]]
    for run, own in zip(runs, rows, strict=True):
        if run.labels is not None and not np.array_equal(labels, run.labels[own]):
            raise DataError("the models were evaluated against different labels.")
    return [run.values[own] for run, own in zip(runs, rows, strict=True)], labels
