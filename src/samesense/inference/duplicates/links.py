"""Pairs of rows that are close, the closest of each row, so that any higher threshold can be set without a new search.

Memory grows with the rows, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from samesense.execution.progress import progress_bar
from samesense.inference.search.exact import Best, Block, Ids, margin, nearest, unit_rows
from samesense.inference.search.hnsw import Graph, tune
from samesense.inference.search.mining import Near, near_pairs, pair_cosines, parts
from samesense.types import Scores

Vectors = npt.NDArray[np.floating]

MOST = 32
"""Links kept of a row: its closest. A link is kept if it is among these of either end."""

POOL = 2_000_000
"""Links gathered, beside those that are kept, before the closest are chosen again."""

WANTED = 0.95
"""Recall@10 up to which a graph's search is widened."""

SAMPLE = 1000
"""Rows on which the recall of links is measured."""

HALF = 0.01
"""By how much cosines of a graph in half precision may err, with room to spare."""

BLOCK = 4096
"""Rows read, and looked for, at once."""


@dataclass(frozen=True)
class Links:
    """Pairs of rows with a cosine at the floor or above, each once.

    Of a row the closest :data:`MOST` are there for certain, if the search was exact.

    Attributes:
        first: rows ``(links,)``; between two lists, of the first one.
        second: rows ``(links,)``, larger than ``first`` in one list.
        scores: cosines ``(links,)``.
        beyond: of each row the highest cosine of a link that may have been left out, minus infinity if none was
            ``(rows,)``. A link is left out at both its ends.
        floor: lowest cosine.
        recall: share of the links of sampled rows that were found; ``None`` if the search was exact.
        sampled: how many rows these were.
    """

    first: Ids
    second: Ids
    scores: Scores
    beyond: Scores
    floor: float
    recall: float | None = None
    sampled: int = 0


class _Closest:
    """The links gathered so far, the closest of each row."""

    def __init__(self, rows: int, most: int) -> None:
        self._most = most
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        self._pool: list[tuple[Ids, Ids, npt.NDArray[np.floating]]] = [nothing]
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
        first, second, scores = (np.concatenate(part) for part in zip(*self._pool, strict=True))
        links = Near(first, second, scores)
        links = links.take(np.unique(links.first * len(self._least) + links.second, return_index=True)[1])
        chosen, full, least = _among_closest(links, self._most)
        self._least[full] = least
        self._leave_out(links.take(~chosen), 0.0)
        links = links.take(chosen)
        self._pool, self._waiting = [(links.first, links.second, links.scores)], 0
        return links

    def _leave_out(self, near: Near, slack: float) -> None:
        for ends in (near.first, near.second):
            np.maximum.at(self.beyond, ends, near.scores + slack)


