"""Pairs of rows that are close, the closest of each row, so that any higher threshold can be set without a new search.

Memory grows with the rows, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from samesense.inference.search.exact import margin
from samesense.inference.search.lists import make_lists, near_in_lists
from samesense.inference.search.mining import Near, near_pairs, pair_cosines, parts
from samesense.types import Embeddings, Indices, Scores

LINKS_PER_ROW = 32
"""Links kept of a row: its closest. A link is kept if it is among these of either end."""

POOL = 2_000_000
"""Links gathered, beside those that are kept, before the closest are chosen again."""


@dataclass(frozen=True)
class Links:
    """Pairs of rows with a cosine at the floor or above, each once.

    Of a row the closest :data:`LINKS_PER_ROW` are there for certain, if the search was exact.

    Attributes:
        first: rows ``(links,)``; between two lists, of the first one.
        second: rows ``(links,)``, larger than ``first`` in one list.
        scores: cosines ``(links,)``.
        beyond: of each row the highest cosine of a link that may have been left out, minus infinity if none was
            ``(rows,)``. A link is left out at both its ends.
        floor: lowest cosine.
        recall: share of the links of sampled rows that were found, NaN if these have none; ``None`` if the search was
            exact.
        sampled: how many links these were.
    """

    first: Indices
    second: Indices
    scores: Scores
    beyond: Scores
    floor: float
    recall: float | None = None
    sampled: int = 0


def share_found(recall: float | None, sampled: int, pairs: str) -> str:
    """Return in words, to follow others, which share of the pairs a search found; nothing if it was exact."""
    if recall is None:
        return ""
    if not sampled:
        return f"; which share of the {pairs} was found is not known, since no sampled row has any"
    return f"; of {sampled} sampled {pairs}, {100 * recall:.1f} % were found"


class _Closest:
    """The links gathered so far, the closest of each row."""

    def __init__(self, rows: int, most: int) -> None:
        self._most = most
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        self._pool: list[tuple[Indices, Indices, npt.NDArray[np.floating]]] = [nothing]
        self._waiting = 0
        self._least = np.full(rows, -np.inf)  # a link at or below it is not among the closest of a row
        self.beyond = np.full(rows, -np.inf)

    def hopeful(self, near: Near, slack: float) -> Near:
        """Return the pairs that may be among the closest of a row; scores may err by ``slack``."""
        scores = np.minimum(near.scores, 1.0)
        chosen = (scores > self._least[near.first]) | (scores > self._least[near.second])
        self._leave_out(near.take(~chosen), slack)
        near = near.take(chosen)
        if len(near.scores) > POOL // 8:
            chosen = _among_closest(near, self._most)[0]
            self._leave_out(near.take(~chosen), slack)
            near = near.take(chosen)
        return near

    def add(self, near: Near, scores: Scores) -> None:
        """Take links with their exact scores."""
        self._pool.append((near.first, near.second, scores))
        self._waiting += len(scores)
        if self._waiting >= POOL:
            self.choose()

    def choose(self) -> Near:
        """Keep the closest links of each row; return them, with exact scores."""
        first, second, scores = (np.concatenate(column) for column in zip(*self._pool, strict=True))
        links = Near(first, second, scores)
        chosen, full, least = _among_closest(links, self._most)
        self._least[full] = least
        self._leave_out(links.take(~chosen), 0.0)
        links = links.take(chosen)
        self._pool, self._waiting = [(links.first, links.second, links.scores)], 0
        return links

    def _leave_out(self, near: Near, slack: float) -> None:
        for ends in (near.first, near.second):
            np.maximum.at(self.beyond, ends, near.scores + slack)


def _among_closest(links: Near, most: int) -> tuple[npt.NDArray[np.bool_], Indices, Scores]:
    """Return which links are among the ``most`` closest of either end, and the rows that have so many, with the last.

    Of links that tie, those to lower rows come first.
    """
    ends = np.concatenate([links.first, links.second])
    neighbours = np.concatenate([links.second, links.first])
    scores = np.concatenate([links.scores, links.scores])
    order = np.lexsort((neighbours, -scores, ends))
    starts = np.flatnonzero(np.diff(ends[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    chosen = np.zeros(len(links.scores), dtype=bool)
    chosen[order[rank < most] % max(1, len(chosen))] = True
    last = order[rank == most - 1]
    return chosen, ends[last], scores[last]


def exact_links(vectors: Embeddings, floor: float, *, most: int = LINKS_PER_ROW) -> Links:
    """Compare every row ``(rows, dim)`` with every other; ModelError for one that is not finite or all zeros."""
    return _links(near_pairs(vectors, lambda: floor), vectors, floor, most)


def approximate_links(vectors: Embeddings, floor: float, *, most: int = LINKS_PER_ROW) -> Links:
    """Compare each unit row ``(rows, dim)`` with those of the lists closest to it; the recall is measured."""
    lists = make_lists(vectors, vectors, floor, most)
    reached = _links(near_in_lists(lists, floor), vectors, floor, most)
    return replace(reached, recall=lists.recall, sampled=lists.sampled)


def _links(found: Iterable[Near], vectors: Embeddings, floor: float, most: int) -> Links:
    """Return those of the pairs that reach the floor, the closest of each row."""
    closest = _Closest(len(vectors), most)
    slack = margin(vectors.shape[1]) if vectors.ndim == 2 else 0.0
    for near in found:
        for block in parts(closest.hopeful(near, slack)):
            scores = pair_cosines(vectors, block)
            above = scores >= floor
            closest.add(block.take(above), scores[above])
    links = closest.choose()
    links = links.take(np.lexsort((links.second, links.first)))
    return Links(links.first, links.second, np.asarray(links.scores, dtype=np.float64), closest.beyond, floor)
