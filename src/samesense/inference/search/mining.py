"""Paraphrase mining: the closest pairs of a corpus, exactly, blocks of rows against blocks of rows.

Memory grows linearly with the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.choices import check_count
from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError, ModelError
from samesense.inference.search.exact import margin, positions_from, unit_rows
from samesense.results.shown import RowList
from samesense.types import Indices, Scores

BLOCK_ROWS = 1024
"""Rows of a block; two blocks are compared at once."""

BLOCK_PAIRS = 4096
"""Pairs whose vectors are in memory in float64 at once."""


class MinedPair(NamedTuple):
    """Two close texts of a corpus.

    Attributes:
        first: index of the first text, from 0.
        second: index of the second text, larger than ``first``.
        score: cosine, in [-1, 1].
    """

    first: int
    second: int
    score: float


class MinedPairs(RowList):
    """Pairs of texts, the closest first, with the texts themselves: a list of :class:`MinedPair`.

    Attributes:
        texts: the texts of the corpus.
    """

    def __init__(self, pairs: Sequence[MinedPair], texts: Sequence[str]) -> None:
        super().__init__(pairs)
        self.texts = texts

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each pair as a dictionary, with both texts."""
        return [{**pair._asdict(), "text1": self.texts[pair.first], "text2": self.texts[pair.second]} for pair in self]


class Near(NamedTuple):
    """Pairs of rows whose float32 product reaches a floor: row numbers and scores, all ``(pairs,)``."""

    first: Indices
    second: Indices
    scores: npt.NDArray[np.floating]

    def take(self, chosen: npt.NDArray[Any] | slice) -> Near:
        """Return the chosen pairs."""
        return Near(self.first[chosen], self.second[chosen], self.scores[chosen])


def mine(vectors: npt.NDArray[np.floating], *, top: int = 100, threshold: float = -1.0) -> list[MinedPair]:
    """Return the ``top`` pairs of rows ``(texts, dim)`` with the highest cosine, each once, the closest first.

    Ties are ordered by row; no pair has a cosine below ``threshold``, in [-1, 1]. Vectors may be memory-mapped: time
    grows with the square of the rows, memory does not. ModelError for a row that is not finite or all zeros.
    """
    check_mining(top, threshold)
    best = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def floor() -> float:
        if len(best[0]) != top:
            return threshold
        return max(threshold, float(best[0][-1]))

    # Vectors of another shape are refused by near_pairs.
    slack = margin(vectors.shape[1]) if vectors.ndim == 2 else 0.0
    for near in near_pairs(vectors, floor):
        if len(near.scores) > top:
            # Float32 scores only choose the candidates; slack keeps those that rounding puts too low.
            least = np.partition(near.scores, len(near.scores) - top)[len(near.scores) - top]
            near = near.take(near.scores >= least - slack)
        for block in pair_blocks(near):
            if len(best[0]) == top and best[0][-1] == 1.0:  # no score is higher, so only earlier rows can enter
                block = block.take(
                    (block.first < best[1][-1]) | (block.first == best[1][-1]) & (block.second < best[2][-1])
                )
            scores = pair_cosines(vectors, block)
            above = scores >= threshold
            merged = [
                np.concatenate(columns)
                for columns in zip(best, (scores[above], block.first[above], block.second[above]), strict=True)
            ]
            order = np.lexsort((merged[2], merged[1], -merged[0]))[:top]
            best = merged[0][order], merged[1][order], merged[2][order]
    return [MinedPair(int(i), int(j), float(score)) for score, i, j in zip(*best, strict=True)]


def near_pairs(vectors: npt.NDArray[np.floating], floor: Callable[[], float]) -> Iterator[Near]:
    """Yield every pair of rows whose cosine may reach the floor once, block by block; some fall short by rounding.

    ``floor`` is called before each block, so that it may rise.
    """
    if vectors.ndim != 2:
        raise ModelError(f"One row a text is needed, a matrix; received the shape {vectors.shape}.")
    slack = margin(vectors.shape[1])
    for low in range(0, len(vectors), BLOCK_ROWS):
        left = unit_rows(vectors[low : low + BLOCK_ROWS], low)
        for high in range(low, len(vectors), BLOCK_ROWS):
            right = unit_rows(vectors[high : high + BLOCK_ROWS], high) if high != low else left
            scores = left @ right.T
            if high == low:
                # Below every cosine: a pair is seen once, and a row not with itself.
                scores[np.tril_indices(len(left))] = -2.0
            first, second = positions_from(scores, floor() - slack)
            if len(first):
                yield Near(low + first, high + second, scores[first, second])


def pair_blocks(near: Near) -> Iterator[Near]:
    """Yield the pairs, at most ``BLOCK_PAIRS`` at a time."""
    for start in range(0, len(near.scores), BLOCK_PAIRS):
        yield near.take(slice(start, start + BLOCK_PAIRS))


def pair_cosines(vectors: npt.NDArray[np.floating], near: Near) -> Scores:
    """Return the exact cosine of each pair of rows, ``(pairs,)``."""
    return row_cosines(vectors[near.first], vectors[near.second])


def cosines_of(vectors: npt.NDArray[np.floating], first: Indices, second: Indices) -> Scores:
    """Return the exact cosine of each pair of rows, ``(pairs,)``, :data:`BLOCK_PAIRS` at a time."""
    blocks = [slice(start, start + BLOCK_PAIRS) for start in range(0, len(first), BLOCK_PAIRS)]
    cosines = (row_cosines(vectors[first[block]], vectors[second[block]]) for block in blocks)
    return np.concatenate([np.zeros(0), *cosines])


def check_mining(top: int, threshold: float) -> None:
    """Raise ConfigError for invalid arguments of :func:`mine`, before anything is encoded."""
    check_count("top", top)
    check_threshold(threshold)


def check_threshold(threshold: float) -> None:
    """Raise ConfigError for a threshold outside [-1, 1]."""
    if not -1.0 <= threshold <= 1.0:
        raise ConfigError(f"A threshold is a cosine, from -1 to 1; received {threshold:g}. Example: 0.9")
