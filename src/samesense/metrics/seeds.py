"""Is one method better than another? A test over training seeds and test examples together, on one set or several."""

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
    at_least,
    check_sampling,
    check_statistic,
    compared,
    defined,
    least_of_means,
    percentile_interval,
    resampled_means,
    resampled_statistics,
)
from samesense.metrics.statistics import STATISTICS, PairStatistic
from samesense.types import Floats

ROUNDING = 1e-12
"""Figures closer than this are equal: the means of equal numbers may differ in the last digits."""

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

    The difference of the means varies with the examples, which a paired bootstrap over all runs at once measures, and
    with the seeds, whose sample variance is added; the part of that variance which comes of the examples, and so would
    be counted twice, is taken off. The sum is tested by Student's t with Satterthwaite's degrees of freedom. Seeds are
    not resampled: a bootstrap of three to five values is much too narrow.

    Source: Satterthwaite (1946), "An approximate distribution of estimates of variance components".

    Args:
        runs_a: for each run of the first method its scores, or its outcomes for a mean ``(n,)``.
        runs_b: those of the second method. A side with one run is taken as it is, as a model that is not trained.
        labels: reference labels ``(n,)``; without them mean outcomes are compared, such as accuracies.
        statistic: as in :func:`~samesense.metrics.bootstrap_interval`, or ``"mean"``, which needs no labels.
        same_seeds: the runs of both sides are in the order of the same seeds, and compared seed by seed.
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
    sizes = len(runs_a), len(runs_b)
    if min(sizes) < 1 or max(sizes) < 2:
        raise DataError(f"Seeds are compared with two runs or more on a side, got {sizes[0]} and {sizes[1]}.")
    if same_seeds and sizes[0] != sizes[1]:
        raise ConfigError(f"Equal seeds need as many runs on both sides, got {sizes[0]} and {sizes[1]}.")
    both = resampled_figures([*runs_a, *runs_b], labels, statistic, samples=samples, seed=seed)
    return compare_resampled(both.part(0, sizes[0]), both.part(sizes[0], sum(sizes)), same_seeds=same_seeds)


@dataclass(frozen=True)
class Resampled:
    """Figures of the runs of one method, as they are and on resamples of the examples."""

    figures: Floats  # one a run (runs,)
    drawn: Floats  # on each resample (runs, samples), NaN where undefined
    least: float  # p-value that a comparison of so few examples can reach
    examples: int  # of the data set, or of the smallest of several

    def part(self, start: int, end: int) -> Resampled:
        """Return some of the runs."""
        return replace(self, figures=self.figures[start:end], drawn=self.drawn[start:end])


def resampled_figures(
    runs: Sequence[Numbers],
    labels: Numbers | None,
    statistic: PairStatistic | Literal["mean"] = "spearman",
    *,
    samples: int,
    seed: int,
) -> Resampled:
    """Return the figure of each run as it is and on resamples, the same for all runs.

    Arguments and errors are those of :func:`paired_seeds`.
    """
    if labels is None or statistic == "mean":
        outcomes = [finite_vector(run, "runs") for run in runs]
        _check_sizes(outcomes)
        stacked = np.stack(outcomes)
        n = stacked.shape[1]
        return Resampled(stacked.mean(axis=1), resampled_means(stacked, samples, seed), least_of_means(n), n)
    figure = STATISTICS[statistic]
    checked = [figure.check(run, labels) for run in runs]
    sides = [left for left, _ in checked]
    right = checked[0][1]
    figures = np.array([figure.value(left, right) for left in sides])
    drawn = resampled_statistics(sides, right, statistic, samples, seed)
    return Resampled(figures, drawn, figure.least(right), len(right))


def mean_of_sets(sets: Sequence[Resampled]) -> Resampled:
    """Return the mean figure of each run over several data sets, drawn independently of each other."""
    figures, drawn = np.mean([one.figures for one in sets], axis=0), np.mean([one.drawn for one in sets], axis=0)
    return Resampled(figures, drawn, math.prod(one.least for one in sets), min(one.examples for one in sets))


def interval_of_runs(one: Resampled) -> tuple[float, float]:
    """Return the 95 % interval of a method's mean figure: by percentiles for one run, else as :func:`paired_seeds`."""
    drawn = defined(one.drawn)
    if len(one.figures) == 1:
        return percentile_interval(drawn[0], 0.95)
    mean = float(one.figures.mean())
    found = _tested(mean, float(np.var(drawn.mean(axis=0), ddof=1)), one.examples, [(one.figures, drawn)])
    return found.low, found.high


def compare_resampled(one: Resampled, other: Resampled, *, same_seeds: bool = False) -> PairedDifference:
    """Compare two methods on the same resamples: single runs by paired bootstrap, else as :func:`paired_seeds`."""
    sizes = len(one.figures), len(other.figures)
    drawn = defined(np.concatenate([one.drawn, other.drawn]))
    first, second = drawn[: sizes[0]], drawn[sizes[0] :]
    difference = float(one.figures.mean() - other.figures.mean())
    if sizes == (1, 1):
        return at_least(one.least, compared(difference, first[0] - second[0]))
    sides = [(one.figures, first), (other.figures, second)]
    if same_seeds:
        sides = [(one.figures - other.figures, first - second)]
    of_examples = float(np.var(first.mean(axis=0) - second.mean(axis=0), ddof=1))
    return at_least(one.least, _tested(difference, of_examples, one.examples, sides))


def _tested(
    difference: float, of_resamples: float, examples: int, sides: Sequence[tuple[Floats, Floats]]
) -> PairedDifference:
    """Add the variance of each side's seeds to that over the examples, and test the difference.

    ``of_resamples`` is the variance of the difference over resamples, which is that over examples but for its divisor.
    """
    of_examples = of_resamples * examples / (examples - 1)
    variance, spread = of_examples, of_examples**2 / (examples - 1)
    for figures, drawn in sides:
        count = len(figures)
        if count < 2:
            continue
        own = float(np.var(figures, ddof=1)) / count
        # Runs differ in part because each errs on other examples, and the bootstrap has counted that already.
        each, together = np.var(drawn, axis=1, ddof=1).mean(), np.var(drawn.mean(axis=0), ddof=1)
        variance += max(0.0, own - float(each - together) / (count - 1))
        spread += own**2 / (count - 1)
    if variance < ROUNDING**2 and abs(difference) < ROUNDING:
        return PairedDifference(0.0, 0.0, 0.0, 1.0)
    from scipy.stats import t as student  # what only uses a model needs no scipy

    freedom, error = max(1.0, variance**2 / max(spread, TINY)), max(np.sqrt(variance), TINY)
    p_value = max(2 * float(student.sf(abs(difference) / error, freedom)), TINY)
    reach = float(student.ppf(0.975, freedom)) * error
    return PairedDifference(difference, difference - reach, difference + reach, p_value)


def _check_sizes(outcomes: Sequence[Floats]) -> None:
    sizes = {len(run) for run in outcomes}
    if len(sizes) > 1 or min(sizes) < 2:
        raise DataError(f"All runs must be evaluated on the same 2 examples or more, got {sorted(sizes)}.")
