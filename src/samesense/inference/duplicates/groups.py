"""Group near-duplicate rows by their links at a threshold, and choose the row to keep of each group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.inference.duplicates.links import Links
from samesense.inference.search.exact import margin, unit_rows
from samesense.inference.search.mining import Near, cosines_of, near_pairs, pair_blocks, pair_cosines
from samesense.inference.search.ties import best as best_of
from samesense.types import Embeddings, Indices, Scores


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

    A removed row is represented by the closest kept row that it is linked to, ties by the first. Where links were left
    out, kept rows are compared again, so that no two rows at the threshold are kept unless they ``differ``. ``vectors``
    are ``(rows, dim)``; ``order`` names each row once.
    """
    kept_by = np.full(len(order), -1, dtype=np.int64)
    scores = np.ones(len(order))
    starts, neighbours, near = _adjacency(links, threshold, len(order))
    crowd = _Crowd(vectors, threshold, differ)
    # Rows without any link are kept, and need no turn in the loop.
    alone = (np.diff(starts) == 0) & (links.beyond < threshold)
    kept_by[alone] = np.flatnonzero(alone)
    for row in order[~alone[order]].tolist():
        listed = neighbours[starts[row] : starts[row + 1]]
        close = np.flatnonzero(kept_by[listed] == listed)
        if len(close):
            candidates = starts[row] + close
            best = candidates[best_of(near[candidates], neighbours[candidates])]
            kept_by[row] = neighbours[best]
            scores[row] = near[best]
        else:
            kept_by[row] = row
            scores[row] = 1.0
            # Links of this row may have been left out, so that kept rows are compared again.
            if links.beyond[row] >= threshold:
                kept_by[row], scores[row] = crowd.closest(row)
    return Kept(kept_by, scores)


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
        if len(rows):
            exact = row_cosines(row_vector, self._vectors[rows])
        else:
            exact = np.zeros(0)
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


def _adjacency(links: Links, threshold: float, rows: int) -> tuple[Indices, Indices, Scores]:
    """Return ``starts``, neighbours and scores: row i is linked to ``neighbours[starts[i] : starts[i + 1]]``."""
    above = links.scores >= threshold
    first = links.first[above]
    second = links.second[above]
    scores = links.scores[above]
    ends = np.concatenate([first, second])
    neighbours = np.concatenate([second, first])
    order = np.lexsort((neighbours, ends))
    starts = np.searchsorted(ends[order], np.arange(rows + 1))
    return starts, neighbours[order], np.concatenate([scores, scores])[order]


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
