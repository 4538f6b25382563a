"""Links: pairs of close rows, limited to the closest of each row; a higher threshold then needs no new search.

Memory grows with the number of rows, not with the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from samesense.inference.search.exact import margin
from samesense.inference.search.lists import Lists, make_lists, near_in_lists, range_by_range, row_type
from samesense.inference.search.mining import Near, near_pairs, pair_blocks, pair_cosines
from samesense.types import Embeddings, Indices, Scores

LINKS_PER_ROW = 32
"""Number of links kept of a row: its closest. A link is kept if it is among these of either end."""

SORTED_LINKS = 2_000_000
"""Links whose closest are chosen at once, about; each is sorted at both of its ends."""

POOL = 2_000_000
"""Least number of new links collected before the closest are chosen again, and no fewer than there are already.

Choosing sorts all links: after a fixed number of new ones, its time would grow with the square of the links."""


@dataclass(frozen=True)
class Links:
    """Pairs of rows with a cosine at the floor or above, each once.

    After an exact search they contain the closest :data:`LINKS_PER_ROW` of each row.

    Attributes:
        first: rows ``(links,)``; between two lists, rows of the first list.
        second: rows ``(links,)``; in a single list larger than ``first``.
        scores: cosines ``(links,)``.
        beyond: for each row the highest cosine of a link that may have been left out, minus infinity if none was
            ``(rows,)``. A link that is left out counts at both its ends.
        floor: lowest cosine.
        recall: share of the links of sampled rows that were found, NaN if these have none; ``None`` if the search was
            exact.
        sampled: number of links of the sampled rows.
    """

    first: Indices
    second: Indices
    scores: Scores
    beyond: Scores
    floor: float
    recall: float | None = None
    sampled: int = 0


@dataclass(frozen=True)
class RangeLinks:
    """The links of a range of lists.

    Arrays have no entry for rows without a link, as there are many ranges, and each has few of the rows.

    Attributes:
        first: rows ``(links,)``, as in :class:`Links`.
        second: rows ``(links,)``.
        scores: cosines ``(links,)``.
        crowded: rows with a link that may have been left out, ascending ``(crowded,)``.
        beyond: the highest cosine of such a link of each ``(crowded,)``.
    """

    first: Indices
    second: Indices
    scores: Scores
    crowded: Indices
    beyond: Scores


def share_found(recall: float | None, sampled: int, pairs: str) -> str:
    """Return the end of a sentence on the share of the pairs that a search found; "" if it was exact."""
    if recall is None:
        return ""
    if not sampled:
        return f"; which share of the {pairs} was found is not known, since no sampled row has any"
    return f"; of {sampled} sampled {pairs}, {100 * recall:.1f} % were found"


class _Closest:
    """Collects links, and keeps the closest of each row."""

    def __init__(self, rows: int, most: int) -> None:
        self._most = most
        self._row_type = row_type(rows)
        self._pool = [Near(np.zeros(0, self._row_type), np.zeros(0, self._row_type), np.zeros(0))]
        self._waiting = 0
        self._chosen = 0
        self._least = np.full(rows, -np.inf)  # score of each row's last kept link; links up to it cannot enter
        self.beyond = np.full(rows, -np.inf)

    def hopeful(self, near: Near, slack: float) -> Near:
        """Return the pairs that may be among the closest of a row; their scores are accurate to ``slack``."""
        # Rounding may lift a score above 1, and so above the least of a row of equal texts.
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
        """Add links with their exact scores."""
        # Rows in half the bytes, as most of the memory is that of the pool.
        self._pool.append(Near(near.first.astype(self._row_type), near.second.astype(self._row_type), scores))
        self._waiting += len(scores)
        if self._waiting >= max(POOL, self._chosen):
            self.choose()

    def choose(self) -> Near:
        """Keep the closest links of each row; return them, with exact scores."""
        links = self._empty_pool()
        chosen, full, least = _among_closest(links, self._most)
        self._least[full] = least
        self._leave_out(links.take(~chosen), 0.0)
        links = links.take(chosen)
        self._pool = [links]
        self._waiting = 0
        self._chosen = len(links.scores)
        return links

    def _empty_pool(self) -> Near:
        """Take all links out of the pool, column by column, so that no more than one column is in memory twice."""
        columns = [list(column) for column in zip(*self._pool, strict=True)]
        self._pool = []
        return Near(*(np.concatenate(columns.pop(0)) for _ in Near._fields))

    def _leave_out(self, near: Near, slack: float) -> None:
        for ends in (near.first, near.second):
            # A row has several links that are left out, and an indexed assignment would keep one.
            np.maximum.at(self.beyond, ends, near.scores + slack)


def _among_closest(links: Near, most: int) -> tuple[npt.NDArray[np.bool_], Indices, Scores]:
    """Return which links are among the ``most`` closest of either end, ties to lower rows first.

    Also return the rows that have ``most`` links, and the score of the last one of each.
    """
    chosen = np.zeros(len(links.scores), dtype=bool)
    full = [np.zeros(0, dtype=np.int64)]
    least = [np.zeros(0)]
    # Part by part, as sorting takes several times the memory of what is sorted.
    rows = 1 + int(max(links.first.max(initial=-1), links.second.max(initial=-1)))
    rows_of_part = max(1, rows * SORTED_LINKS // max(1, len(chosen)))
    for start in range(0, rows, rows_of_part):
        at_first = np.flatnonzero((links.first >= start) & (links.first < start + rows_of_part))
        at_second = np.flatnonzero((links.second >= start) & (links.second < start + rows_of_part))
        ends = np.concatenate([links.first[at_first], links.second[at_second]])
        neighbours = np.concatenate([links.second[at_first], links.first[at_second]])
        number = np.concatenate([at_first, at_second])
        order = np.lexsort((neighbours, -links.scores[number], ends))
        starts = np.flatnonzero(np.diff(ends[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
        chosen[number[order[rank < most]]] = True
        last = order[rank == most - 1]
        full.append(ends[last])
        least.append(links.scores[number[last]])
    return chosen, np.concatenate(full), np.concatenate(least)


def exact_links(vectors: Embeddings, floor: float, *, most: int = LINKS_PER_ROW) -> Links:
    """Return the links of rows ``(rows, dim)``, comparing every pair; ModelError for a row not finite or all zeros."""
    pairs = near_pairs(vectors, lambda: floor)
    return _links(pairs, len(vectors), partial(pair_cosines, vectors), margin(vectors.shape[-1]), floor, most)


@dataclass(frozen=True)
class ListSearch:
    """A search in lists: between which rows, and which of their pairs become links. It can be pickled.

    Attributes:
        find: returns the links of a range of lists, at a floor or above, up to ``most`` of a row.
        merge: returns the links of all ranges, which come in the order of the lists, with the recall.
        most: number of links of a row.
        split: rows before this one are queries and the others are targets; ``None`` if all rows are both.
    """

    find: Callable[[Lists, range, float, int], RangeLinks]
    merge: Callable[[Iterable[RangeLinks], Lists, float, int], Links]
    most: int
    split: int | None = None

    def sides(self, vectors: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Return queries and targets of rows ``(rows, dim)``: the same object where all rows are both."""
        if self.split is None:
            return vectors, vectors
        return vectors[: self.split], vectors[self.split :]

    def links(self, vectors: Embeddings, floor: float) -> Links:
        """Return the links of unit rows ``(rows, dim)`` that are in close lists, with the measured recall."""
        lists = make_lists(*self.sides(vectors), floor, self.most)
        ranges = (self.find(lists, numbers, floor, self.most) for numbers in range_by_range(lists))
        return self.merge(ranges, lists, floor, self.most)


