"""Change a collection: in one transaction, all or nothing, by one writer at a time."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samesense.encoder.unfinished import UnfinishedEmbeddings, remove_when_finished
from samesense.errors import DataError, ModelError
from samesense.files import sync_file, sync_folder
from samesense.inference.collection import store
from samesense.inference.collection.conditions import Condition, among
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import LARGEST_ID, Entry, metadata_json
from samesense.inference.search.hnsw import Graph, has_usearch, tune

BLOCK_TEXTS = 2048
"""Number of texts encoded and written at once; a change that is stopped loses at most these."""

RECALL = 0.95
"""Least recall@10 of the approximate index; its search is widened until it is reached."""

_INSERT = "INSERT INTO text (id, text, metadata, position) VALUES (?, ?, ?, ?)"
_UPSERT = (
    f"{_INSERT} ON CONFLICT (id) DO UPDATE "
    "SET text = excluded.text, metadata = excluded.metadata, position = excluded.position"
)


@contextlib.contextmanager
def writing(folder: Path, *, built: bool = True) -> Iterator[Writer]:
    """Yield a writer, and commit its changes at the end unless there is an exception.

    OutputError if another process keeps writing, or the disk is full or cannot be written to.
    """
    with store.saying(folder):
        db = store.connect(folder, write=True)
        store.check_writable(folder)
    with contextlib.closing(db):
        with store.saying(folder):
            # With a write-ahead log readers go on in the last state while this writes.
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA cache_size = -65536")  # 64 MiB; with the default of 2 MiB large changes are slow
            # Immediate, so that waiting for another writer happens now and not halfway.
            db.execute("BEGIN IMMEDIATE")
            writer = Writer(folder, db, store.read_about(folder, db, built=built))
        try:
            with remove_when_finished(folder / store.UNFINISHED):
                yield writer
                with store.saying(folder):
                    writer.finish()
                    db.execute("COMMIT")
        finally:
            # An error in tidying must not hide the one that ended the change.
            with contextlib.suppress(sqlite3.Error, OSError):
                writer.tidy()


class Writer:
    """The operations of a change; ``about`` is written at its end."""

    def __init__(self, folder: Path, db: sqlite3.Connection, about: store.About) -> None:
        self.folder = folder
        self.db = db
        self.about = about
        # Those of them that the change makes useless are removed at its end.
        self._names = {path.name for path in folder.iterdir() if about.is_ours(path.name)}

    def build(self, model: Embedder, dtype: store.Dtype, approximate: store.Approximate) -> None:
        """Start from empty tables."""
        with store.saying(self.folder):
            store.make_tables(self.db, self.about.key)
            self.about = store.About(
                self.about.key,
                model.name,
                model.identity,
                model.precision,
                dtype=dtype,
                approximate=approximate,
                files=model.files,
            )
            self._new_vectors()

    def derive(self) -> None:
        """Complete a :meth:`build` after the texts are inserted."""
        with store.saying(self.folder):
            store.derive(self.db)

    def insert(
        self, entries: Iterable[Entry], model: Embedder, upsert: bool, on_progress: Callable[[int], None] | None
    ) -> int:
        """Add texts; return their number."""
        about = self.about
        before = about.rows
        source = iter(entries)
        unfinished = UnfinishedEmbeddings(self.folder / store.UNFINISHED, model.identity, model.look)
        assigned: set[int] = set()
        while block := list(islice(source, BLOCK_TEXTS)):
            locations = [entry.location or f"text {about.rows - before + n}" for n, entry in enumerate(block, 1)]
            if upsert:
                assigned |= self._assign_ids(block, locations, assigned)
            rows = [
                self._row(entry, about.rows + number, location)
                for number, (entry, location) in enumerate(zip(block, locations, strict=True))
            ]
            if not upsert:
                self._check_new([row[0] for row in rows], locations)
            texts = [entry.text for entry in block]
            whole = len(block) == BLOCK_TEXTS
            vectors = unfinished.rows(texts, model.unit, keep=whole)  # a partial block is not worth saving
            if about.dim not in (0, vectors.shape[1]):
                raise ModelError(
                    f"The collection holds vectors of {about.dim} numbers; the model gave {vectors.shape[1]}."
                )
            with store.saying(self.folder):
                about.dim = vectors.shape[1]
                self._append(vectors)
                self.db.executemany(_UPSERT if upsert else _INSERT, rows)
            if on_progress is not None:
                on_progress(len(block))
        if about.rows == before:
            raise DataError("There is no text to keep; at least one is needed.")
        return about.rows - before

    def delete(self, chosen: Condition) -> int:
        """Delete the texts that meet a condition; return their number."""
        with store.saying(self.folder):
            store.check_names(self.db, chosen)
            return self.db.execute(f"DELETE FROM text WHERE {chosen.sql}", chosen.values).rowcount

    def delete_ids(self, ids: list[int]) -> int:
        """Delete texts by id; if one does not exist, raise DataError and delete nothing."""
        # Larger numbers are beyond SQLite's integers, and no text has them.
        existing = self._existing([number for number in ids if 0 <= number <= LARGEST_ID])
        missing = sorted(set(ids) - existing)
        if missing:
            raise DataError(
                f"The collection holds no text with the id {missing[0]} ({len(missing)} of {len(ids)} ids are not "
                "there). Nothing was deleted."
            )
        return self.delete(among(ids))

    def compact(self) -> None:
        """Rewrite the vectors without those of deleted texts, and drop the approximate index."""
        ids, positions = store.matching_positions(self.db, Condition(), self.about.rows)
        old = self.about.map_vectors(self.folder)
        self._new_vectors()
        for _, vectors in store.blocks(ids, positions, old):
            self._append(vectors)
        # In this order positions stay unique: each new one is the row's own, or that of a row moved before.
        self.db.executemany("UPDATE text SET position = ? WHERE id = ?", enumerate(ids.tolist()))

    def finish(self) -> None:
        """Compact if most texts are deleted, build the approximate index if it is due, and write ``about``."""
        about = self.about
        if 2 * self.db.execute("SELECT count(*) FROM text").fetchone()[0] < about.rows:
            self.compact()
        if self._graph_is_due():
            self._make_graph()
        # Before the commit: the database must not name files that a loss of power could undo.
        sync_file(self.folder / about.vectors)
        sync_folder(self.folder)
        self.db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", asdict(about).items())

    def tidy(self) -> None:
        """Roll back uncommitted changes, and remove the files that the collection does not use."""
        # After a commit there is nothing to roll back.
        self.db.rollback()
        committed = store.read_about(self.folder, self.db, built=False)
        for name in self._names - {committed.vectors, committed.graph}:
            (self.folder / name).unlink(missing_ok=True)

    def _row(self, entry: Entry, position: int, location: str) -> tuple[int, str, str, int]:
        """Return the row of an entry in the table ``text``, with the next id if it has none."""
        metadata = metadata_json(entry, location)
        number = self.about.next_id if entry.id is None else entry.id
        if number > LARGEST_ID:
            raise DataError(f"{location}: ids must leave room for the next one; received {number}.")
        # An id that is given may move the next free one.
        self.about.next_id = max(self.about.next_id, number + 1)
        return number, entry.text, metadata, position

    def _assign_ids(self, block: list[Entry], locations: list[str], before: set[int]) -> set[int]:
        """Return the ids that entries without one will get; DataError if a later entry has such an id."""
        assigned = set[int]()
        next_id = self.about.next_id
        for entry, location in zip(block, locations, strict=True):
            number = next_id if entry.id is None else entry.id
            if entry.id is None:
                assigned.add(number)
            elif number in assigned or number in before:
                raise DataError(
                    f"{location}: every text has an id of its own; {number} was given to a text before it that brings "
                    "none. Give all texts ids, or none."
                )
            next_id = max(next_id, number + 1)
        return assigned

    def _existing(self, ids: list[int]) -> set[int]:
        """Return those of the ids that are in the collection."""
        chosen = among(ids)
        return {number for (number,) in self.db.execute(f"SELECT id FROM text WHERE {chosen.sql}", chosen.values)}

    def _check_new(self, ids: list[int], locations: list[str]) -> None:
        """Raise DataError for ids that come twice, or are in the collection."""
        taken = self._existing(ids)
        repeated = []
        for number, location in zip(ids, locations, strict=True):
            if number in taken:
                repeated.append((number, location))
            taken.add(number)
        if repeated:
            number, location = repeated[0]
            raise DataError(
                f"{location}: every text has an id of its own; {number} comes twice or is in the collection "
                f"({len(repeated)} such texts in this block). Correct the column id; when adding, `upsert` replaces "
                "the texts that are there."
            )

    def _new_vectors(self) -> None:
        self.about.vectors = self._new_file("vectors", "bin")
        self.about.rows = 0
        self.about.graph = ""
        self.about.graph_rows = 0

    def _new_file(self, kind: str, suffix: str) -> str:
        name = self.about.new_name(kind, suffix)
        (self.folder / name).touch(exist_ok=False)
        self._names.add(name)
        return name

    def _append(self, vectors: npt.NDArray[np.floating]) -> None:
        width = self.about.dim * np.dtype(self.about.dtype).itemsize
        with (self.folder / self.about.vectors).open("r+b") as stream:
            stream.seek(self.about.rows * width)  # not to the end: a writer that failed may have left more
            stream.write(np.ascontiguousarray(vectors, dtype=self.about.dtype).tobytes())
        self.about.rows += len(vectors)

    def _graph_is_due(self) -> bool:
        """Return whether to build an approximate index: it is missing, or fewer than half of the rows are in it."""
        about = self.about
        if about.approximate == "auto" and (about.rows < store.AUTO_ROWS or not has_usearch()):
            return False
        return about.approximate != "never" and about.rows >= 2 and 2 * about.graph_rows < about.rows

    def _make_graph(self) -> None:
        about = self.about
        vectors = about.map_vectors(self.folder)
        rows = np.arange(about.rows)
        graph = Graph.build(store.blocks(rows, rows, vectors), about.dim)
        about.recall, about.queries = tune(
            graph, lambda some: vectors[some], lambda: store.blocks(rows, rows, vectors), about.rows, RECALL
        )
        about.graph = self._new_file("graph", "usearch")
        about.graph_rows = about.rows
        about.expansion = graph.expansion
        graph.save(self.folder / about.graph)
        sync_file(self.folder / about.graph)
