"""Test whether one method is better than another, over training seeds and test examples together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Numbers, finite_vector
from samesense.metrics.significance import (
    PairedDifference,
    check_sampling,
    check_statistic,
    defined_resamples,
    floor_p_value,
    least_p_of_means,
    paired_difference,
    percentile_interval,
    resampled_means,
    resampled_statistics,
)
from samesense.metrics.statistics import STATISTICS, PairStatistic
from samesense.types import Floats

ROUNDING = 1e-12
"""Figures closer than this count as equal: the means of equal numbers may differ in the last digits."""

TINY = float(np.finfo(np.float64).tiny)


def paired_seeds(
    runs_a: Sequence[Numbers],
    runs_b: Sequence[Numbers],
    labels: Numbers | None = None,
    statistic: PairStatistic | Literal["mean"] = "spearman",
    *,
    same_seeds: bool = False,
    samples: int = 1000,
    seed: int = 0,
) -> PairedDifference:
    """Compare the mean figures of two methods, each trained several times and evaluated on the same examples.

    The difference of the means varies with the examples and with the seeds. A paired bootstrap over all runs at once
    measures the first part. The sample variance over seeds is the second; the share of it that is due to the examples
    would be counted twice and is subtracted. The sum is tested by Student's t with Satterthwaite's degrees of freedom.
    Seeds are not resampled, because a bootstrap of three to five values is much too narrow.

    Source: Satterthwaite (1946), "An approximate distribution of estimates of variance components".

    Args:
        runs_a: for each run of the first method its scores, or its outcomes for a mean ``(n,)``.
        runs_b: those of the second method. A side with one run adds no variance over seeds, like an untrained model.
        labels: reference labels ``(n,)``; without them mean outcomes are compared, such as accuracies.
        statistic: as in :func:`~samesense.metrics.bootstrap_interval`, or ``"mean"``, which needs no labels.
        same_seeds: the runs of both sides are in the order of the same seeds, and are compared seed by seed.
        samples: number of resamples of the examples.
        seed: of the resampling.

    Returns:
        The difference of the means over the runs, its 95 % interval and its p-value.

    Raises:
        DataError: if neither side has two runs, or a figure is undefined on a run or on a resample.
        ConfigError: if a setting is out of range, or ``same_seeds`` with different numbers of runs.
    """
    check_sampling(samples, 0.95, seed)
    check_statistic(statistic, (*STATISTICS, "mean"))
    sizes = (len(runs_a), len(runs_b))
    if min(sizes) < 1 or max(sizes) < 2:
        raise DataError(f"Seeds are compared with two runs or more on a side, got {sizes[0]} and {sizes[1]}.")
    if same_seeds and sizes[0] != sizes[1]:
        raise ConfigError(f"Equal seeds need as many runs on both sides, got {sizes[0]} and {sizes[1]}.")
    both = resampled_figures([*runs_a, *runs_b], labels, statistic, samples=samples, seed=seed)
    return compare_resampled(both.part(0, sizes[0]), both.part(sizes[0], sum(sizes)), same_seeds=same_seeds)


@dataclass(frozen=True)
class Resampled:
    """Figures of the runs of one method, as they are and on resamples of the examples."""

    figures: Floats  # one per run (runs,)
    resamples: Floats  # on each resample (runs, samples), NaN where undefined
    least_p: float  # p-value that a comparison of so few examples can reach
    examples: int  # in the data set, or in the smallest of several

    def part(self, start: int, end: int) -> Resampled:
        """Return the runs from ``start`` up to ``end``."""
        return replace(self, figures=self.figures[start:end], resamples=self.resamples[start:end])


def resampled_figures(
    runs: Sequence[Numbers],
    labels: Numbers | None,
    statistic: PairStatistic | Literal["mean"] = "spearman",
    *,
    samples: int,
    seed: int,
) -> Resampled:
    """Return the figure of each run, as it is and on resamples that are the same for all runs.

    Arguments and errors are those of :func:`paired_seeds`.
    """
    if labels is None or statistic == "mean":
        outcomes = [finite_vector(run, "runs") for run in runs]
        _check_sizes(outcomes)
        stacked = np.stack(outcomes)
        n = stacked.shape[1]
        return Resampled(stacked.mean(axis=1), resampled_means(stacked, samples, seed), least_p_of_means(n), n)
    figure = STATISTICS[statistic]
    checked = [figure.check(run, labels) for run in runs]
    sides = [left for left, _ in checked]
    right = checked[0][1]
    figures = np.array([figure.value(left, right) for left in sides])
    resamples = resampled_statistics(sides, right, statistic, samples, seed)
    return Resampled(figures, resamples, figure.least_p(right), len(right))


def mean_of_sets(sets: Sequence[Resampled]) -> Resampled:
    """Return the mean figure of each run over several data sets, which are resampled independently."""
    return Resampled(
        figures=np.mean([resampled.figures for resampled in sets], axis=0),
        resamples=np.mean([resampled.resamples for resampled in sets], axis=0),
        least_p=math.prod(resampled.least_p for resampled in sets),
        examples=min(resampled.examples for resampled in sets),
    )


def interval_of_runs(method: Resampled) -> tuple[float, float]:
    """Return the 95 % interval of a method's mean figure: percentiles for one run, else as in :func:`paired_seeds`."""
    resamples = defined_resamples(method.resamples)
    if len(method.figures) == 1:
        return percentile_interval(resamples[0], 0.95)
    mean = float(method.figures.mean())
    of_resamples = float(np.var(resamples.mean(axis=0), ddof=1))
    tested = _tested(mean, of_resamples, method.examples, [(method.figures, resamples)])
    return tested.low, tested.high