def _among_closest(links: Near, most: int) -> tuple[npt.NDArray[np.bool_], Ids, Scores]:
    """Return which links are among the ``most`` closest of either end, and the rows that have so many, with the last.

    Of links that tie, those to lower rows come first.
    """
    ends = np.concatenate([links.first, links.second])
    others = np.concatenate([links.second, links.first])
    scores = np.concatenate([links.scores, links.scores])
    order = np.lexsort((others, -scores, ends))
    starts = np.flatnonzero(np.diff(ends[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    chosen = np.zeros(len(links.scores), dtype=bool)
    chosen[order[rank < most] % max(1, len(chosen))] = True
    last = order[rank == most - 1]
    return chosen, ends[last], scores[last]


def exact_links(vectors: Vectors, floor: float, *, most: int = MOST) -> Links:
    """Compare every row ``(rows, dim)`` with every other; ModelError for one that is not finite or all zeros."""
    closest = _Closest(len(vectors), most)
    slack = margin(vectors.shape[1]) if vectors.ndim == 2 else 0.0
    for near in near_pairs(vectors, lambda: floor):
        for part in parts(closest.hopeful(near, slack)):
            _take(closest, vectors, part, floor)
    return _finished(closest, floor)


def _take(closest: _Closest, vectors: Vectors, near: Near, floor: float) -> None:
    scores = pair_cosines(vectors, near)
    kept = scores >= floor
    closest.add(near.take(kept), scores[kept])


def _finished(closest: _Closest, floor: float, recall: float | None = None, sampled: int = 0) -> Links:
    links = closest.choose()
    order = np.lexsort((links.second, links.first))
    first, second, scores = links.take(order)
    return Links(first, second, np.asarray(scores, dtype=np.float64), closest.beyond, floor, recall, sampled)


def approximate_links(vectors: Vectors, floor: float, *, most: int = MOST, threads: int = 0) -> Links:
    """Ask a graph of neighbours for those of each row ``(rows, dim)``; scores are exact.

    Its search is widened until it finds :data:`WANTED` of the ten nearest rows of a sample. The share of links that
    was found is measured on :data:`SAMPLE` rows. ``threads`` is 0 for all cores; with 1 the outcome is the same each
    time.
    """
    graph = graph_of(vectors, threads=threads)
    closest = _Closest(len(vectors), most)
    for ids, found, scores in asked(graph, vectors, most + 1, "neighbours"):
        hopeful = (scores >= floor - HALF) & (found >= 0) & (found != ids[:, None])
        crowded = hopeful.sum(axis=1) >= most  # there may be more
        closest.beyond[ids[crowded]] = np.where(hopeful, scores, 1.0).min(axis=1)[crowded] + HALF
        row, _ = np.nonzero(hopeful)
        first, second = ids[row], found[hopeful]
        near = Near(np.minimum(first, second), np.maximum(first, second), scores[hopeful])
        for part in parts(near):
            _take(closest, vectors, part, floor)
    return _measured(_finished(closest, floor), vectors, most)


def graph_of(vectors: Vectors, *, threads: int = 0) -> Graph:
    """Return a graph of neighbours of the rows ``(rows, dim)``, in half precision, with its search tuned."""
    graph = Graph.build(blocks(vectors, "graph"), vectors.shape[1], half=True, threads=threads)
    tune(graph, lambda some: vectors[some], lambda: blocks(vectors), len(vectors), WANTED)
    return graph


def asked(
    graph: Graph, vectors: Vectors, count: int, desc: str
) -> Iterator[tuple[Ids, npt.NDArray[np.intp], npt.NDArray[np.float32]]]:
    """Yield, some rows at a time, their numbers, and what :meth:`Graph.scored` says of them."""
    for ids, rows in blocks(vectors, desc):
        yield ids, *graph.scored(unit_rows(rows), count)


def blocks(vectors: Vectors, desc: str = "") -> Iterator[Block]:
    """Yield the rows with their numbers, some at a time; a progress bar shows it if it has a name."""
    bar = progress_bar(desc, "row", len(vectors), leave=False) if desc else None
    for start in range(0, len(vectors), BLOCK):
        rows = vectors[start : start + BLOCK]
        yield np.arange(start, start + len(rows)), rows
        if bar is not None:
            bar.update(len(rows))
    if bar is not None:
        bar.close()


def _measured(links: Links, vectors: Vectors, most: int) -> Links:
    """Return the links with their recall: how many of the true ones of sampled rows were found."""
    sample = sampled(len(vectors))
    best = [Best(most + 1) for _ in sample]
    nearest(unit_rows(vectors[sample]), lambda: blocks(vectors), best, most + 1)
    others = [one.scores[one.ids != row] for row, one in zip(sample, best, strict=True)]
    true = [scores[scores >= links.floor][:most] for scores in others]
    ends, scores = np.concatenate([links.first, links.second]), np.concatenate([links.scores, links.scores])
    return replace(links, recall=share_found(ends, scores, sample, true), sampled=len(sample))


def sampled(rows: int) -> Ids:
    """Return the rows on which the recall of links is measured, ascending."""
    return np.sort(np.random.default_rng(0).choice(rows, size=min(SAMPLE, rows), replace=False))


def share_found(ends: Ids, scores: Scores, sample: Ids, true: list[Scores]) -> float:
    """Return how many of the true links of sampled rows were found, 1 if there are none.

    A found link counts if its score reaches that of the last true one, so that ties are no misses.

    Args:
        ends: the rows at one end of the links that were found ``(links,)``.
        scores: of these links ``(links,)``.
        sample: the rows, ascending.
        true: of each of them the scores of its true links, descending.
    """
    order = np.argsort(ends, kind="stable")
    starts, stops = (np.searchsorted(ends[order], sample, side) for side in ("left", "right"))
    hits = wanted = 0
    for its, start, stop in zip(true, starts, stops, strict=True):
        found = scores[order[start:stop]]
        wanted += len(its)
        hits += min(len(its), int((found >= its[-1]).sum())) if len(its) else 0
    return hits / wanted if wanted else 1.0
