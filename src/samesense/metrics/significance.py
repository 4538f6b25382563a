"""Bootstrap intervals and paired comparisons of figures, and Holm's adjustment of p-values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from samesense.errors import ConfigError, DataError
from samesense.metrics.inputs import Numbers, finite_vector
from samesense.metrics.resampling import resamples
from samesense.metrics.statistics import STATISTICS, PairStatistic
from samesense.types import Floats


@dataclass(frozen=True)
class PairedDifference:
    """Difference of two figures, such as correlations or means, on the same examples.

    Attributes:
        difference: the first model's figure minus the second's.
        low: lower end of the 95 % interval of the difference.
        high: upper end of the 95 % interval of the difference.
        p_value: two-sided, for the hypothesis that the true difference is 0; never 0 itself.
    """

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap_interval(
    scores: Numbers,
    labels: Numbers,
    statistic: PairStatistic,
    *,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a correlation, an average precision or an F1.

    Pairs are drawn with replacement; Spearman's ranks are computed within each resample. Resamples on
    which the figure is undefined (a constant side, or no positive or no negative) are skipped.

    Source: Efron (1979), "Bootstrap methods: another look at the jackknife".

    Args:
        scores: model scores ``(n,)``; for ``"f1"`` decisions, 1 for a pair that is called positive, else 0.
        labels: reference labels ``(n,)``; 0 and 1 for the last two statistics.
        statistic: ``"spearman"``, ``"pearson"``, ``"average_precision"`` or ``"f1"``.
        samples: number of resamples.
        level: probability that the interval should cover.
        seed: of the resampling.

    Returns:
        Lower and upper end.

    Raises:
        DataError: if the figure is undefined, or undefined on more than half of the resamples.
        ConfigError: if a setting is out of range.
    """
    check_statistic(statistic, STATISTICS)
    check_sampling(samples, level, seed)
    left, right = STATISTICS[statistic].check(scores, labels)
    values = resampled_statistics([left], right, statistic, samples, seed)[0]
    return percentile_interval(defined_resamples(values), level)


def paired_bootstrap(
    scores_a: Numbers,
    scores_b: Numbers,
    labels: Numbers,
    statistic: PairStatistic,
    *,
    samples: int = 1000,
    seed: int = 0,
) -> PairedDifference:
    """Compare two models on the same pairs, drawing the same resamples for both.

    The p-value is twice the smaller share of resampled differences on one side of 0, with one added to count and total
    so that it is never 0.

    Source: Davison and Hinkley (1997), "Bootstrap Methods and their Application".

    Args:
        scores_a: scores of the first model ``(n,)``, as in :func:`bootstrap_interval`.
        scores_b: scores of the second model ``(n,)``.
        labels: reference labels ``(n,)``.
        statistic: as in :func:`bootstrap_interval`.
        samples: number of resamples.
        seed: of the resampling.

    Returns:
        The difference, its 95 % interval and its p-value.

    Raises:
        DataError: if a figure is undefined, or undefined on more than half of the resamples.
        ConfigError: if a setting is out of range.
    """
    check_sampling(samples, 0.95, seed)
    check_statistic(statistic, STATISTICS)
    figure = STATISTICS[statistic]
    first, right = figure.check(scores_a, labels)
    second, _ = figure.check(scores_b, labels)
    difference = figure.value(first, right) - figure.value(second, right)
    both = resampled_statistics([first, second], right, statistic, samples, seed)
    # The difference is NaN where either side is undefined, so both keep the same resamples.
    return floor_p_value(figure.least_p(right), paired_difference(difference, defined_resamples(both[0] - both[1])))


