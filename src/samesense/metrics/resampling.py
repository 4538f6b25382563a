"""Correlations, average precision and F1 of many resamples at once, without sorting each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from samesense.metrics.correlation import centred
from samesense.types import Floats, Indices

BLOCK_CELLS = 500_000
"""Resamples times rows held at once, which bounds the memory; results do not depend on it."""


def resamples(rows: int, samples: int, seed: int) -> Iterator[Indices]:
    """Yield blocks of resamples ``(block, rows)``, rows drawn with replacement, ``samples`` in all."""
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_CELLS // rows)
    for start in range(0, samples, block):
        yield generator.integers(0, rows, size=(min(block, samples - start), rows))


def correlations(drawn: Indices, left: Floats, right: Floats, *, ranked: bool) -> Floats:
    """Return the correlation of each resample ``(block,)``, NaN where a side is constant within it.

    ``drawn`` are the rows of each resample ``(block, n)``; ``ranked`` is True for Spearman's, False for Pearson's.
    """
    left_deviations, right_deviations = (_deviations(side, drawn, ranked) for side in (left, right))
    product = np.einsum("ij,ij->i", left_deviations, right_deviations)
    spread = np.sqrt(np.einsum("ij,ij->i", left_deviations, left_deviations)) * np.sqrt(
        np.einsum("ij,ij->i", right_deviations, right_deviations)
    )
    coefficients: Floats = np.full(len(drawn), np.nan)
    np.divide(product, spread, out=coefficients, where=spread > 0)
    return np.clip(coefficients, -1.0, 1.0)


def _deviations(side: Floats, drawn: Indices, ranked: bool) -> Floats:
    """Return the drawn values or their average ranks minus the mean of the resample; 0 for a constant one."""
    values = _ranks(side, drawn) if ranked else centred(side)[drawn]
    varies = (values != values[:, :1]).any(axis=1)  # the mean of equal numbers is not always exactly that number
    deviations: Floats = (values - values.mean(axis=1, keepdims=True)) * varies[:, None]
    return deviations


def _ranks(side: Floats, drawn: Indices) -> Floats:
    """Return average ranks within each resample, from the sizes of its tie groups."""
    groups: npt.NDArray[np.int64] = np.unique(side, return_inverse=True)[1]
    picked = groups[drawn]
    count = int(groups.max()) + 1
    # One bincount over all resamples: each has its own block of counts.
    cells = picked + np.arange(len(drawn))[:, None] * count
    size = np.bincount(cells.ravel(), minlength=len(drawn) * count).reshape(-1, count)
    return np.take_along_axis(np.cumsum(size, axis=1) - (size - 1) / 2, picked, axis=1)


def average_precisions(drawn: Indices, scores: Floats, labels: Floats) -> Floats:
    """Return the average precision of each resample ``(block,)``, NaN where it lacks positives or negatives.

    ``drawn`` are the rows of each resample ``(block, n)``; ``scores`` and ``labels``, which are 0 or 1, ``(n,)``.
    """
    groups: npt.NDArray[np.int64] = np.unique(-scores, return_inverse=True)[1]  # the highest score first
    count = int(groups.max()) + 1
    cells = (groups[drawn] + np.arange(len(drawn))[:, None] * count).ravel()
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
