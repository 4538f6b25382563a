"""Correlations of many bootstrap resamples at once, without sorting any of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.metrics.correlation import centred
from samesense.types import Floats

BLOCK_CELLS = 500_000
"""Resamples times rows that are held at once, which bounds the memory; it does not change any number."""


@dataclass(frozen=True)
class Side:
    """Scores or labels, sorted once.

    Attributes:
        values: the numbers ``(n,)``, centred and scaled.
        order: rows in ascending order of value ``(n,)``.
        group: for each row, the index of its tie group ``(n,)``.
        last: for each tie group, the last of its positions in ``order`` ``(groups,)``.
    """

    values: Floats
    order: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]

    @classmethod
    def of(cls, values: Floats) -> Side:
        """Prepare ``values`` ``(n,)``, which are finite and not all the same."""
        _, group, size = np.unique(values, return_inverse=True, return_counts=True)
        return cls(centred(values), np.argsort(values, kind="stable"), group, np.cumsum(size) - 1)

    def through(self, counts: Floats) -> Floats:
        """Return, for each resample and tie group, how many drawn rows lie in it or below ``(block, groups)``."""
        cumulated: Floats = np.cumsum(counts[:, self.order], axis=1)[:, self.last]
        return cumulated


def resample_counts(rows: int, samples: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of resamples, each given as how often every row was drawn.

    Args:
        rows: number of rows n; each resample draws n of them with replacement.
        samples: number of resamples over all blocks.
        seed: of the draws.

    Yields:
        Whole numbers ``(block, rows)`` as float64; each row of it sums to n.
    """
    generator = np.random.default_rng(seed)
    block = max(1, BLOCK_CELLS // rows)
    for start in range(0, samples, block):
        size = min(block, samples - start)
        drawn = generator.integers(0, rows, size=(size, rows))
        drawn += np.arange(size)[:, None] * rows
        yield np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows).astype(np.float64)


def correlations(counts: Floats, left: Side, right: Side, *, ranked: bool) -> Floats:
    """Return the correlation of each resample.

    The average rank of a tie group within a resample follows from how many drawn rows lie below it and in it,
    so counting along the order of the full data replaces sorting.

    Args:
        counts: how often each row was drawn ``(block, n)``; the draws of a resample may be fewer than n.
        left: one side of the pairs.
        right: the other side.
        ranked: True for Spearman's correlation, False for Pearson's.

    Returns:
        Correlations ``(block,)``, NaN where a side is constant within the resample.
    """
    deviations, constant = [], np.zeros(len(counts), dtype=bool)
    drawn = counts.sum(axis=1)
    for side in (left, right):
        through = side.through(counts)
        size = np.diff(through, axis=1, prepend=0.0)
        constant |= size.max(axis=1) == drawn
        deviations.append(
            _rank_deviations(through, size, drawn, side) if ranked else _value_deviations(counts, drawn, side)
        )
    weighted = counts * deviations[0]
    product = np.einsum("ij,ij->i", weighted, deviations[1])
    spread_left = np.einsum("ij,ij->i", weighted, deviations[0])
    spread_right = np.einsum("ij,ij,ij->i", counts, deviations[1], deviations[1])
    spread = np.sqrt(spread_left) * np.sqrt(spread_right)
    constant |= spread == 0
    spread[constant] = 1.0
    result: Floats = np.clip(product / spread, -1.0, 1.0)
    result[constant] = np.nan
    return result


def _rank_deviations(through: Floats, size: Floats, drawn: Floats, side: Side) -> Floats:
    """Return average ranks within each resample less their mean ``(block, n)``."""
    ranks = through - (size - 1) / 2
    deviations: Floats = (ranks - (drawn[:, None] + 1) / 2)[:, side.group]
    return deviations


def _value_deviations(counts: Floats, drawn: Floats, side: Side) -> Floats:
    """Return values less their mean within each resample ``(block, n)``."""
    mean = counts @ side.values / drawn
    deviations: Floats = side.values[None, :] - mean[:, None]
    return deviations
