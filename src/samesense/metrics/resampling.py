"""Correlations, average precision and F1 of many resamples at once, without sorting each of them.

Where only the order of values counts, they are sorted once for all resamples: :func:`rank_values`, :func:`dense_ranks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from samesense.types import Floats, Indices

BLOCK_CELLS = 500_000
"""Resamples times rows held at once, which bounds the memory; results do not depend on it."""


def resamples(rows: int, samples: int, seed: int) -> Iterator[Indices]:
    """Yield blocks of resamples ``(block, rows)``, rows drawn with replacement, ``samples`` in all."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_CELLS // rows)
    for start in range(0, samples, block):
        yield generator.integers(0, rows, size=(min(block, samples - start), rows))


def dense_ranks(values: Floats) -> Indices:
    """Return the ranks of ``values`` from 0 without gaps ``(n,)``; equal values share one."""
    ranks: Indices = np.unique(values, return_inverse=True)[1]
    return ranks


@dataclass(frozen=True)
class Ranking:
    """Values in their order; equal values are a group.

    Attributes:
        groups: the group of each row ``(rows,)``, 0 for the lowest value.
        order: the rows from the lowest value to the highest ``(rows,)``.
        starts: where each group starts in ``order`` ``(groups,)``.
    """

    groups: Indices
    order: Indices
    starts: Indices


def rank_values(values: Floats) -> Ranking:
    """Sort values, once for all resamples."""
    groups = dense_ranks(values)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    # A million resampled rows are read at random: half as many bytes stay in the cache.
    return Ranking(groups.astype(np.int32), order.astype(np.int32), starts)


def rank_correlations(drawn: Indices, left: Ranking, right: Ranking) -> Floats:
    """Return Spearman's correlation of each resample ``(block,)``, NaN where a side is constant within it.

    ``drawn`` are the rows of each resample ``(block, n)``.
    """
    counts = _row_counts(drawn, len(left.order))
    left_deviations, left_square = _rank_deviations(left, counts, drawn.shape[1])
    right_deviations, right_square = _rank_deviations(right, counts, drawn.shape[1])
    by_row = [left_deviations.take(left.groups, axis=1), right_deviations.take(right.groups, axis=1)]
    return _quotients(np.einsum("ij,ij,ij->i", counts, *by_row), left_square, right_square)


def _row_counts(drawn: Indices, rows: int) -> Indices:
    """Return how often each resample has each row ``(block, rows)``, in the smallest type of numbers."""
    blocks, size = drawn.shape
    # One bincount over all resamples: each has its own block of counts.
    cells = drawn + np.arange(blocks)[:, None] * rows
    counts = np.bincount(cells.ravel(), minlength=blocks * rows).reshape(blocks, rows)
    return counts.astype(np.min_scalar_type(size))


def value_correlations(drawn: Indices, left: Floats, right: Floats) -> Floats:
    """Return Pearson's correlation of each resample; ``drawn`` and result are those of :func:`rank_correlations`.

    The sides are :func:`~samesense.metrics.correlation.centred` values ``(rows,)``.
    """
    left_deviations, right_deviations = (_deviations(side[drawn]) for side in (left, right))
    left_square, right_square = (np.einsum("ij,ij->i", side, side) for side in (left_deviations, right_deviations))
    return _quotients(np.einsum("ij,ij->i", left_deviations, right_deviations), left_square, right_square)


def _quotients(product: Floats, left_square: Floats, right_square: Floats) -> Floats:
    """Return correlations ``(block,)`` from sums over deviations, NaN where one side has none."""
    spread = np.sqrt(left_square) * np.sqrt(right_square)
    coefficients: Floats = np.full(len(product), np.nan)
    np.divide(product, spread, out=coefficients, where=spread > 0)
    return np.clip(coefficients, -1.0, 1.0)


def _deviations(values: Floats) -> Floats:
    """Return values minus the mean of their row ``(block, n)``; 0 in a constant row."""
    varies = (values != values[:, :1]).any(axis=1)  # the mean of equal numbers is not always exactly that number
    deviations: Floats = (values - values.mean(axis=1, keepdims=True)) * varies[:, None]
    return deviations


def _rank_deviations(ranking: Ranking, counts: Indices, size: int) -> tuple[Floats, Floats]:
    """Return the average rank of each group minus the mean rank ``(block, groups)``, and the sum of squares over rows.

    Both come from the number of drawn rows in each group, so that nothing is sorted. ``size`` is that of a resample.
    """
    sorted_counts = counts.take(ranking.order, axis=1)
    sizes = np.add.reduceat(sorted_counts, ranking.starts, axis=1, dtype=np.int64)
    # The mean of n ranks is (n + 1) / 2, whatever their ties.
    deviations = np.cumsum(sizes, axis=1) - (sizes + size) / 2
    return deviations, np.einsum("ij,ij,ij->i", sizes, deviations, deviations)


def average_precisions(drawn: Indices, order: Indices, labels: Floats) -> Floats:
    """Return the average precision of each resample ``(block,)``, NaN where it lacks positives or negatives.

    ``drawn`` are the rows of each resample ``(block, n)``; ``order`` are the dense ranks of the rows, 0 for the highest
    score, and ``labels`` 0 or 1, both ``(rows,)``.
    """
    count = int(order.max()) + 1
    cells = (order[drawn] + np.arange(len(drawn))[:, None] * count).ravel()
    shape = (len(drawn), count)
    taken = np.bincount(cells, minlength=shape[0] * count).reshape(shape)
    hits = np.bincount(cells, weights=labels[drawn].ravel(), minlength=shape[0] * count).reshape(shape)
    # Before the first drawn group both sums are 0, and 0 / 1 adds nothing.
    precision = np.cumsum(hits, axis=1) / np.maximum(1, np.cumsum(taken, axis=1))
    positives = hits.sum(axis=1)
    values: Floats = np.einsum("ij,ij->i", hits, precision) / np.maximum(1, positives)
    return _where_both(values, positives, drawn)


def f1_scores(drawn: Indices, decisions: Floats, labels: Floats) -> Floats:
    """Return F1 of each resample ``(block,)``, NaN where it lacks positives or negatives.

    ``decisions`` ``(n,)`` are 1 for a pair that is called positive, else 0; the other arguments are those of
    :func:`average_precisions`.
    """
    called = decisions[drawn] >= 0.5
    positive = labels[drawn] == 1
    positives = positive.sum(axis=1)
    total = called.sum(axis=1) + positives
    values: Floats = 2 * (called & positive).sum(axis=1) / np.maximum(1, total)
    return _where_both(values, positives, drawn)


def _where_both(values: Floats, positives: Floats | Indices, drawn: Indices) -> Floats:
    """Return the values, NaN for resamples without a positive or without a negative."""
    both = (positives > 0) & (positives < drawn.shape[1])
    masked: Floats = np.where(both, values, np.nan)
    return masked
