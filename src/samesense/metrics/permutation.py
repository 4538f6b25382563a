"""Permutation test of the difference of two models, which swaps their scores pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from samesense.metrics.correlation import Statistic, average_ranks, centred
from samesense.metrics.inputs import Numbers
from samesense.metrics.resampling import BLOCK_CELLS
from samesense.metrics.significance import check_sampling, paired_sides
from samesense.metrics.statistics import STATISTICS
from samesense.types import Floats

ROUNDING = 1e-12
"""Differences closer than this count as equal: a swap of two equal scores may change the last digits."""


@dataclass(frozen=True)
class PermutedDifference:
    """Difference of two correlations on the same pairs, and its p-value under exchangeable scores.

    ``p_value`` is two-sided and never 0 itself.
    """

    difference: float
    p_value: float


def paired_permutation(
    scores_a: Numbers,
    scores_b: Numbers,
    labels: Numbers,
    statistic: Statistic,
    *,
    samples: int = 1000,
    seed: int = 0,
) -> PermutedDifference:
    """Test whether two models are exchangeable, by swapping their scores of random pairs.

    Arguments and errors are those of :func:`~samesense.metrics.paired_bootstrap`; ``samples`` counts random swaps.

    The null hypothesis is that the two scores of a pair are exchangeable. This is stronger than equal correlations: a
    small p-value says that the models differ with regard to these labels, and
    :func:`~samesense.metrics.paired_bootstrap` says by how much. Scores are brought to one unit first, as ranks for
    Spearman and with mean 0 and variance 1 for Pearson, which changes neither correlation. The p-value is the share of
    swapped differences at least as large in magnitude, with one added to count and total so that it is never 0. A swap
    that leaves a side constant counts as at least as large.

    Source: Fisher (1935), "The Design of Experiments"; Smucker, Allan and Carterette (2007) for comparisons of systems.
    """
    check_sampling(samples, 0.95, seed)
    difference, first, second, right = paired_sides(scores_a, scores_b, labels, statistic)
    swapped = np.concatenate(list(_swapped(_in_one_unit(first, second, statistic), right, statistic, samples, seed)))
    smaller = np.abs(swapped) < abs(difference) - ROUNDING  # False where undefined
    return PermutedDifference(difference, (samples - int(smaller.sum()) + 1) / (samples + 1))


def _in_one_unit(first: Floats, second: Floats, statistic: Statistic) -> Floats:
    """Return the scores of the first model, then those of the second, in one unit ``(2n,)``."""
    if statistic == "spearman":
        return np.concatenate([average_ranks(first), average_ranks(second)])
    sides = [centred(side) for side in (first, second)]
    return np.concatenate([side / side.std() for side in sides])


def _swapped(both: Floats, labels: Floats, statistic: Statistic, samples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of differences of the two correlations after random swaps; NaN where one is undefined.

    After swaps, the scores of a model are n of the 2n scores, one for each pair.
    """
    generator = np.random.default_rng(seed)
    n = len(labels)
    block = max(1, BLOCK_CELLS // n)
    figure = STATISTICS[statistic]
    scores = figure.prepare_scores(both)
    labels_twice = figure.prepare_labels(np.concatenate([labels, labels]))
    for start in range(0, samples, block):
        # True keeps the scores of a pair with their models, False swaps them.
        in_place = generator.integers(0, 2, size=(min(block, samples - start), n)) == 1
        drawn, complement = (np.arange(n) + n * offset for offset in (~in_place, in_place))
        first, second = (figure.resample(rows, scores, labels_twice) for rows in (drawn, complement))
        yield first - second
