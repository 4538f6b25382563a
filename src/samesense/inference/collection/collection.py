"""A collection of texts on disk that is searched by meaning, by words, or by both: build, open, add, delete, query.

Example:
    >>> collection = Collection.build("texts", [Entry("A dog runs.", metadata={"topic": "animals"})], model)
    ... # doctest: +SKIP
    >>> collection.query(["An animal moves."], model, top=3)[0][0].text  # doctest: +SKIP
    'A dog runs.'
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.inference.collection import store
from samesense.inference.collection.conditions import Condition, Where, among, condition
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.collection.writer import AUTO_ROWS, writing
from samesense.inference.search.exact import Best, Ids, nearest, unit_rows
from samesense.inference.search.hnsw import Graph, check_usearch
from samesense.types import Embeddings

RRF = 60
"""k of :meth:`Collection.query` with ``hybrid``."""

DEPTH = 100
"""Texts of each of the two lists that are merged, at least."""

MOST_WORDS = 1000
"""Different words of a query that are looked for; the time grows with their square."""

Hits = list[tuple[int, float]]


@dataclass(frozen=True)
class Found:
    """One text of an answer.

    Attributes:
        id: its number in the collection.
        score: cosine with the query, in [-1, 1]; of words, BM25; of both, the sum of reciprocal ranks.
        text: the text.
        metadata: what else is known of it.
    """

    id: int
    score: float
    text: str
    metadata: Mapping[str, Any]


class Collection:
    """A collection that is there. Each answer is of one state of it; changes by other processes show at once.

    Vectors stay on disk and are mapped into memory. Several processes may read while one writes.
    """

    def __init__(self, folder: Path) -> None:
        """Use :meth:`open` or :meth:`build`."""
        self.folder = folder
        self._lock = threading.RLock()
        self._all: tuple[Ids, Ids] | None = None
        self._graph: Graph | None = None
        with store.saying(folder):
            self._db = store.connect(folder)
            weakref.finalize(self, self._db.close)
            self._version = -1
            with self._reading():
                pass  # says what is wrong

    @classmethod
    def build(
        cls,
        folder: str | Path,
        entries: Iterable[Entry],
        model: Embedder,
        *,
        dtype: store.Dtype = "float32",
        approximate: store.Approximate = "auto",
        overwrite: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> Collection:
        """Make a collection; its texts are read, encoded and written block by block.

        Args:
            folder: where it will be; it may be there if it is empty.
            entries: the texts.
            model: encodes them, and every later query.
            dtype: how vectors are kept; float16 halves the size and rounds each number to three digits.
            approximate: make an approximate index: from ``AUTO_ROWS`` texts on if usearch is installed, always, or
                never. Its recall is measured and kept.
            overwrite: replace a collection that is there, once the new one is complete.
            on_progress: called with the number of texts just written.

        Raises:
            DataError: for an entry that cannot be kept, an id that comes twice, or no entry at all.
            ModelError: if the model gives unusable vectors.
            OutputError: if the folder holds something else or cannot be written to, or another process writes to it.
            MissingExtraError: if ``approximate`` is ``"always"`` and usearch is absent.
        """
        place = Path(folder)
        if not model.identity:
            raise ModelError("A collection is kept for a model with an identity; received an empty one.")
        if approximate == "always":
            check_usearch()
        store.make_place(place)
        with writing(place, built=False) as writer:
            if writer.about.identity and not overwrite:
                raise OutputError(f"{place} holds a collection. Add to it, or replace it with `overwrite`.")
            writer.build(model, dtype, approximate)
            writer.insert(entries, model, False, on_progress)
        return cls(place)

    @classmethod
    def open(cls, folder: str | Path) -> Collection:
        """Open the collection in ``folder``; DataError if there is none, or it is damaged."""
        return cls(Path(folder))

    def check_model(self, model: Embedder) -> None:
        """Raise ModelError for a model whose vectors do not belong to the collection."""
        with self._reading() as about:
            _check_model(self.folder, about, model)

    def __len__(self) -> int:
        """Return the number of texts."""
        with self._reading():
            return int(self._db.execute("SELECT count(*) FROM text").fetchone()[0])

    def add(
        self,
        entries: Iterable[Entry],
        model: Embedder,
        *,
        upsert: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add texts, all or none; return how many.

        Args:
            entries: the texts.
            model: the model of the collection.
            upsert: replace the texts whose ids are there; of entries with the same id the last counts.
            on_progress: called with the number of texts just written.

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an entry that cannot be kept, or an id that is there.
            OutputError: if another process goes on writing.
        """
        self.check_model(model)
        with writing(self.folder) as writer:
            _check_model(self.folder, writer.about, model)
            return writer.insert(entries, model, upsert, on_progress)

    def delete(self, ids: Iterable[int] = (), *, where: Where = None) -> int:
        """Delete texts by id, or those whose metadata match; return how many.

        Args:
            ids: each must be there.
            where: see :meth:`query`; instead of ids.

        Raises:
            DataError: if an id or a name of metadata is not there; then nothing is deleted.
            ConfigError: for both ids and ``where``, or neither.
            OutputError: if another process goes on writing.
        """
        wanted, chosen = list(ids), condition(where)
        if bool(wanted) == bool(where):
            raise ConfigError("Texts are deleted by ids or by metadata; give one of the two.")
        with writing(self.folder) as writer:
            return writer.delete_ids(wanted) if wanted else writer.delete(chosen)

    def compact(self) -> None:
        """Free the space of deleted texts, and make the approximate index anew."""
        with writing(self.folder) as writer, store.saying(self.folder):
            writer.compact()
        with store.saying(self.folder):
            store.shrink(self.folder)

    def about(self) -> dict[str, Any]:
        """Return what the collection is, as JSON types: sizes, model, and how it is searched with which recall."""
        with self._reading() as about:
            count = "SELECT count(*), count(*) FILTER (WHERE position >= ?) FROM text"
            texts, later = self._db.execute(count, (about.graph_rows,)).fetchone()
            return {
                "texts": texts,
                "deleted": about.rows - texts,
                "model": about.model,
                "precision": about.precision,
                "dim": about.dim,
                "vectors": about.dtype,
                "search": _search_words(about, later),
                **({"recall_at_10": about.recall, "recall_queries": about.queries} if about.graph else {}),
                "next_id": about.next_id,
            }

    def get(self, number: int) -> Entry:
        """Return the text with an id; DataError if there is none."""
        with self._reading():
            for one in self._found([(number, 0.0)]):
                return Entry(one.text, one.id, one.metadata)
        raise DataError(f"The collection holds no text with the id {number}.")

    def __iter__(self) -> Iterator[Entry]:
        """Yield every text, in the order they were added."""
        for number, text, metadata in self._db.execute("SELECT id, text, metadata FROM text ORDER BY position"):
            yield Entry(text, number, json.loads(metadata))

    def query(
        self,
        texts: Sequence[str],
        model: Embedder,
        *,
        top: int = 10,
        where: Where = None,
        exact: bool = False,
        hybrid: bool = False,
    ) -> list[list[Found]]:
        """Return for each text the ``top`` nearest of the collection, the nearest first, equal ones by id.

        Args:
            texts: what is looked for.
            model: the model of the collection.
            top: texts of an answer; all of them where there are fewer.
            where: which texts may be found, by their metadata: a condition such as ``"topic = 'sport' AND year >=
                2020"``, or values by name, where a list means any of its values. The search is then exact.
            exact: compare with every text even if there is an approximate index.
            hybrid: order by meaning and by words together, by the sum of 1 / (60 + rank) over both lists.
                Source: Cormack, Clarke and Buettcher, Reciprocal Rank Fusion (2009).

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an empty query, or a name of metadata that no text has.
            ConfigError: if ``top`` is less than 1, or a condition cannot be parsed.
        """
        self.check_model(model)
        _check_queries(texts, top)
        if not texts:
            return []
        vectors = model.unit(list(texts))
        if not hybrid:
            return self.search(vectors, top=top, where=where, exact=exact)
        chosen, depth = condition(where), max(top, DEPTH)
        with self._reading(with_graph=not exact and not chosen.names):
            by_meaning = self._nearest(vectors, depth, chosen, exact)
            lists = [(near, self._by_words(text, depth, chosen)) for near, text in zip(by_meaning, texts, strict=True)]
            return [self._found(_fused(both)[:top]) for both in lists]

    def text_search(self, texts: Sequence[str], *, top: int = 10, where: Where = None) -> list[list[Found]]:
        """Return for each text the ``top`` texts with its words, by BM25; see :meth:`query`."""
        _check_queries(texts, top)
        chosen = condition(where)
        with self._reading():
            return [self._found(self._by_words(text, top, chosen)) for text in texts]

    def search(
        self, vectors: npt.NDArray[np.floating], *, top: int = 10, where: Where = None, exact: bool = False
    ) -> list[list[Found]]:
        """Answer queries given as vectors ``(queries, dim)``; see :meth:`query`."""
        _check_queries((), top)
        chosen = condition(where)
        with self._reading(with_graph=not exact and not chosen.names) as about:
            if vectors.ndim != 2 or vectors.shape[1] != about.dim:
                raise ModelError(
                    f"Queries must be a matrix of {about.dim} columns, as the collection's vectors; received the shape "
                    f"{vectors.shape}."
                )
            return [self._found(hits) for hits in self._nearest(unit_rows(vectors), top, chosen, exact)]

    @contextmanager
    def _reading(self, *, with_graph: bool = False) -> Iterator[store.About]:
        """Hold one state of the collection while it is read."""
        with self._lock, store.saying(self.folder):
            if self._db.in_transaction:
                yield self._about
                return
            self._begin(with_graph)
            try:
                yield self._about
            finally:
                self._db.execute("COMMIT")

    def _begin(self, with_graph: bool) -> None:
        """Begin to read, and again if a writer has removed a file meanwhile."""
        gone = ""
        while True:
            self._db.execute("BEGIN")
            try:
                return self._renew(with_graph)
            except FileNotFoundError as error:
                if str(error) == gone:
                    raise DataError(f"The collection is damaged: {error}. Build it anew from its texts.") from error
                gone = str(error)
            except BaseException:
                self._db.rollback()
                raise
            self._db.rollback()

    def _renew(self, with_graph: bool) -> None:
        """Read what the collection is, if it has changed."""
        version = self._db.execute("PRAGMA data_version").fetchone()[0]  # of changes over other connections
        if version != self._version:
            self._about = store.read_about(self.folder, self._db)
            self._vectors = self._about.map_vectors(self.folder)
            self._all, self._graph, self._version = None, None, version
        about = self._about
        if with_graph and about.graph and self._graph is None:
            self._graph = Graph.open(self.folder / about.graph, about.expansion, about.graph_rows)

    def _places(self, chosen: Condition) -> tuple[Ids, Ids]:
        """Return ids and positions of the texts that meet a condition; those of all are remembered."""
        if chosen != Condition():
            return store.places(self._db, chosen, self._about.rows)
        if self._all is None:
            self._all = store.places(self._db, chosen, self._about.rows)
        return self._all

    def _nearest(self, queries: Embeddings, top: int, chosen: Condition, exact: bool) -> list[Hits]:
        store.check_names(self._db, chosen)
        best, graph = [Best(top) for _ in queries], None if exact or chosen.names else self._graph
        if graph is not None:
            self._offer(graph, queries, best, top)
            chosen = Condition("position >= ?", (self._about.graph_rows,))
        ids, positions = self._places(chosen)
        nearest(queries, lambda: store.blocks(ids, positions, self._vectors), best, top)
        return [list(zip(one.ids.tolist(), one.scores.tolist(), strict=True)) for one in best]

    def _offer(self, graph: Graph, queries: Embeddings, best: list[Best], count: int) -> None:
        """Let the rows that the approximate index finds compete, by their exact scores."""
        covered = self._about.graph_rows
        (live,) = self._db.execute("SELECT count(*) FROM text WHERE position < ?", (covered,)).fetchone()
        wanted = min(count + 10, covered)
        for query, one, found in zip(queries, best, graph.search(queries, wanted), strict=True):
            ids, positions = self._places(among(found.tolist(), "position"))
            looked = wanted
            while len(ids) < min(count, live) and looked < covered:  # the rest of what was found is deleted
                looked = min(4 * looked, covered)
                ids, positions = self._places(among(graph.search(query[None], looked)[0].tolist(), "position"))
            one.offer(ids, row_cosines(query[None], self._vectors[positions]))

    def _by_words(self, text: str, top: int, chosen: Condition) -> Hits:
        store.check_names(self._db, chosen)
        words = " OR ".join(f'"{word}"' for word in list(dict.fromkeys(re.findall(r"\w+", text)))[:MOST_WORDS])
        meets = f"AND rowid IN (SELECT id FROM text WHERE {chosen.sql})" if chosen.names else ""
        query = f"SELECT rowid, -rank FROM words WHERE words MATCH ? {meets} ORDER BY rank, rowid LIMIT ?"
        return self._db.execute(query, (words, *chosen.values, top)).fetchall() if words else []

    def _found(self, hits: Hits) -> list[Found]:
        chosen = among([number for number, _ in hits])
        query = f"SELECT id, text, metadata FROM text WHERE {chosen.sql}"
        rows = {number: rest for number, *rest in self._db.execute(query, chosen.values)}
        return [
            Found(number, score, rows[number][0], json.loads(rows[number][1]))
            for number, score in hits
            if number in rows
        ]


