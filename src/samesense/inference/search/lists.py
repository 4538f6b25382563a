"""Near pairs of many rows by inverted lists (IVF): each row is compared with the rows of the few closest lists.

Rows that are near the same centre form a list. The work is done by products of blocks, so that searching for all rows
at once takes less time than building an HNSW graph, see benchmarks/LOG.md.

Source: Sivic and Zisserman, Video Google: A Text Retrieval Approach to Object Matching in Videos (2003), for inverted
lists of centres; Jegou, Douze and Schmid, Product Quantization for Nearest Neighbor Search (2011), section IV, for
several lists a query.
Differs: vectors are compared as they are, without quantization.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.execution.progress import progress_bar
from samesense.inference.search.exact import BLOCK_ROWS, Best, Block, margin, nearest, positions_from, unit_rows
from samesense.inference.search.mining import Near
from samesense.types import Embeddings, Indices

PROBES = (4, 8, 16, 32)
"""Numbers of lists that a query searches; the first that reaches the target recall is used."""

WANTED = 0.98
"""Target recall, on the links of a sample."""

SAMPLE = 1000
"""Number of rows on which recall is measured."""

ENOUGH = 50
"""Least number of links for a measurement of recall; with fewer, the largest number of lists is searched."""

ROUNDS = 4
"""Iterations of k-means."""

ROWS_A_LIST = 32
"""Sampled rows for k-means, for each list."""

RANGE_PAIRS = 2**28
"""Pairs of rows compared in a range of lists, a few seconds of work; a longer list is a range of its own."""

INVERTED_ROWS = 2**18
"""Rows whose lists are inverted at once."""


@dataclass(frozen=True)
class RowsOfLists:
    """The rows of each list.

    Attributes:
        rows: row numbers, list after list, ascending within a list ``(entries,)``.
        starts: for each list the position of its first entry in ``rows``, and at the end their number ``(lists + 1,)``.
    """

    rows: npt.NDArray[np.integer]
    starts: Indices

    def of_list(self, number: int) -> Indices:
        """Return the rows of a list, ascending."""
        return self.of_lists(range(number, number + 1))

    def of_lists(self, numbers: range) -> Indices:
        """Return the rows of a range of lists, list after list."""
        return self.rows[self.starts[numbers.start] : self.starts[numbers.stop]].astype(np.int64)

    @property
    def sizes(self) -> Indices:
        """Number of rows of each list ``(lists,)``."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class Lists:
    """Queries, targets, and the lists that they belong to.

    Attributes:
        queries: query rows ``(queries, dim)``.
        probes: the lists that each query searches, the closest first ``(queries, probes)``.
        targets: target rows ``(targets, dim)``.
        homes: the list of each target ``(targets,)``.
        probing: the queries that search each list.
        members: the targets of each list.
        same: queries and targets are the same rows.
        recall: share of the links of sampled queries that are found, NaN if these have none.
        sampled: number of links of the sampled queries.
    """

    queries: Embeddings
    probes: npt.NDArray[np.int32]
    targets: Embeddings
    homes: npt.NDArray[np.int32]
    probing: RowsOfLists
    members: RowsOfLists
    same: bool
    recall: float
    sampled: int


def make_lists(queries: Embeddings, targets: Embeddings, floor: float, most: int) -> Lists:
    """Return unit rows ``(targets, dim)`` in lists, and the number of lists that each query must search.

    The number is chosen by :func:`choose_probes`. Queries that are the targets themselves must be given as the same
    object. The result is deterministic.
    """
    centres = list_centres(targets)
    probes = closest_lists(queries, centres, PROBES[-1])
    if queries is targets:
        # A copy, as a view would keep all probes in memory.
        homes = probes[:, 0].copy()
    else:
        homes = closest_lists(targets, centres, 1)[:, 0]
    return choose_probes(queries, probes, targets, homes, floor, most)