def compare_resampled(method_a: Resampled, method_b: Resampled, *, same_seeds: bool = False) -> PairedDifference:
    """Compare two methods on the same resamples: single runs by paired bootstrap, else as in :func:`paired_seeds`."""
    sizes = (len(method_a.figures), len(method_b.figures))
    # Only resamples on which the figures of both methods are defined are compared.
    resamples = defined_resamples(np.concatenate([method_a.resamples, method_b.resamples]))
    first = resamples[: sizes[0]]
    second = resamples[sizes[0] :]
    difference = float(method_a.figures.mean() - method_b.figures.mean())
    if sizes == (1, 1):
        return floor_p_value(method_a.least_p, paired_difference(difference, first[0] - second[0]))
    sides = [(method_a.figures, first), (method_b.figures, second)]
    if same_seeds:
        sides = [(method_a.figures - method_b.figures, first - second)]
    of_resamples = float(np.var(first.mean(axis=0) - second.mean(axis=0), ddof=1))
    return floor_p_value(method_a.least_p, _tested(difference, of_resamples, method_a.examples, sides))


def _tested(
    difference: float, of_resamples: float, examples: int, sides: Sequence[tuple[Floats, Floats]]
) -> PairedDifference:
    """Test a difference by the sum of its variance over the examples and each side's variance over seeds.

    ``of_resamples`` is the variance of the difference over resamples, which lacks only the correction for n - 1.
    """
    of_examples = of_resamples * examples / (examples - 1)
    variance = of_examples
    spread = of_examples**2 / (examples - 1)  # Satterthwaite: sum of squared variances over their degrees of freedom
    for figures, resamples in sides:
        count = len(figures)
        if count < 2:
            continue
        seed_variance = float(np.var(figures, ddof=1)) / count
        # Runs differ in part because each errs on other examples, which the bootstrap has already counted.
        each = np.var(resamples, axis=1, ddof=1).mean()
        together = np.var(resamples.mean(axis=0), ddof=1)
        variance += max(0.0, seed_variance - float(each - together) / (count - 1))
        spread += seed_variance**2 / (count - 1)
    # Without any variance t would be 0 / 0.
    if variance < ROUNDING**2 and abs(difference) < ROUNDING:
        return PairedDifference(0.0, 0.0, 0.0, 1.0)
    from scipy.stats import t as student  # imported late: using a model needs no scipy

    freedom = max(1.0, variance**2 / max(spread, TINY))
    error = max(np.sqrt(variance), TINY)
    p_value = max(2 * float(student.sf(abs(difference) / error, freedom)), TINY)
    reach = float(student.ppf(0.975, freedom)) * error
    return PairedDifference(difference, difference - reach, difference + reach, p_value)


def _check_sizes(outcomes: Sequence[Floats]) -> None:
    sizes = {len(run) for run in outcomes}
    if len(sizes) > 1 or min(sizes) < 2:
        raise DataError(f"All runs must be evaluated on the same 2 examples or more, got {sorted(sizes)}.")
