"""Near pairs of many rows without comparing all: each row is compared with those of the few lists closest to it.

Rows that are near the same centre are in one list. Products of blocks do the work, so that to look for all rows at once
takes less time than to build a graph of neighbours, see benchmarks/LOG.md.

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
from samesense.inference.search.exact import BLOCK_ROWS, Best, Block, margin, nearest, unit_rows
from samesense.inference.search.mining import Near
from samesense.types import Embeddings, Indices

PROBES = (4, 8, 16, 32)
"""Lists a row is looked for in; the first that reaches the recall wanted is taken."""

WANTED = 0.98
"""Share of the links of a sample that is to be found."""

SAMPLE = 1000
"""Rows on which it is measured."""

ENOUGH = 50
"""Links of these rows with which the share says something; with fewer, each row is looked for in most lists."""

ROUNDS, ROWS_A_LIST = 4, 32
"""Of k-means, and the rows of a list that it is made from."""


@dataclass(frozen=True)
class Lists:
    """Rows and the lists in which they are, and are looked for.

    Attributes:
        queries: rows that are looked for ``(queries, dim)``.
        probes: of each the closest lists, the closest first ``(queries, probes)``.
        targets: rows that are found ``(targets, dim)``.
        homes: of each its list ``(targets,)``.
        same: queries and targets are the same rows.
        recall: share of the links of sampled queries that are found, NaN if these have none.
        sampled: how many links these were.
    """

    queries: Embeddings
    probes: npt.NDArray[np.int32]
    targets: Embeddings
    homes: npt.NDArray[np.int32]
    same: bool
    recall: float
    sampled: int


def make_lists(queries: Embeddings, targets: Embeddings, floor: float, most: int) -> Lists:
    """Put unit rows ``(targets, dim)`` into lists, and find in how many of them each query must be looked for.

    That is measured on :data:`SAMPLE` queries: the share of their links, up to ``most`` each, with a cosine at the
    ``floor`` or above that are found; fewer than :data:`ENOUGH` links say too little. Queries that are the targets
    themselves are given as the same object. The outcome is the same each time.
    """
    same = queries is targets
    count = int(max(1, min(np.sqrt(8 * len(targets)), len(targets) / 8)))
    centres = _centres(targets, count)
    probes = _closest(queries, centres, min(PROBES[-1], count))
    homes = probes[:, 0].copy() if same else _closest(targets, centres, 1)[:, 0]
    sample = np.sort(np.random.default_rng(0).choice(len(queries), size=min(SAMPLE, len(queries)), replace=False))
    best = [Best(most + same) for _ in sample]
    nearest(queries[sample], lambda: blocks(targets), best, most + same)
    different = [(closest.ids != row) | (not same) for row, closest in zip(sample, best, strict=True)]
    true = [
        closest.ids[(closest.scores >= floor) & not_self] for closest, not_self in zip(best, different, strict=True)
    ]
    first, second = np.repeat(sample, [len(ids) for ids in true]), np.concatenate(true)
    used, recall = 0, np.nan
    for used in PROBES:
        hits = _meets(probes[first, :used], homes[second])
        if same:
            hits |= _meets(probes[second, :used], homes[first])
        recall = float(hits.mean()) if len(hits) else np.nan
        if used >= count or (len(hits) >= ENOUGH and recall >= WANTED):
            break
    return Lists(queries, probes[:, :used].copy(), targets, homes, same, recall, len(first))


def _meets(probes: npt.NDArray[np.int32], homes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    hits: npt.NDArray[np.bool_] = (probes == homes[:, None]).any(axis=1)
    return hits


def near_in_lists(lists: Lists, floor: float) -> Iterator[Near]:
    """Yield the pairs of a query and a target, each once, whose cosine may reach the floor, as far as lists tell."""
    of_list = np.argsort(lists.homes, kind="stable")
    ends = np.searchsorted(lists.homes[of_list], np.arange(lists.homes.max(initial=-1) + 2))
    by_list = np.argsort(lists.probes, axis=None, kind="stable")
    stops = np.searchsorted(lists.probes.ravel()[by_list], np.arange(len(ends)))
    slack = margin(lists.targets.shape[1])
    with progress_bar("neighbours", "list", len(ends) - 1, leave=False) as bar:
        for number in range(len(ends) - 1):
            here = np.sort(by_list[stops[number] : stops[number + 1]] // lists.probes.shape[1])
            members = of_list[ends[number] : ends[number + 1]]
            for rows in _parts(members):
                right = lists.targets[rows]
                for queries in _parts(here):
                    scores = lists.queries[queries] @ right.T
                    query_rows, target_rows = np.nonzero(scores >= floor - slack)
                    near = Near(queries[query_rows], rows[target_rows], scores[query_rows, target_rows])
                    yield _once(lists, near) if lists.same else near
            bar.update(1)


def _once(lists: Lists, near: Near) -> Near:
    """Return the pairs with the lower row first, without those of a row with itself or found from both ends."""
    twice = (near.first > near.second) & _meets(lists.probes[near.second], lists.homes[near.first])
    near = near.take((near.first != near.second) & ~twice)
    return Near(np.minimum(near.first, near.second), np.maximum(near.first, near.second), near.scores)


def blocks(vectors: Embeddings) -> Iterator[Block]:
    """Yield the rows with their numbers, some at a time."""
    for start in range(0, len(vectors), BLOCK_ROWS):
        rows = vectors[start : start + BLOCK_ROWS]
        yield np.arange(start, start + len(rows)), rows


def _parts(rows: Indices) -> Iterator[Indices]:
    for start in range(0, len(rows), BLOCK_ROWS):
        yield rows[start : start + BLOCK_ROWS]


def _centres(vectors: Embeddings, count: int) -> Embeddings:
    """Return the centres of lists ``(count, dim)``, by spherical k-means on a sample."""
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(len(vectors), size=min(len(vectors), count * ROWS_A_LIST), replace=False))
    sample = vectors[rows]
    centres = sample[np.sort(random.choice(len(sample), size=count, replace=False))]
    for _ in range(ROUNDS):
        homes = _closest(sample, centres, 1, "")[:, 0]
        sums = np.zeros_like(centres)
        np.add.at(sums, homes, sample)
        held = np.linalg.norm(sums, axis=1) > 0
        centres[held] = unit_rows(sums[held])
    return centres


def _closest(vectors: Embeddings, centres: Embeddings, count: int, desc: str = "lists") -> npt.NDArray[np.int32]:
    """Return for each row the ``count`` closest centres, the closest first ``(rows, count)``."""
    found = np.empty((len(vectors), count), dtype=np.int32)
    with progress_bar(desc, "row", len(vectors), leave=False, inner=not desc) as bar:
        for ids, rows in blocks(vectors):
            scores = rows @ centres.T
            if count < len(centres):
                some = np.argpartition(-scores, count - 1, axis=1)[:, :count]
            else:
                some = np.broadcast_to(np.arange(count), scores.shape)
            order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
            found[ids] = np.take_along_axis(some, order, axis=1)
            bar.update(len(ids))
    return found