def list_search() -> ListSearch:
    """Return the search for links between the rows of one list of texts."""
    return ListSearch(links_in_lists, merge_links, LINKS_PER_ROW)


def links_in_lists(lists: Lists, numbers: range, floor: float, most: int) -> RangeLinks:
    """Return the links of a range of lists; a row has ``most`` links in each range."""
    # Numbered anew, as arrays of all rows for each range would take time with more than the square of the rows.
    rows = np.union1d(lists.probing.of_lists(numbers), lists.members.of_lists(numbers))

    def renumbered(near: Near) -> Near:
        return Near(np.searchsorted(rows, near.first), np.searchsorted(rows, near.second), near.scores)

    def cosines(near: Near) -> Scores:
        return pair_cosines(lists.targets, Near(rows[near.first], rows[near.second], near.scores))

    pairs = map(renumbered, near_in_lists(lists, floor, numbers))
    links = _links(pairs, len(rows), cosines, margin(lists.targets.shape[1]), floor, most)
    crowded = np.flatnonzero(links.beyond > -np.inf)
    return RangeLinks(rows[links.first], rows[links.second], links.scores, rows[crowded], links.beyond[crowded])


def merge_links(ranges: Iterable[RangeLinks], lists: Lists, floor: float, most: int) -> Links:
    """Return the links of all ranges of the lists, in the order of the lists, with their recall."""
    closest = _Closest(len(lists.targets), most)
    for links in ranges:
        closest.beyond[links.crowded] = np.maximum(closest.beyond[links.crowded], links.beyond)
        closest.add(Near(links.first, links.second, links.scores), links.scores)
    return replace(_sorted_links(closest, floor), recall=lists.recall, sampled=lists.sampled)


def _links(
    pairs: Iterable[Near], rows: int, cosines: Callable[[Near], Scores], slack: float, floor: float, most: int
) -> Links:
    """Return the pairs of ``rows`` rows whose exact cosine reaches the floor, limited to the closest of each row.

    The scores of ``pairs`` are accurate to ``slack``.
    """
    closest = _Closest(rows, most)
    for near in pairs:
        for block in pair_blocks(closest.hopeful(near, slack)):
            scores = cosines(block)
            above = scores >= floor
            closest.add(block.take(above), scores[above])
    return _sorted_links(closest, floor)


def _sorted_links(closest: _Closest, floor: float) -> Links:
    links = closest.choose()
    # One order for the links, in whichever order they were found.
    links = links.take(np.lexsort((links.second, links.first)))
    first, second = (rows.astype(np.int64) for rows in (links.first, links.second))
    return Links(first, second, np.asarray(links.scores, dtype=np.float64), closest.beyond, floor)
