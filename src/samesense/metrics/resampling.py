"""Correlations, average precision and F1 of many resamples at once, without sorting each of them.

Where only the order of values counts, they are replaced by their :func:`dense_ranks`, once for all resamples.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def rank_correlations(drawn: Indices, left: Indices, right: Indices) -> Floats:
    """Return Spearman's correlation of each resample ``(block,)``, NaN where a side is constant within it.

    ``drawn`` are the rows of each resample ``(block, n)``; the sides are dense ranks ``(rows,)``.
    """
    left_deviations, left_square = _rank_deviations(left, drawn)
    right_deviations, right_square = _rank_deviations(right, drawn)
    return _quotients(np.einsum("ij,ij->i", left_deviations, right_deviations), left_square, right_square)


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


def _rank_deviations(ranks: Indices, drawn: Indices) -> tuple[Floats, Floats]:
    """Return average ranks minus their mean within each resample ``(block, n)``, and the sum of their squares.

    Both come from the sizes of the tie groups, so that nothing is sorted.
    """
    picked = ranks[drawn]
    count = int(ranks.max()) + 1
    # One bincount over all resamples: each has its own block of counts.
    cells = picked + np.arange(len(drawn))[:, None] * count
    sizes = np.bincount(cells.ravel(), minlength=len(drawn) * count).reshape(-1, count)
    # The mean of n ranks is (n + 1) / 2, whatever their ties.
    by_group = np.cumsum(sizes, axis=1) - (sizes + drawn.shape[1]) / 2
    return np.take_along_axis(by_group, picked, axis=1), np.einsum("ij,ij,ij->i", sizes, by_group, by_group)


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