def choose_probes(
    queries: Embeddings,
    probes: npt.NDArray[np.int32],
    targets: Embeddings,
    homes: npt.NDArray[np.int32],
    floor: float,
    most: int,
) -> Lists:
    """Return the lists with the lowest number of :data:`PROBES` that reaches the recall :data:`WANTED`.

    Recall is measured on :data:`SAMPLE` queries: the share of their links that are found, where a link has a cosine at
    the ``floor`` or above, up to ``most`` each. ``probes`` are the closest lists of each query, more than needed; the
    arguments are otherwise those of :class:`Lists`.
    """
    same = queries is targets
    sample = np.sort(np.random.default_rng(0).choice(len(queries), size=min(SAMPLE, len(queries)), replace=False))
    # One more where a row finds itself, which is no link.
    best = [Best(most + same) for _ in sample]
    nearest(queries[sample], lambda: blocks(targets), best, most + same)
    different = [(closest.ids != row) | (not same) for row, closest in zip(sample, best, strict=True)]
    true = [
        closest.ids[(closest.scores >= floor) & not_self] for closest, not_self in zip(best, different, strict=True)
    ]
    first = np.repeat(sample, [len(ids) for ids in true])
    second = np.concatenate(true)
    used = 0
    recall = np.nan
    for used in PROBES:
        hits = _meets(probes[first, :used], homes[second])
        if same:  # a pair is found from either end
            hits |= _meets(probes[second, :used], homes[first])
        recall = float(hits.mean()) if len(hits) else np.nan
        # Fewer sampled links than ENOUGH say little about the recall: the next step is taken.
        if used >= probes.shape[1] or (len(hits) >= ENOUGH and recall >= WANTED):
            break
    count = int(max(probes.max(initial=-1), homes.max(initial=-1))) + 1
    return Lists(
        queries=queries,
        probes=probes[:, :used].copy(),
        targets=targets,
        homes=homes,
        probing=invert(probes[:, :used], count),
        members=invert(homes[:, None], count),
        same=same,
        recall=recall,
        sampled=len(first),
    )


def invert(table: npt.NDArray[np.int32], count: int) -> RowsOfLists:
    """Return the rows of each of ``count`` lists from the lists of each row, ``(rows, lists of a row)``.

    Once for all lists, as looking for the rows of each range of lists would take time with the square of the rows.
    """
    sizes = np.zeros(count, dtype=np.int64)
    for start in range(0, len(table), INVERTED_ROWS):
        sizes += np.bincount(table[start : start + INVERTED_ROWS].ravel(), minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.empty(starts[-1], dtype=row_type(len(table)))
    free = starts[:-1].copy()  # position of the next row of each list
    for start in range(0, len(table), INVERTED_ROWS):
        names = table[start : start + INVERTED_ROWS].ravel()
        order = np.argsort(names, kind="stable")
        counts = np.bincount(names, minlength=count)
        # The entries of a list follow each other in this order, and get its next positions.
        within_list = np.arange(len(names)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows[np.repeat(free, counts) + within_list] = start + order // table.shape[1]
        free += counts
    return RowsOfLists(rows, starts)


def row_type(rows: int) -> str:
    """Return the smallest type of the numbers of so many rows."""
    return "int32" if rows < 2**31 else "int64"


def cut_lists(lists: Lists) -> list[range]:
    """Return all lists in ranges of about :data:`RANGE_PAIRS` compared pairs each, in order."""
    pairs = lists.probing.sizes * lists.members.sizes
    # Lists belong to the range in which their first pair falls.
    numbers = (np.cumsum(pairs) - pairs) // RANGE_PAIRS
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(pairs)], strict=True)]


