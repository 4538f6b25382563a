"""Which differences between models are more than chance: over the same examples, and over seeds of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Fewest training runs with which a comparison says something about the method, not only about these runs."""

SAMPLES = 2000
"""Fewest resamples of a comparison."""


Scope = Literal["methods", "models", "runs"]
"""What a comparison is about: methods, models as they are, or only the training runs at hand."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A model compared with the reference on one data set."""

    task: str  # task, dataset and metric as in the results
    dataset: str
    metric: str
    model: str
    reference: str
    difference: float  # figure of the model less that of the reference, means over their seeds
    low: float  # lower end of the 95 % interval of the difference
    high: float  # upper end of it
    p_value: float  # two-sided, of this comparison alone
    adjusted: float  # by Holm over all comparisons of the suite and metric; means over data sets form a family apart
    n: int  # examples behind it
    seeds: int | None  # fewest training runs behind a side that was trained; None if neither was

    def turned(self) -> Comparison:
        """Return the same comparison with model and reference exchanged."""
        return replace(
            self,
            model=self.reference,
            reference=self.model,
            difference=-self.difference,
            low=-self.high,
            high=-self.low,
        )

    @property
    def significant(self) -> bool:
        """Whether the difference is significant after adjustment, for what ``scope`` names."""
        return self.adjusted < LEVEL

    @property
    def scope(self) -> Scope:
        """What the comparison is about: fewer than ``MIN_SEEDS`` runs say nothing about the methods behind them."""
        if self.seeds is None:
            return "models"
        if self.seeds >= MIN_SEEDS:
            return "methods"
        return "runs"

    @property
    def finding(self) -> str:
        """Whether the difference is significant: ``yes``, ``no``, or ``of these runs``."""
        if not self.significant:
            return "no"
        if self.scope == "runs":
            return "of these runs"
        return "yes"


def p_text(p: float) -> str:
    """Return a p-value as in ``p < 0.001``."""
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.2g}"


def paired_comparisons(
    evidence: Sequence[Evidence], results: Sequence[Result], *, against: str | None = None
) -> tuple[list[Comparison], list[str]]:
    """Compare every model with the reference on every data set.

    A model with several seeds enters with the mean of all its runs, and the test is over seeds and examples together
    (:func:`~samesense.metrics.paired_seeds`); single runs are compared by paired bootstrap. The p-values of one suite
    and metric, over its data sets and models, are adjusted together, because a table is read as a whole. The number of
    resamples of a bootstrap grows with the number of comparisons, so that significance stays within reach.

    The reference is chosen before the figures are seen: ``against``, else the first model. The best model on the test
    data would be the luckiest of several equal ones, and the others would seem to differ from it. A data set on which
    the reference has no figure is not compared. Returns the comparisons, and a line about each one that could not be
    made.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure", for the adjustment.
    """
    figures = headlines(results)
    models = list(dict.fromkeys(model for runs in figures.values() for model, _ in runs))
    reference = against or (models[0] if models else "")
    evidence_behind = {
        key: runs_behind(key, runs, evidence) for key, runs in figures.items() if is_headline(key[0], key[2])
    }
    comparisons: list[Comparison] = []
    problems: list[str] = []
    for suite, metric in dict.fromkeys((suite, metric) for suite, _, metric in evidence_behind):
        family = {
            key: runs_of_models
            for key, runs_of_models in evidence_behind.items()
            if (key[0], key[2]) == (suite, metric) and len(runs_of_models) > 1
        }
        family_comparisons, family_problems = _compare_family(family, reference)
        comparisons += family_comparisons
        problems += family_problems
    return comparisons, problems


def _compare_family(
    family: Mapping[Key, Mapping[str, Sequence[Evidence]]], reference: str
) -> tuple[list[Comparison], list[str]]:
    """Compare every model with the reference on the data sets of one suite and metric, adjusted over all of these."""
    compared = [key for key, runs_of_models in family.items() if reference in runs_of_models]
    problems = [
        f"{key[1]}, {key[2]}: nothing is compared, since {reference} has no figure."
        for key in family
        if key not in compared
    ]
    # The smallest p-value of a bootstrap is about 1 / samples, and Holm multiplies it by the number of comparisons.
    samples = max(SAMPLES, 50 * sum(len(family[key]) - 1 for key in compared))
    tested: list[Comparison] = []
    for key in compared:
        for model, model_runs in family[key].items():
            if model == reference:
                continue
            try:
                tested.append(compare_runs(model_runs, family[key][reference], samples))
            except DataError as error:
                problems.append(f"{key[1]}, {key[2]}: {model} against {reference} is undefined: {error}")
    return adjusted_together(tested), problems


