"""A collection of texts on disk that is searched by vectors, by words, or by both: build, open, add, delete, query.

Example:
    >>> collection = Collection.build("texts", [Entry("A dog runs.", metadata={"topic": "animals"})], model)
    ... # doctest: +SKIP
    >>> collection.query(["An animal moves."], model, top=3)[0][0].text  # doctest: +SKIP
    'A dog runs.'
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.choices import check_count
from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.inference.collection import store
from samesense.inference.collection.conditions import Where, condition
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.collection.reader import Hits, Reader, fused
from samesense.inference.collection.writer import writing
from samesense.inference.models.model import as_sequence
from samesense.inference.search.exact import unit_rows
from samesense.inference.search.hnsw import check_usearch
from samesense.types import Embeddings

DEPTH = 100
"""Least number of hits of each of the two lists that a hybrid query merges."""


@dataclass(frozen=True)
class SearchHit:
    """A hit: one text of an answer.

    Attributes:
        id: its number in the collection.
        score: cosine with the query, in [-1, 1]; BM25 where the search is by words; the sum of reciprocal ranks where
            it is hybrid.
        text: the text.
        metadata: its metadata.
    """

    id: int
    score: float
    text: str
    metadata: Mapping[str, Any]


class Collection:
    """An existing collection. Each answer is of one consistent state; changes by other processes are seen at once.

    Vectors stay on disk and are memory-mapped. Several processes may read while one writes.
    """

    def __init__(self, folder: Path) -> None:
        """Use :meth:`open` or :meth:`build`."""
        self.name = str(folder)
        self._reader = Reader(folder)
        # The folder stays the same where the process goes to another one.
        self.folder = self._reader.folder = folder.absolute()

    def __repr__(self) -> str:
        return f"Collection({self.name!r}, {len(self):,} texts)"

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
        sources: str = "",
        on_progress: Callable[[int], None] | None = None,
    ) -> Collection:
        """Build a collection; its texts are read, encoded and written block by block.

        If the build is stopped, by Ctrl-C or an invalid text, the vectors of complete blocks stay in the folder. The
        next change reuses those with the same model and texts, and removes them all when it is done.

        Args:
            folder: where to write it; the folder may exist if it is empty.
            entries: the texts.
            model: encodes them, and every later query.
            dtype: type of the stored vectors; float16 halves the size and rounds each number to three digits.
            approximate: build an approximate index: from ``AUTO_ROWS`` texts on if usearch is installed, always, or
                never. Its recall is measured and stored.
            overwrite: replace an existing collection, once the new one is complete.
            sources: stored with the collection, see :mod:`samesense.inference.collection.documents`.
            on_progress: called with the number of texts just written.

        Raises:
            DataError: for an invalid entry, a duplicate id, or no entry at all.
            ModelError: if the model gives unusable vectors.
            OutputError: if the folder holds something else or cannot be written to, or another process writes to it.
            MissingExtraError: if ``approximate`` is ``"always"`` and usearch is absent.
        """
        path = Path(folder)
        if approximate == "always":
            check_usearch()
        # Before the folder is made, so that only a new one is removed after a failure.
        existed = path.exists()
        store.make_place(path)
        try:
            with writing(path, built=False) as writer:
                if writer.about.identity and not overwrite:
                    raise OutputError(f"{path} holds a collection. Add to it, or replace it with `overwrite`.")
                writer.build(model, dtype, approximate)
                writer.about.sources = sources
                writer.insert(entries, model, False, on_progress)
                writer.derive()
        except (DataError, ModelError, KeyboardInterrupt):
            if not existed and not (path / store.UNFINISHED).exists():
                shutil.rmtree(path, ignore_errors=True)  # created here, and without vectors that a later build reuses
            raise
        return cls(path)

    @classmethod
    def open(cls, folder: str | Path) -> Collection:
        """Open the collection in ``folder``; DataError if there is none, or it is damaged."""
        return cls(Path(folder))

    def check_model(self, model: Embedder) -> None:
        """Raise ModelError for a model other than the one that the collection was built with."""
        with self._reader.state() as about:
            _check_model(self.name, about, model)

    def __len__(self) -> int:
        """Return the number of texts."""
        with self._reader.state():
            return self._reader.count()

    def add(
        self,
        entries: Iterable[Entry],
        model: Embedder,
        *,
        upsert: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add texts, all or none; return their number.

        Args:
            entries: the texts.
            model: the model of the collection.
            upsert: replace texts with the same ids; of several entries with the same id the last one counts.
            on_progress: called with the number of texts just written.

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an invalid entry, or an id that exists.
            OutputError: if another process keeps writing.
        """
        self.check_model(model)
        with writing(self.folder) as writer:
            # Again under the lock: another process may have replaced the collection.
            _check_model(self.name, writer.about, model)
            return writer.insert(entries, model, upsert, on_progress)

    def delete(self, ids: Iterable[int] = (), *, where: Where = None) -> int:
        """Delete texts by id, or those whose metadata match; return their number.

        Args:
            ids: ids of the texts; each must exist.
            where: condition on the metadata, instead of ids; see :meth:`query`.

        Raises:
            DataError: if an id or a name of metadata does not exist; then nothing is deleted.
            ConfigError: for both ids and ``where``, or neither.
            OutputError: if another process keeps writing.
        """
        requested = list(ids)
        chosen = condition(where)
        if bool(requested) == bool(where):
            raise ConfigError("Texts are deleted by ids or by metadata; give one of the two.")
        with writing(self.folder) as writer:
            if requested:
                return writer.delete_ids(requested)
            return writer.delete(chosen)

    def compact(self) -> None:
        """Free the space of deleted texts, and rebuild the approximate index."""
        with writing(self.folder) as writer, store.saying(self.folder):
            writer.compact()
        # After the transaction, within which SQLite refuses to VACUUM.
        with store.saying(self.folder):
            store.shrink(self.folder)

    def about(self) -> dict[str, Any]:
        """Return a description of the collection, as JSON types: sizes, model, and how it is searched."""
        with self._reader.state() as about:
            count = "SELECT count(*), count(*) FILTER (WHERE position >= ?) FROM text"
            texts, later = self._reader.db.execute(count, (about.graph_rows,)).fetchone()
            return about.describe(texts, later)

    def stored(self) -> store.About:
        """Return what the collection stores about itself: its model, files and settings."""
        with self._reader.state() as about:
            return replace(about)

    def get(self, number: int) -> Entry:
        """Return the text with an id; DataError if there is none."""
        with self._reader.state():
            for text, metadata in self._reader.rows([number]).values():
                return Entry(text, number, json.loads(metadata))
        raise DataError(f"The collection holds no text with the id {number}.")

    def sample(self, most: int, *, where: Where = None, seed: int = 0) -> tuple[list[Entry], Embeddings, int]:
        """Return texts in the order of their ids, their unit vectors ``(texts, dim)``, and the number of all.

        Args:
            most: number of texts, drawn at random if there are more.
            where: condition on the metadata; see :meth:`query`.
            seed: seed of the draw.

        Raises:
            DataError: for a name of metadata that no text has.
            ConfigError: if a condition cannot be parsed.
        """
        chosen = condition(where)
        with self._reader.state():
            ids, vectors, total = self._reader.sample(most, chosen, seed)
            rows = self._reader.rows(ids)
            entries = [Entry(rows[number][0], number, json.loads(rows[number][1])) for number in ids]
            return entries, unit_rows(vectors), total

    def __iter__(self) -> Iterator[Entry]:
        """Yield every text, in the order they were added."""
        for number, text, metadata in self._reader.db.execute("SELECT id, text, metadata FROM text ORDER BY position"):
            yield Entry(text, number, json.loads(metadata))

    def check(self, texts: Iterable[str], *, top: int = 10, where: Where = None) -> None:
        """Raise the errors of :meth:`query` for queries and a condition, without a model."""
        _checked_queries(texts, top)
        chosen = condition(where)
        with self._reader.state():
            store.check_names(self._reader.db, chosen)

    def query(
        self,
        texts: Iterable[str],
        model: Embedder,
        *,
        top: int = 10,
        where: Where = None,
        exact: bool = False,
        hybrid: bool = False,
    ) -> list[list[SearchHit]]:
        """Return for each text the ``top`` nearest of the collection, the nearest first.

        Among equal scores the query itself comes first, then the texts in the order of their ids.

        Args:
            texts: the queries.
            model: the model of the collection.
            top: hits a query; all texts where there are fewer.
            where: only texts whose metadata meet a condition such as ``"topic = 'sport' AND year >= 2020"``, or have
                these values by name, where a list means any of its values. The search is then exact.
            exact: compare with every text even if there is an approximate index.
            hybrid: rank by vectors and by words together, by the sum of 1 / (60 + rank) over both lists.
                Source: Cormack, Clarke and Buettcher, Reciprocal Rank Fusion (2009).

        Raises:
            ModelError: if the model is not the one that the collection was built with.
            DataError: for an empty query, one text in place of several, or a name of metadata that no text has.
            ConfigError: if ``top`` is not a positive whole number, or a condition cannot be parsed.
        """
        self.check_model(model)
        queries, top = _checked_queries(texts, top)
        # Before the queries are encoded, which may take long.
        self.check(queries, top=top, where=where)
        if not queries:
            return []
        words = queries if hybrid else None
        rows = model.unit_queries(queries)
        return self.search(rows, top=top, where=where, exact=exact, words=words, identity=model.identity, texts=queries)

    def text_search(
        self, texts: Iterable[str], *, top: int = 10, where: Where = None, stop: threading.Event | None = None
    ) -> list[list[SearchHit]]:
        """Return for each text the ``top`` texts with its words, by BM25; see :meth:`query` and :meth:`search`."""
        queries, top = _checked_queries(texts, top)
        chosen = condition(where)
        with self._reader.state(), self._reader.stopped_by(stop):
            return [self._with_texts(self._reader.by_words(text, top, chosen)) for text in queries]

    def search(
        self,
        vectors: npt.NDArray[np.floating],
        *,
        top: int = 10,
        where: Where = None,
        exact: bool = False,
        words: Sequence[str] | None = None,
        identity: str | None = None,
        texts: Sequence[str] | None = None,
        stop: threading.Event | None = None,
    ) -> list[list[SearchHit]]:
        """Return the hits of queries given as vectors ``(queries, dim)``; see :meth:`query`.

        The search is hybrid where the queries' texts are given as ``words``. Among equal scores the query itself comes
        first where the queries are given as ``texts``. ModelError if the collection now holds vectors of another model
        than that of ``identity``, OutputError once another thread sets ``stop``.
        """
        _, top = _checked_queries(words or (), top)
        chosen = condition(where)
        # Ranks are fused over longer lists than are returned.
        depth = top if words is None else max(top, DEPTH)
        # An approximate index knows no metadata, so that a search with a condition is exact.
        with self._reader.state(with_graph=not exact and not chosen.names) as about:
            if identity not in (None, about.identity):
                raise ModelError(
                    f"{self.name} holds the vectors of another model by now, {about.model!r} in {about.precision}. "
                    "Open it again with that model."
                )
            if vectors.ndim != 2 or vectors.shape[1] != about.dim:
                raise ModelError(
                    f"Queries must be a matrix of {about.dim} columns, as the collection's vectors; received the shape "
                    f"{vectors.shape}."
                )
            with self._reader.stopped_by(stop):
                answers = self._reader.nearest(unit_rows(vectors), depth, chosen, exact, texts)
                if words is not None:
                    by_words = [self._reader.by_words(text, depth, chosen) for text in words]
                    answers = [fused(both)[:top] for both in zip(answers, by_words, strict=True)]
                return [self._with_texts(hits) for hits in answers]

    def _with_texts(self, hits: Hits) -> list[SearchHit]:
        """Return hits with their texts and metadata."""
        rows = self._reader.rows([number for number, _ in hits])
        return [SearchHit(number, score, rows[number][0], json.loads(rows[number][1])) for number, score in hits]


def _check_model(folder: str, about: store.About, model: Embedder) -> None:
    if model.identity != about.identity:
        raise ModelError(
            f"A collection is used with the model it was built with; {folder} was built with {about.model!r} in "
            f"{about.precision}, received {model.name!r} in {model.precision}, which differs in weights, settings or "
            "precision. Use that model, or encode the texts again: samesense index migrate "
            f"{quote(str(folder))} --model NEW"
        )


def _checked_queries(texts: Iterable[str], top: int) -> tuple[list[str], int]:
    """Return the queries as a list and the number of hits; DataError or ConfigError if they are invalid."""
    if isinstance(texts, str):
        raise DataError(f"Queries are given in a list; received {texts[:60]!r}. Write [{texts[:60]!r}].")
    count = min(check_count("top", top), sys.maxsize)  # SQLite's integers end at maxsize
    queries = list(as_sequence(texts, "Queries"))
    for number, text in enumerate(queries, 1):
        if not isinstance(text, str) or not text.strip():
            value = "empty" if isinstance(text, str) else repr(text)[:60]
            raise DataError(f"A query must hold a text; query {number} is {value}.")
    return queries, count