def _meets(probes: npt.NDArray[np.int32], homes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which homes are among the probed lists ``(rows,)``."""
    hits: npt.NDArray[np.bool_] = (probes == homes[:, None]).any(axis=1)
    return hits


def range_by_range(lists: Lists) -> Iterator[range]:
    """Yield the ranges of :func:`cut_lists`, with a progress bar."""
    ranges = cut_lists(lists)
    with progress_bar("neighbours", "list", sum(map(len, ranges)), leave=False) as bar:
        for numbers in ranges:
            yield numbers
            bar.update(len(numbers))


def near_in_lists(lists: Lists, floor: float, numbers: range) -> Iterator[Near]:
    """Yield the pairs of a query and a target in a probed list whose cosine may reach the floor, of a range of lists.

    Over all ranges each pair is yielded once.
    """
    slack = margin(lists.targets.shape[1])
    for number in numbers:
        list_queries = lists.probing.of_list(number)
        for rows in _row_blocks(lists.members.of_list(number)):
            right = lists.targets[rows]
            for queries in _row_blocks(list_queries):
                scores = lists.queries[queries] @ right.T
                query_rows, target_rows = positions_from(scores, floor - slack)
                near = Near(queries[query_rows], rows[target_rows], scores[query_rows, target_rows])
                yield _once(lists, near) if lists.same else near


def _once(lists: Lists, near: Near) -> Near:
    """Return the pairs with the lower row first; those found from both ends once, those of a row with itself not."""
    twice = (near.first > near.second) & _meets(lists.probes[near.second], lists.homes[near.first])
    near = near.take((near.first != near.second) & ~twice)
    return Near(np.minimum(near.first, near.second), np.maximum(near.first, near.second), near.scores)


def blocks(vectors: Embeddings) -> Iterator[Block]:
    """Yield the rows with their numbers, block by block."""
    for start in range(0, len(vectors), BLOCK_ROWS):
        rows = vectors[start : start + BLOCK_ROWS]
        yield np.arange(start, start + len(rows)), rows


def _row_blocks(rows: Indices) -> Iterator[Indices]:
    for start in range(0, len(rows), BLOCK_ROWS):
        yield rows[start : start + BLOCK_ROWS]


def list_centres(vectors: Embeddings) -> Embeddings:
    """Return the centres of the lists of unit rows, ``(lists, dim)``, by spherical k-means on a sample."""
    # Lists of 8 rows or more; for many rows, about as many lists as rows in a list.
    count = int(max(1, min(np.sqrt(8 * len(vectors)), len(vectors) / 8)))
    random = np.random.default_rng(0)
    # Sorted, so that rows of a mapped file are read in order.
    rows = np.sort(random.choice(len(vectors), size=min(len(vectors), count * ROWS_A_LIST), replace=False))
    sample = vectors[rows]
    centres = sample[np.sort(random.choice(len(sample), size=count, replace=False))]
    for _ in range(ROUNDS):
        homes = closest_lists(sample, centres, 1, "")[:, 0]
        sums = np.zeros_like(centres)
        # Many rows share a list, and an indexed addition would count one of them.
        np.add.at(sums, homes, sample)
        nonempty = np.linalg.norm(sums, axis=1) > 0
        # An empty list keeps its centre.
        centres[nonempty] = unit_rows(sums[nonempty])
    return centres


def closest_lists(vectors: Embeddings, centres: Embeddings, count: int, desc: str = "lists") -> npt.NDArray[np.int32]:
    """Return for each row the ``count`` closest centres, or all if there are fewer, the closest first."""
    count = min(count, len(centres))
    closest = np.empty((len(vectors), count), dtype=np.int32)
    with progress_bar(desc, "row", len(vectors), leave=False, inner=not desc) as bar:
        for ids, rows in blocks(vectors):
            closest[ids] = _highest(rows @ centres.T, count)
            bar.update(len(ids))
    return closest


def _highest(scores: npt.NDArray[np.floating], count: int) -> Indices:
    """Return the columns of the ``count`` highest scores of each row ``(rows, columns)``, the highest first."""
    if count == 1:
        highest: Indices = scores.argmax(axis=1)
        return highest[:, None]
    columns = _candidates(scores, count)
    candidates = np.take_along_axis(scores, columns, axis=1)
    if count < columns.shape[1]:
        best = np.argpartition(-candidates, count - 1, axis=1)[:, :count]
        columns = np.take_along_axis(columns, best, axis=1)
        candidates = np.take_along_axis(candidates, best, axis=1)
    order = np.argsort(-candidates, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _candidates(scores: npt.NDArray[np.floating], count: int) -> Indices:
    """Return for each row of scores columns that include those of the ``count`` highest.

    Columns are in groups. The ``count`` highest scores are in the ``count`` groups of the highest maxima: a group
    outside has ``count`` maxima above all of its scores. Partitioning the maxima, and then the scores of these groups,
    takes a fraction of the time of partitioning whole rows.
    """
    rows, columns = scores.shape
    size = round((columns / count) ** 0.5)
    groups = columns // size
    if groups <= count:
        return np.broadcast_to(np.arange(columns), scores.shape)
    # Group g has the columns g, g + groups, g + 2 * groups, ..., so that a maximum is one of whole rows of numbers.
    maxima = scores[:, : groups * size].reshape(rows, size, groups).max(axis=1)
    nearest_groups = np.argpartition(-maxima, count - 1, axis=1)[:, :count]
    members = nearest_groups[:, None, :] + groups * np.arange(size)[:, None]
    ungrouped = np.arange(groups * size, columns)
    return np.concatenate([members.reshape(rows, -1), np.broadcast_to(ungrouped, (rows, len(ungrouped)))], axis=1)
