"""Exact nearest neighbours by cosine, block by block, ties to the lower id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.errors import ModelError
from samesense.types import Embeddings, Indices, Scores

Block = tuple[Indices, npt.NDArray[np.floating]]
"""Ids ``(rows,)`` and vectors ``(rows, dim)``, of unit length where they are float32."""

BLOCK_ROWS = 4096
"""Rows compared at once."""

BLOCK_QUERIES = 256
"""Queries compared at once; together with ``BLOCK_ROWS`` this bounds the memory of a search."""


def unit_rows(vectors: npt.NDArray[Any], first: int = 0) -> Embeddings:
    """Return the rows ``(rows, dim)`` divided by their lengths, as float32.

    ``first`` is the index of the first row, for messages.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    # `initial` is for vectors without dimensions, which have no maximum.
    largest = np.abs(wide).max(axis=1, initial=0.0)
    # The largest magnitude is NaN or infinite where any number of the row is.
    broken = ~(np.isfinite(largest) & (largest > 0))
    if broken.any():
        row = first + int(np.argmax(broken))
        raise ModelError(
            f"A cosine needs vectors that are finite and not all zeros; row {row}, counted from 0, is neither or one "
            f"of them ({int(broken.sum())} such rows in this block). Leave such texts out, or look at the model."
        )
    wide = wide / largest[:, None]  # so that no square overflows
    unit: Embeddings = (wide / np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]).astype(np.float32)
    return unit


def positions_from(scores: npt.NDArray[np.floating], floor: float) -> tuple[Indices, Indices]:
    """Return rows and columns of the scores that reach a floor, in order; few of ``(rows, columns)`` do."""
    # Flat positions are found several times faster than rows and columns.
    rows, columns = np.divmod(np.flatnonzero(scores >= floor), scores.shape[1])
    return rows, columns


def margin(dim: int) -> float:
    """Return the largest difference at which two float32 products of unit rows may be in the wrong order.

    A product of ``dim`` terms has an error of at most ``dim`` roundings of 2**-24; a few more account for lengths that
    are not exactly 1. Both products may have the error.

    Source: Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.1.
    """
    return 2 * (dim + 8) * 2.0**-24


class Best:
    """The best ids of one query so far, the lower id first among equal scores."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.ids: Indices = np.zeros(0, dtype=np.int64)
        self.scores: Scores = np.zeros(0, dtype=np.float64)

    @property
    def floor(self) -> float:
        """Score below which no row can enter any more."""
        if len(self.scores) == self._count:
            return float(self.scores[-1])
        return -np.inf

    def offer(self, ids: Indices, scores: Scores) -> None:
        """Add ``ids`` with ``scores``, both ``(rows,)``, and keep the best."""
        ids = np.concatenate([self.ids, ids])
        scores = np.concatenate([self.scores, scores])
        order = np.lexsort((ids, -scores))[: self._count]
        self.ids = ids[order]
        self.scores = scores[order]


def nearest(queries: Embeddings, blocks: Callable[[], Iterable[Block]], best: list[Best], count: int) -> None:
    """Add the nearest rows of the blocks to the ``best`` of each query, without a matrix of all scores.

    A float32 product preselects rows; the scores that decide are computed in float64. Queries are unit rows
    ``(queries, dim)``; ``blocks`` yields all rows each time it is called.
    """
    slack = margin(queries.shape[1])
    for start in range(0, len(queries), BLOCK_QUERIES):
        query_block = queries[start : start + BLOCK_QUERIES]
        # The rows are read again for each block of queries, as they may be more than memory holds.
        for ids, vectors in blocks():
            rows = vectors if vectors.dtype == np.float32 else unit_rows(vectors)
            scores = query_block @ rows.T
            # Most blocks hold nothing for most queries, which their highest score shows at once.
            hopeful = scores.max(axis=1) >= [closest.floor - slack for closest in best[start : start + BLOCK_QUERIES]]
            for row in np.flatnonzero(hopeful):
                closest = best[start + row]
                # What is below the best `count` of this block alone cannot be among the best of all.
                for hits in _possible(scores[row], max(closest.floor, _least(scores[row], count)) - slack):
                    closest.offer(ids[hits], row_cosines(query_block[row : row + 1], vectors[hits]))


def _least(scores: npt.NDArray[np.float32], count: int) -> float:
    """Return the ``count``-th highest score, or minus infinity if there are no more than ``count``."""
    if len(scores) <= count:
        return -np.inf
    return float(np.partition(scores, len(scores) - count)[len(scores) - count])


def _possible(scores: npt.NDArray[np.float32], floor: float) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the indices of scores that reach the floor, a few hundred at a time."""
    indices = np.flatnonzero(scores >= floor)
    for start in range(0, len(indices), 512):
        yield indices[start : start + 512]