def mean_interval(values: Numbers, *, samples: int = 1000, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a mean of outcomes, such as an accuracy.

    Source: Efron (1979), as :func:`bootstrap_interval`.

    Args:
        values: the outcome of each example ``(n,)``, such as 1 for right and 0 for wrong.
        samples: number of resamples.
        level: probability that the interval should cover.
        seed: of the resampling.

    Returns:
        Lower and upper end. If all outcomes are 0, or all are 1, resampling changes nothing, and the exact end for a
        share is returned (Clopper and Pearson, 1934, "The use of confidence or fiducial limits").

    Raises:
        DataError: if there are fewer than 2 examples, or one is not finite.
        ConfigError: if a setting is out of range.
    """
    check_sampling(samples, level, seed)
    outcomes = _outcomes(values, "values")
    if np.all(outcomes == outcomes[0]) and outcomes[0] in (0, 1):
        # The closed form of Clopper and Pearson's end for a share of 0 or 1.
        reach = ((1 - level) / 2) ** (1 / len(outcomes))
        if outcomes[0]:
            return (reach, 1.0)
        return (0.0, 1 - reach)
    return percentile_interval(resampled_means(outcomes, samples, seed), level)


def paired_mean(values_a: Numbers, values_b: Numbers, *, samples: int = 1000, seed: int = 0) -> PairedDifference:
    """Compare the mean outcomes of two models on the same examples, drawing the same resamples for both.

    Interval and p-value are formed as in :func:`paired_bootstrap`.

    Source: Davison and Hinkley (1997), as :func:`paired_bootstrap`.

    Args:
        values_a: the first model's outcome of each example ``(n,)``, such as 1 for right and 0 for wrong.
        values_b: the second model's ``(n,)``, in the same order.
        samples: number of resamples.
        seed: of the resampling.
    """
    check_sampling(samples, 0.95, seed)
    first = _outcomes(values_a, "values_a")
    second = _outcomes(values_b, "values_b")
    if len(first) != len(second):
        raise DataError(f"Both models must be evaluated on the same examples, got {len(first)} and {len(second)}.")
    differences = first - second
    comparison = paired_difference(float(differences.mean()), resampled_means(differences, samples, seed))
    return floor_p_value(least_p_of_means(len(first)), comparison)


def least_p_of_means(examples: int) -> float:
    """Return the least p-value of a comparison of means: that of a sign test in which all signs agree.

    Two or three examples have few distinct resamples, and equal outcomes only one: without this bound most models would
    seem different.
    """
    return 2.0 ** (1 - examples)


def floor_p_value(p_value: float, comparison: PairedDifference) -> PairedDifference:
    """Return the comparison with its p-value raised to ``p_value`` if it is below."""
    return replace(comparison, p_value=max(comparison.p_value, p_value))


def holm(p_values: Numbers) -> list[float]:
    """Return Holm-adjusted p-values, which control the probability of any false positive among them.

    The smallest of *m* is multiplied by *m*, the next by *m* - 1 and so on; none is smaller than one before it, and
    none larger than 1. No assumption about the dependence of the comparisons is needed.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".

    Args:
        p_values: one for each comparison ``(m,)``, each in [0, 1]; leave out undefined comparisons.

    Returns:
        Adjusted p-values in the same order; empty for none.

    Raises:
        DataError: if one is not a number in [0, 1].
    """
    values = finite_vector(p_values, "p_values")
    outside = (values < 0) | (values > 1)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(f"p-values lie between 0 and 1, and p_values[{first}] is {values[first]:g}.")
    # Step down from the smallest; the running maximum keeps the order of the p-values.
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return [float(value) for value in adjusted]


def _outcomes(values: Numbers, name: str) -> Floats:
    vector = finite_vector(values, name)
    if len(vector) < 2:
        raise DataError(f"Resampling needs at least 2 examples, got {len(vector)} {name}.")
    return vector


def resampled_means(values: Floats, samples: int, seed: int) -> Floats:
    """Return the means ``(..., samples)`` of the values ``(..., n)``, all on the same resamples."""
    drawn = resamples(values.shape[-1], samples, seed)
    return np.concatenate([values[..., rows].mean(axis=-1) for rows in drawn], axis=-1)


def paired_difference(difference: float, resampled: Floats) -> PairedDifference:
    """Return a difference with its interval and p-value by resampled differences ``(samples,)``."""
    # A resampled difference of 0 counts on both sides, which makes the p-value larger.
    smaller = min(int((resampled <= 0).sum()), int((resampled >= 0).sum()))
    low, high = percentile_interval(resampled, 0.95)
    return PairedDifference(difference, low, high, min(1.0, 2 * (smaller + 1) / (len(resampled) + 1)))


def resampled_statistics(
    sides: Sequence[Floats], labels: Floats, statistic: PairStatistic, samples: int, seed: int
) -> Floats:
    """Return figures against the labels ``(sides, samples)``, all on the same resamples, NaN where undefined."""
    figure = STATISTICS[statistic]
    prepared = [figure.prepare_scores(side) for side in sides]
    right = figure.prepare_labels(labels)
    blocks = [
        np.stack([figure.resample(drawn, left, right) for left in prepared])
        for drawn in resamples(len(labels), samples, seed)
    ]
    return np.concatenate(blocks, axis=1)


def defined_resamples(values: Floats) -> Floats:
    """Return the resamples ``(..., samples)`` on which all values are defined; DataError if fewer than half are."""
    undefined = np.isnan(np.atleast_2d(values)).any(axis=0)
    if 2 * undefined.sum() > undefined.size:
        raise DataError(
            f"No interval: the figure is undefined on {undefined.sum()} of {undefined.size} resamples, "
            "because scores or labels hardly vary. More pairs are needed."
        )
    return values[..., ~undefined]


def percentile_interval(values: Floats, level: float) -> tuple[float, float]:
    """Return the quantiles of values ``(samples,)`` between which the central share ``level`` lies."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def check_statistic(statistic: str, names: Collection[str]) -> None:
    """Raise ConfigError if ``statistic`` is not among ``names``."""
    if statistic not in names:
        *first, last = map(repr, names)
        raise ConfigError(f"The statistic must be {', '.join(first)} or {last}, got {statistic!r}.")


def check_sampling(samples: int, level: float, seed: int) -> None:
    """Raise ConfigError if a setting of resampling is out of range."""
    if samples < 1:
        raise ConfigError(f"samples must be at least 1, got {samples}.")
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, such as 0.95, got {level}.")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or larger, got {seed}.")