def adjusted_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return comparisons with their p-values adjusted by Holm over all of them."""
    adjusted = holm([comparison.p_value for comparison in comparisons])
    return [replace(comparison, adjusted=p) for comparison, p in zip(comparisons, adjusted, strict=True)]


def runs_behind(key: Key, runs: Seeds, evidence: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    """Return by model the evidence of each of its runs that has a figure."""
    by_model: dict[str, dict[int | None, Evidence]] = {}
    for run in evidence:
        if (run.task, run.dataset, run.metric) == key and (run.model, run.seed) in runs:
            by_model.setdefault(run.model, {})[run.seed] = run
    return {model: list(by_seed.values()) for model, by_seed in by_model.items()}


def compare_runs(model_runs: Sequence[Evidence], reference_runs: Sequence[Evidence], samples: int) -> Comparison:
    """Return the comparison of two models by all their runs, with the p-value not yet adjusted.

    DataError if they were evaluated on different examples, or against different labels.
    """
    model_runs = in_seed_order(model_runs)
    reference_runs = in_seed_order(reference_runs)
    values, labels = aligned([*model_runs, *reference_runs])
    model_values = values[: len(model_runs)]
    reference_values = values[len(model_runs) :]
    statistic = model_runs[0].statistic
    difference: PairedDifference
    if len(values) > 2:
        same = len(model_runs) > 1 and [run.seed for run in model_runs] == [run.seed for run in reference_runs]
        difference = paired_seeds(model_values, reference_values, labels, statistic, same_seeds=same)
    elif statistic == "mean":
        difference = paired_mean(model_values[0], reference_values[0], samples=samples)
    else:
        difference = paired_bootstrap(model_values[0], reference_values[0], labels, statistic, samples=samples)
    trained = [len(runs) for runs in (model_runs, reference_runs) if runs[0].seed is not None]
    return Comparison(
        task=model_runs[0].task,
        dataset=model_runs[0].dataset,
        metric=model_runs[0].metric,
        model=model_runs[0].model,
        reference=reference_runs[0].model,
        adjusted=difference.p_value,
        **vars(difference),
        n=len(labels),
        seeds=min(trained, default=None),
    )


def in_seed_order(runs: Sequence[Evidence]) -> list[Evidence]:
    """Return the runs of one model ordered by seed, so that runs of equal seeds can be paired."""
    return sorted(runs, key=lambda run: seed_order(run.seed))


def seed_order(seed: int | None) -> int:
    """Return the sort key of a seed: a run without one comes first."""
    if seed is None:
        return -1
    return seed


def _common_rows(runs: Sequence[Evidence]) -> list[list[int]]:
    """Return for each run the rows of the examples that all runs have, in the order of the first run."""
    first = runs[0]
    if all(list(run.examples) == list(first.examples) for run in runs):
        return [list(range(len(first.examples)))] * len(runs)
    row_of_example = [{example: row for row, example in enumerate(run.examples)} for run in runs]
    if any(len(row_of) < len(run.examples) for row_of, run in zip(row_of_example, runs, strict=True)):
        raise DataError("the models were evaluated on different examples, and some of them occur twice.")
    common = [example for example in first.examples if all(example in row_of for row_of in row_of_example)]
    return [[row_of[example] for example in common] for row_of in row_of_example]


def aligned(runs: Sequence[Evidence]) -> tuple[list[Scores], Scores]:
    """Return the values of all runs and the labels on their common examples, in the order of the first run."""
    first = runs[0]
    rows = _common_rows(runs)
    if not rows[0]:
        raise DataError("the models have no example in common.")
    labels = np.zeros(len(rows[0])) if first.labels is None else first.labels[rows[0]]
    for run, run_rows in zip(runs, rows, strict=True):
        if run.labels is not None and not np.array_equal(labels, run.labels[run_rows]):
            raise DataError("the models were evaluated against different labels.")
    return [run.values[run_rows] for run, run_rows in zip(runs, rows, strict=True)], labels
