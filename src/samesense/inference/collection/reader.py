"""Read a collection: one consistent state at a time, with memory-mapped vectors; search it by vectors and by words."""

from __future__ import annotations

import re
import threading
import unicodedata
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.errors import DataError
from samesense.inference.collection import store
from samesense.inference.collection.conditions import Condition, among
from samesense.inference.search.exact import Best, nearest
from samesense.inference.search.hnsw import Graph
from samesense.inference.search.ties import in_order, noise_of
from samesense.types import Embeddings, Indices

MOST_WORDS = 1000
"""Most distinct words of a query that are searched for; the time grows with the square of their number."""

REMEMBERED = 8
"""Number of conditions whose matching texts are cached, 16 bytes a text."""

SPARE = 16
"""Hits collected beyond the requested number, because ties are put in order afterwards."""

STEPS = 100_000
"""Instructions of SQLite, some milliseconds, between two checks whether to stop."""

RRF = 60
"""k of reciprocal rank fusion, by which a hybrid query merges its two lists."""

Hits = list[tuple[int, float]]
"""Ids and scores, the best first."""


class Reader:
    """Reads the current state of a collection, and caches what it has read; several threads take turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.RLock()
        self._connect()
        with self.state():
            pass  # raises if the collection cannot be read

    def _connect(self) -> None:
        with store.saying(self.folder):
            # Before connecting: a replacement in between is then noticed by the next read.
            state = store.state_of(self.folder)
            self.db = store.connect(self.folder)
        self._state = state
        self._closes = weakref.finalize(self, self.db.close)
        # No version is -1, so that the first use reads the description.
        self._version = -1

    def _reconnect(self) -> None:
        """Open the database that has replaced the open one; NoCollectionError if there is none."""
        if store.state_of(self.folder) is None:
            raise store.NoCollectionError(
                f"{self.folder} holds no collection any more; it was deleted or moved while it was open. "
                "Rebuild it, or put it back: it is then read again."
            )
        self._closes()
        self._connect()

    @contextmanager
    def state(self, *, with_graph: bool = False) -> Iterator[store.About]:
        """Hold one state of the collection while it is read."""
        with store.saying(self.folder), self.held(with_graph=with_graph) as about:
            yield about

    @contextmanager
    def held(self, *, with_graph: bool = False) -> Iterator[store.About]:
        """Hold one state as :meth:`state` does, but let errors of the caller's other work pass unchanged."""
        with self._lock:
            # The caller holds a state already, in this thread: the lock lets no other one in.
            if self.db.in_transaction:
                yield self.about
                return
            with store.saying(self.folder):
                self._begin(with_graph)
            try:
                yield self.about
            finally:
                # This only ends the read transaction.
                self.db.execute("COMMIT")

    @contextmanager
    def stopped_by(self, stop: threading.Event | None) -> Iterator[None]:
        """Interrupt a query of the database once ``stop`` is set; used inside :meth:`state`."""
        if stop is None:
            yield
            return
        # The query is interrupted once the handler returns true.
        self.db.set_progress_handler(stop.is_set, STEPS)
        try:
            yield
        finally:
            self.db.set_progress_handler(None, STEPS)

    def _begin(self, with_graph: bool) -> None:
        """Begin a read transaction, and once more if a writer has removed a file meanwhile."""
        if self._state != store.state_of(self.folder):
            self._reconnect()  # a database that was deleted can still be read, but is no longer the collection
        gone = ""
        while True:
            self.db.execute("BEGIN")
            try:
                return self._renew(with_graph)
            except FileNotFoundError as error:
                self.db.rollback()
                if str(error) == gone:  # the same file is missing in the new state too
                    raise DataError(f"The collection is damaged: {error}. Rebuild it from its texts.") from error
                gone = str(error)
            except BaseException:
                self.db.rollback()
                raise

    def _renew(self, with_graph: bool) -> None:
        """Read the description of the collection and map its files, if it has changed."""
        (version,) = self.db.execute("PRAGMA data_version").fetchone()  # changes when another connection commits
        if version != self._version:
            self.about = store.read_about(self.folder, self.db)
            self.vectors = self.about.map_vectors(self.folder)
            self._matching: dict[Condition, tuple[Indices, Indices]] = {}
            self._live_in_graph: int | None = None
            self.graph: Graph | None = None
            self._version = version
        if with_graph and self.about.graph and self.graph is None:
            path = self.folder / self.about.graph
            self.graph = Graph.open(path, self.about.expansion, self.about.graph_rows)

    def nearest(
        self, queries: Embeddings, top: int, chosen: Condition, exact: bool, texts: Sequence[str] | None
    ) -> list[Hits]:
        """Return for each unit row of ``queries`` the ``top`` nearest texts, by cosine.

        Among equal scores the query itself, given in ``texts``, comes first; see
        :mod:`samesense.inference.search.ties`.
        """
        store.check_names(self.db, chosen)
        best = [Best(top + SPARE) for _ in queries]
        requested = chosen
        if self.graph is not None and not exact and not chosen.names:
            # The graph finds texts it covers; those added since are searched exactly.
            self._offer(self.graph, queries, best, top + SPARE)
            chosen = Condition("position >= ?", (self.about.graph_rows,))
        ids, positions = self._positions(chosen)
        nearest(queries, lambda: store.blocks(ids, positions, self.vectors), best, top + SPARE)
        query_texts = [None] * len(best) if texts is None else texts
        return [
            self._in_order(closest, query, text, top, requested)
            for closest, query, text in zip(best, queries, query_texts, strict=True)
        ]

    def _in_order(self, best: Best, query: Embeddings, text: str | None, top: int, chosen: Condition) -> Hits:
        """Return the ordered hits of a query, among them the texts that equal its own."""
        ids = best.ids
        scores = best.scores
        same, positions = self._same(text, top, chosen)
        if len(same):
            # A same text that the search has found would otherwise come twice.
            different = ~np.isin(ids, same)
            same_scores = row_cosines(query[None], self.vectors[positions])
            ids = np.concatenate([same, ids[different]])
            scores = np.concatenate([same_scores, scores[different]])
        noise = noise_of(f"{self.about.precision} {self.about.dtype}")
        order = in_order(scores, ids, np.isin(ids, same), noise)[:top]
        return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))

    def _same(self, text: str | None, most: int, chosen: Condition) -> tuple[Indices, Indices]:
        """Return ids and positions of the first texts that equal ``text`` and meet a condition."""
        if text is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        # The beginning is indexed; whole texts are compared only where it agrees.
        begins = f"substr(text, 1, {store.BEGINNING}) = substr(?, 1, {store.BEGINNING})"
        query = f"SELECT id, position FROM text WHERE {begins} AND text = ? AND ({chosen.sql}) ORDER BY id LIMIT ?"
        records = self.db.execute(query, (text, text, *chosen.values, most)).fetchall()
        ids, positions = np.array(records, dtype=np.int64).reshape(-1, 2).T
        return ids, positions

    def by_words(self, text: str, top: int, chosen: Condition) -> Hits:
        """Return the ``top`` texts with any of the words of ``text``, by BM25."""
        store.check_names(self.db, chosen)
        words = list(dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFC", text))))[:MOST_WORDS]
        if not words:
            return []
        meets = ""
        # Without a condition, the subquery would list every text.
        if chosen.names:
            meets = f"AND rowid IN (SELECT id FROM text WHERE {chosen.sql})"
        # In FTS5 the rank is the negative of BM25, so that the best is the lowest.
        query = f"SELECT rowid, -rank FROM words WHERE words MATCH ? {meets} ORDER BY rank, rowid LIMIT ?"
        # In quotes, since AND, OR, NOT and NEAR are operators in FTS5.
        quoted = " OR ".join(f'"{word}"' for word in words)
        return self.db.execute(query, (quoted, *chosen.values, top)).fetchall()

    def rows(self, ids: list[int]) -> dict[int, tuple[str, str]]:
        """Return text and metadata, as JSON, of the ids that exist."""
        chosen = among(ids)
        records = self.db.execute(f"SELECT id, text, metadata FROM text WHERE {chosen.sql}", chosen.values)
        return {number: (text, metadata) for number, text, metadata in records}

    def sample(self, most: int, chosen: Condition, seed: int) -> tuple[list[int], npt.NDArray[np.floating], int]:
        """Return ids, ascending, and vectors of at most ``most`` texts that meet a condition, and the number of all."""
        store.check_names(self.db, chosen)
        ids, positions = self._positions(chosen)
        order = np.argsort(ids)
        if len(ids) > most:
            drawn = np.random.default_rng(seed).choice(len(ids), size=most, replace=False)
            order = order[np.sort(drawn)]
        return ids[order].tolist(), self.vectors[positions[order]], len(ids)

    def count(self) -> int:
        """Return the number of texts."""
        return int(self.db.execute("SELECT count(*) FROM text").fetchone()[0])

    def batches(self, size: int) -> Iterator[tuple[list[tuple[int, str, str]], npt.NDArray[np.floating]]]:
        """Yield all texts in the order they were added: id, text and metadata (as JSON) of each, and their vectors."""
        with store.saying(self.folder):
            cursor = self.db.execute("SELECT id, text, metadata, position FROM text ORDER BY position")
            while rows := cursor.fetchmany(size):
                yield [row[:3] for row in rows], self.vectors[[row[3] for row in rows]]

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Yield every name of metadata with each type of its values, in the terms of ``json_each``.

        Whole numbers that a float does not hold for certain are ``large``, and those beyond 64 bits ``huge``.
        """
        # SQLite holds a whole number beyond 64 bits as a real.
        kind = f"""CASE WHEN type <> 'integer' THEN type WHEN typeof(value) = 'real' THEN 'huge'
            WHEN value NOT BETWEEN {-(2**53)} AND {2**53} THEN 'large' ELSE 'integer' END"""
        yield from self.db.execute(f"SELECT DISTINCT name, {kind} FROM field ORDER BY 1, 2")

    def _positions(self, chosen: Condition) -> tuple[Indices, Indices]:
        """Return ids and positions of the texts that meet a condition; cached until the collection changes."""
        if chosen not in self._matching:
            if len(self._matching) == REMEMBERED:
                self._matching.clear()
            self._matching[chosen] = store.matching_positions(self.db, chosen, self.about.rows)
        return self._matching[chosen]

    def _offer(self, graph: Graph, queries: Embeddings, best: list[Best], count: int) -> None:
        """Add the rows that the approximate index finds to ``best``, with their exact scores."""
        covered = self.about.graph_rows
        live = self._count_in_graph()
        requested = min(count + 10, covered)
        for query, closest, near_positions in zip(queries, best, graph.search(queries, requested), strict=True):
            ids, positions = store.matching_positions(self.db, among(near_positions.tolist(), "position"), covered)
            searched = requested
            while len(ids) < min(count, live) and searched < covered:  # many of the neighbours are deleted texts
                searched = min(4 * searched, covered)
                near_positions = graph.search(query[None], searched)[0]
                ids, positions = store.matching_positions(self.db, among(near_positions.tolist(), "position"), covered)
            closest.offer(ids, row_cosines(query[None], self.vectors[positions]))

    def _count_in_graph(self) -> int:
        """Return the number of texts that the approximate index covers; cached until the collection changes."""
        if self._live_in_graph is None:
            # Takes milliseconds where texts are many.
            query = "SELECT count(*) FROM text WHERE position < ?"
            (self._live_in_graph,) = self.db.execute(query, (self.about.graph_rows,)).fetchone()
        return self._live_in_graph


def fused(lists: Iterable[Hits]) -> Hits:
    """Return the hits of several lists merged by reciprocal rank fusion, the best first, ties by id."""
    scores: defaultdict[int, float] = defaultdict(float)
    for hits in lists:
        for rank, (number, _) in enumerate(hits, 1):
            scores[number] += 1 / (RRF + rank)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
