"""Approximate search for large collections: an HNSW graph (usearch), with its recall measured against exact search.

Source: Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using Hierarchical Navigable Small
World graphs (2018).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.errors import DataError, MissingExtraError
from samesense.inference.search.exact import Best, Block, nearest, unit_rows
from samesense.types import Embeddings, Scores

CONNECTIVITY = 16
"""Number of neighbours of a row in the graph; HNSW's M."""

EXPANSION_BUILD = 128
"""Number of candidates examined when a row is added; HNSW's ef_construction."""

EXPANSIONS = (64, 128, 256, 512, 1024)
"""Numbers of candidates examined in a search (HNSW's ef); the first that reaches the target recall is used."""

QUERIES = 200
"""Number of rows on which recall is measured."""

Rows = Callable[[npt.NDArray[np.intp]], npt.NDArray[np.floating]]
"""Returns the vectors of row numbers."""


def has_usearch() -> bool:
    """Return whether usearch is installed."""
    return importlib.util.find_spec("usearch") is not None


def check_usearch() -> None:
    """Raise MissingExtraError if usearch is not installed."""
    if not has_usearch():
        raise MissingExtraError("usearch", "search")


class Graph:
    """An HNSW graph over rows numbered from 0; a saved graph is memory-mapped.

    A search examines ``expansion`` candidates: more give a higher recall and take longer.
    """

    def __init__(self, index: Any, expansion: int, threads: int = 0) -> None:
        self._index = index
        self._threads = threads
        self.expansion = expansion

    @classmethod
    def build(cls, blocks: Iterable[Block], dim: int, *, threads: int = 0) -> Graph:
        """Return a new graph of the rows of the blocks, numbered in their order, in bfloat16.

        ``threads`` is 0 for all cores; with 1 the graph is deterministic.
        """
        check_usearch()
        # Of an extra; exact search does not need it.
        from usearch.index import Index

        index = Index(
            ndim=dim,
            # The inner product of unit rows is their cosine, and takes less time.
            metric="ip",
            # Half of the space and of the time of float32; scores are computed from the vectors. Eight bits take less,
            # but cannot tell the rows of a narrow cone apart (recall 0.90 at mean cosine 0.8).
            dtype="bf16",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_BUILD,
        )
        count = 0
        for ids, vectors in blocks:
            keys = np.arange(count, count + len(ids), dtype=np.uint64)
            index.add(keys, unit_rows(vectors), threads=threads)
            count += len(ids)
        return cls(index, EXPANSIONS[0], threads)

    @classmethod
    def open(cls, path: Path, expansion: int, rows: int) -> Graph:
        """Open a saved graph."""
        check_usearch()
        from usearch.index import Index

        if not path.is_file():
            raise FileNotFoundError(path)
        try:
            index = Index.restore(str(path), view=True)
        except (ValueError, RuntimeError, OSError) as error:
            raise _damaged(path, str(error)) from error
        if index is None or len(index) != rows:
            raise _damaged(path, f"it holds {0 if index is None else len(index)} of {rows} rows")
        return cls(index, expansion)

    def save(self, path: Path) -> None:
        """Write the graph to a file."""
        self._index.save(str(path))

    def search(self, queries: Embeddings, count: int) -> list[npt.NDArray[np.intp]]:
        """Return for each unit row of ``queries`` approximately the nearest ``count`` rows, in no particular order."""
        self._index.expansion_search = self.expansion
        matches = self._index.search(queries, count, threads=self._threads)
        # For one query usearch returns its matches without the axis of queries.
        if queries.shape[0] == 1:
            return [np.asarray(matches.keys, dtype=np.intp).reshape(-1)]
        # usearch pads the rows of queries with fewer matches.
        return [
            np.asarray(keys[:length], dtype=np.intp)
            for keys, length in zip(matches.keys, matches.counts.tolist(), strict=True)
        ]


def _damaged(path: Path, what: str) -> DataError:
    return DataError(
        f"The approximate index {path} cannot be read: {what}. Rebuild it: samesense index compact "
        f"{quote(str(path.parent))}"
    )


def neighbours(
    queries: Embeddings, blocks: Callable[[], Iterable[Block]], sample: npt.NDArray[np.intp]
) -> list[Scores]:
    """Return for each query the scores of its ten nearest other rows, in order, by exact search.

    Queries are unit rows ``(sample, dim)``, ``sample`` their row numbers.
    """
    # Ten and the row itself.
    best = [Best(11) for _ in sample]
    nearest(queries, blocks, best, 11)
    return [closest.scores[closest.ids != row][:10] for closest, row in zip(best, sample, strict=True)]


def measure_recall(
    graph: Graph, rows: Rows, queries: Embeddings, sample: npt.NDArray[np.intp], truth: list[Scores]
) -> float:
    """Return recall@10: the share of the ten nearest neighbours that the graph finds, over all queries.

    A row counts as a hit if its score reaches that of the last true neighbour, so that ties are no misses. Queries are
    unit rows ``(sample, dim)``, ``sample`` their row numbers; for ``truth`` see :func:`neighbours`.
    """
    hits = total = 0
    for query, row, true, near_rows in zip(queries, sample, truth, graph.search(queries, 11), strict=True):
        if not len(true):
            raise DataError("Recall is defined for two rows or more; received one.")
        # The search finds the row itself as well.
        neighbour_rows = near_rows[near_rows != row]
        scores = np.zeros(0)
        if len(neighbour_rows):
            # Where the graph has missed the row itself, there is one row too many.
            scores = np.sort(row_cosines(query[None], rows(neighbour_rows)))[::-1][:10]
        # With ties, more rows than the true ones may reach the last score.
        hits += min(len(true), int((scores >= true[-1]).sum()))
        total += len(true)
    return hits / total


def tune(
    graph: Graph, rows: Rows, blocks: Callable[[], Iterable[Block]], total: int, target_recall: float
) -> tuple[float, int]:
    """Widen the graph's search until its recall@10 reaches the target, if any width does.

    Returns the recall and the number of queries. These, at most ``QUERIES``, are sampled from the rows, the same ones
    for the same number of rows.
    """
    sample = np.sort(np.random.default_rng(0).choice(total, size=min(QUERIES, total), replace=False))
    queries = unit_rows(rows(sample))
    truth = neighbours(queries, blocks, sample)
    recall = 0.0
    for expansion in EXPANSIONS:
        graph.expansion = expansion
        recall = measure_recall(graph, rows, queries, sample, truth)
        if recall >= target_recall:
            break
    return recall, len(sample)