def _fused(lists: Iterable[Hits]) -> Hits:
    """Return the sums of reciprocal ranks, the highest first, equal ones by id."""
    scores: defaultdict[int, float] = defaultdict(float)
    for hits in lists:
        for rank, (number, _) in enumerate(hits, 1):
            scores[number] += 1 / (RRF + rank)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def _check_model(folder: Path, about: store.About, model: Embedder) -> None:
    if model.identity != about.identity:
        raise ModelError(
            f"A collection is used with the model it was built with; {folder} was built with {about.model!r} in "
            f"{about.precision}, received {model.name!r} in {model.precision}, which differs in weights, settings or "
            "precision. Use that model, or build the collection anew."
        )


def _check_queries(texts: Sequence[str], top: int) -> None:
    if top < 1:
        raise ConfigError(f"At least one text must be asked for; received {top}. Example: 10")
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise DataError(f"A query must hold a text; query {number} is empty.")


def _search_words(about: store.About, later: int) -> str:
    """Say how a collection is searched, and why."""
    if about.graph:
        tail = f"; {later} later texts are searched exactly" if later else ""
        return (
            f"approximate, recall@10 {about.recall:.3f} on {about.queries} sampled texts with expansion "
            f"{about.expansion}{tail}"
        )
    if about.approximate == "auto" and about.rows >= AUTO_ROWS:
        return "exact; so many texts are searched faster with pip install 'samesense[search]' and index compact"
    return "exact"
