"""Group near-duplicate rows by their links at a threshold, and choose the row to keep of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.inference.duplicates.links import Links
from samesense.inference.search.exact import margin, unit_rows
from samesense.inference.search.mining import Near, cosines_of, near_pairs, pair_blocks, pair_cosines
from samesense.inference.search.ties import TIE
from samesense.inference.search.ties import best as best_of
from samesense.types import Embeddings, Indices, Scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK_ROWS = 100_000
"""Rows whose neighbours are Python lists at once."""


class Kept(NamedTuple):
    """The kept row of each group.

    Attributes:
        kept_by: for each row the row that is kept instead; the row itself if it is kept ``(rows,)``.
        scores: cosine of each row with that row, 1 for kept rows ``(rows,)``.
    """

    kept_by: Indices
    scores: Scores


Differ = Callable[[Indices, Indices], npt.NDArray[np.bool_]]
"""Takes pairs of rows, and returns which of them differ even though they are close."""


def represented(vectors: Embeddings, links: Links, threshold: float, order: Indices, differ: Differ) -> Kept:
    """Go through the rows in ``order``, and keep each one that is not linked to a row kept before.

    A removed row is represented by the closest kept row before it that it is linked to, ties by the first. Where links
    were left out, kept rows are compared again, so that no two rows at the threshold are kept unless they ``differ``.
    ``vectors`` are ``(rows, dim)``; ``order`` names each row once.
    """
    kept_by = np.arange(len(order), dtype=np.int64)
    scores = np.ones(len(order))
    earlier = _earlier_neighbours(links, threshold, order)
    is_kept = bytearray(b"\1") * len(order)
    crowd = _Crowd(vectors, threshold, differ)
    # Links of these rows may have been left out, so that they are compared with kept rows again.
    in_crowd = links.beyond[order] >= threshold
    for start in range(0, len(order), BLOCK_ROWS):
        block = earlier[start : start + BLOCK_ROWS]
        for position, neighbours in enumerate(_neighbour_lists(block), start):
            if any(map(is_kept.__getitem__, neighbours)):
                is_kept[position] = False
            elif in_crowd[position]:
                row = int(order[position])
                representative, scores[row] = crowd.closest(row)
                kept_by[row] = representative
                is_kept[position] = representative == row
        positions, representatives, cosines = _closest_kept(block, np.frombuffer(is_kept, dtype=np.bool_), order)
        removed = order[start + positions]
        kept_by[removed] = representatives
        scores[removed] = cosines
    return Kept(kept_by, scores)


def _earlier_neighbours(links: Links, threshold: float, order: Indices) -> csr_array:
    """Return the cosines of each row, by its position in the order, with the rows before it that it is linked to."""
    # scipy takes a moment to load, which other searches need not wait for.
    from scipy.sparse import coo_array

    position = np.empty(len(order), dtype=np.int32 if len(order) < 2**31 else np.int64)
    position[order] = np.arange(len(order))
    above = links.scores >= threshold
    first = position[links.first[above]]
    second = position[links.second[above]]
    ends = (np.maximum(first, second), np.minimum(first, second))
    return coo_array((links.scores[above], ends), shape=(len(order), len(order))).tocsr()


def _neighbour_lists(neighbours: csr_array) -> Iterator[list[int]]:
    """Yield the neighbours of each row. Numbers of Python are looked up several times faster than those of numpy."""
    columns = neighbours.indices.tolist()
    for start, end in pairwise(neighbours.indptr.tolist()):
        yield columns[start:end]


def _closest_kept(
    earlier: csr_array, is_kept: npt.NDArray[np.bool_], order: Indices
) -> tuple[Indices, Indices, Scores]:
    """Return which positions of a block have kept neighbours, the row of the closest of these, and its cosine."""
    kept = is_kept[earlier.indices]
    owners = np.repeat(np.arange(earlier.shape[0]), np.diff(earlier.indptr))[kept]
    rows = order[earlier.indices[kept]]
    cosines = earlier.data[kept]
    removed, starts, counts = np.unique(owners, return_index=True, return_counts=True)
    if not len(removed):
        return removed, rows, cosines
    highest = np.maximum.reduceat(cosines, starts)
    is_best = cosines >= np.repeat(highest, counts) - TIE
    representatives = np.minimum.reduceat(np.where(is_best, rows, len(order)), starts)
    chosen = is_best & (rows == np.repeat(representatives, counts))
    return removed, representatives, cosines[chosen]


class _Crowd:
    """The kept rows with links that were left out; a missing link between kept rows has two of them at its ends."""

    def __init__(self, vectors: Embeddings, threshold: float, differ: Differ) -> None:
        self._vectors = vectors
        self._threshold = threshold
        self._differ = differ
        self._rows: list[int] = []
        self._unit = np.zeros((64, vectors.shape[1]), dtype=np.float32)

    def closest(self, row: int) -> tuple[int, float]:
        """Return the closest row and its cosine if it reaches the threshold; otherwise add ``row``, and return it."""
        # A slice, so that the row stays a matrix.
        row_vector = self._vectors[row : row + 1]
        unit = unit_rows(row_vector, row)[0]
        count = len(self._rows)
        # The float32 product preselects; the exact cosines decide.
        close = np.flatnonzero(self._unit[:count] @ unit >= self._threshold - margin(len(unit)))
        rows = np.array(self._rows, dtype=np.int64)[close]
        exact = row_cosines(row_vector, self._vectors[rows]) if len(rows) else np.zeros(0)
        rows = rows[exact >= self._threshold]
        exact = exact[exact >= self._threshold]
        same = ~self._differ(np.full(len(rows), row), rows)
        if same.any():
            best = best_of(exact[same], rows[same])
            return int(rows[same][best]), float(exact[same][best])
        # Doubled, so that rows are copied only a few times.
        if count == len(self._unit):
            self._unit = np.concatenate([self._unit, np.zeros_like(self._unit)])
        self._unit[count] = unit
        self._rows.append(row)
        return row, 1.0


def linked(vectors: Embeddings, links: Links, threshold: float, order: Indices, differ: Differ) -> Kept:
    """Keep of each connected component of the links at the threshold the row that is first in ``order``.

    This is single-linkage clustering, cut at the threshold: ends of a chain need not be close. Links that were left out
    are searched again where the search was exact, and rows that ``differ`` are not linked.
    """
    labels = np.arange(len(order), dtype=np.int64)
    labels = _joined(labels, links.first[links.scores >= threshold], links.second[links.scores >= threshold])
    crowd = np.flatnonzero(links.beyond >= threshold)
    # An approximate search measured its recall, and is not completed.
    if links.recall is None and len(crowd):
        for near in near_pairs(vectors[crowd], lambda: threshold):
            near = Near(crowd[near.first], crowd[near.second], near.scores)
            # Pairs within one component cannot change the components.
            near = near.take(labels[near.first] != labels[near.second])
            labels = _linked(labels, vectors, near.take(~differ(near.first, near.second)), threshold)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    best = np.full(len(order), len(order), dtype=np.int64)
    np.minimum.at(best, labels, rank)
    kept_by = order[best[labels]]
    scores = np.ones(len(kept_by))
    removed = np.flatnonzero(kept_by != np.arange(len(kept_by)))
    # A row need not be linked to the one that is kept, so that their cosine is computed here.
    scores[removed] = cosines_of(vectors, removed, kept_by[removed])
    return Kept(kept_by, scores)


def _linked(labels: Indices, vectors: Embeddings, near: Near, threshold: float) -> Indices:
    """Return the labels, each the lowest row of its component, after joining pairs that reach the threshold."""
    # Pairs within rounding error of the threshold need their exact cosine, unless they are joined already.
    sure = near.scores >= threshold + margin(vectors.shape[1])
    labels = _joined(labels, near.first[sure], near.second[sure])
    doubtful = near.take(~sure)
    doubtful = doubtful.take(labels[doubtful.first] != labels[doubtful.second])
    for block in pair_blocks(doubtful):
        close = pair_cosines(vectors, block) >= threshold
        labels = _joined(labels, block.first[close], block.second[close])
    return labels


def _joined(labels: Indices, first: Indices, second: Indices) -> Indices:
    """Return the labels after joining the components of the linked rows."""
    if not len(first):
        return labels
    # scipy is loaded once there are links to join.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Only the components that a link touches are nodes, as most rows have none.
    ends = np.stack([labels[first], labels[second]])
    names, inverse = np.unique(ends, return_inverse=True)
    left, right = inverse.reshape(ends.shape)
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(len(names), len(names)))
    count, component = connected_components(graph, directed=False)
    lowest = np.full(count, len(labels), dtype=np.int64)
    np.minimum.at(lowest, component, names)
    new = np.arange(len(labels), dtype=np.int64)
    new[names] = lowest[component]
    return new[labels]
