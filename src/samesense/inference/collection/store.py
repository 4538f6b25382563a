"""The files of a collection: a SQLite database, and beside it a file of vectors and perhaps an approximate index.

The database is authoritative: a row of ``text`` has the ``position`` of its vector in the file, and ``about`` names the
files. A change is one transaction. Files are written first, where no row refers to them yet, so that a process that
dies leaves the collection as it was, plus files that the next writer removes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from samesense.errors import DataError, OutputError
from samesense.failures import excerpt, space_left, writing
from samesense.inference.collection.conditions import Condition
from samesense.inference.search.exact import BLOCK_ROWS, Block
from samesense.places import check_folder
from samesense.schemas import described
from samesense.types import Indices

DATABASE = "collection.sqlite"
UNFINISHED = "unfinished"
"""Folder of the vectors of a change that was stopped."""

APPLICATION = 0x53614D65
"""SQLite's application_id of our databases."""

AUTO_ROWS = 200_000
"""Number of texts from which on ``approximate="auto"`` builds an approximate index."""

WAIT = 60.0
"""Seconds that a writer waits for another."""

Dtype = Literal["float32", "float16"]
Approximate = Literal["auto", "always", "never"]

_NEW = """INSERT INTO words (rowid, text) VALUES (new.id, new.text);
INSERT OR IGNORE INTO field SELECT key, type, coalesce(value, ''), new.id FROM json_each(new.metadata);"""
# An index of external content is told the old text to take it out.
_OLD = """INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
DELETE FROM field WHERE (name, type, value, id) IN
(SELECT key, type, coalesce(value, ''), old.id FROM json_each(old.metadata));"""
_TABLES = ("words", "field", "text", "about")
_SCHEMA = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL, metadata TEXT NOT NULL, "
    "position INTEGER NOT NULL UNIQUE)",
    "CREATE TABLE field (name TEXT, type TEXT, value, id INTEGER, PRIMARY KEY (name, type, value, id)) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE words USING fts5 (text, content = 'text', content_rowid = 'id')",
)
BEGINNING = 60
"""Characters of a text in the index by which equal texts are looked up."""

# Filled at the end of a build, and then updated by triggers: several times as fast as triggers from the first text on.
_DERIVED = (
    "INSERT INTO words (words) VALUES ('rebuild')",
    # In the order of the key, in which SQLite fills a table fastest.
    "INSERT INTO field SELECT key, type, coalesce(value, ''), text.id FROM text, json_each(metadata) "
    "ORDER BY 1, 2, 3, 4",
    f"CREATE INDEX text_beginning ON text (substr(text, 1, {BEGINNING}))",
    f"CREATE TRIGGER text_added AFTER INSERT ON text BEGIN {_NEW} END",
    f"CREATE TRIGGER text_deleted AFTER DELETE ON text BEGIN {_OLD} END",
    f"CREATE TRIGGER text_changed AFTER UPDATE OF id, text, metadata ON text BEGIN {_OLD} {_NEW} END",
)


Count = Annotated[int, Field(ge=0)]


@dataclass
class About:
    """The table ``about``: everything about a collection except its texts."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # of what is read from a database

    key: str  # part of the names of its files, so that foreign files are not mistaken for them
    model: str = ""  # name of the model, for display and for opening it again
    identity: str = ""  # identity of the model; empty until the collection is built
    precision: str = ""  # arithmetic of the vectors
    dim: Count = 0  # dimensions of a vector
    dtype: Dtype = "float32"  # type of the stored vectors
    approximate: Approximate = "auto"  # whether to build an approximate index
    next_id: Count = 0  # id of the next text without one
    rows: Count = 0  # number of vectors in the file, those of deleted texts included
    vectors: str = ""  # name of the file of vectors
    graph: str = ""  # file name of the approximate index; empty if there is none
    graph_rows: Count = 0  # number of vectors it covers, from the first on
    expansion: Count = 0  # candidates examined in a search
    recall: float = 0.0  # recall@10 measured when the index was built
    queries: Count = 0  # number of sampled texts on which recall was measured
    files: str = ""  # hash of the model's files; empty unless the model is in files, in float32
    sources: str = ""  # JSON of the documents it was built from, see DocumentSources; empty if built from rows

    def new_name(self, kind: str, suffix: str) -> str:
        """Return a new, unique name for a file."""
        return f"{kind}-{self.key}-{secrets.token_hex(4)}.{suffix}"

    def is_ours(self, name: str) -> bool:
        """Return whether a file name may come from :meth:`new_name`."""
        match = re.fullmatch(r"(?:vectors|graph)-([0-9a-f]{8})-[0-9a-f]{8}\.[a-z]+", name)
        return match is not None and match[1] == self.key

    def describe(self, texts: int, later: int) -> dict[str, Any]:
        """Return a description as JSON types; ``later`` is the number of texts outside the approximate index."""
        search = "exact"
        if self.graph:
            search = f"approximate, recall@10 {self.recall:.3f} on {self.queries} sampled texts with expansion "
            search += f"{self.expansion}"
            if later:
                search += f"; {later} later texts are searched exactly"
        elif self.approximate == "auto" and self.rows >= AUTO_ROWS:
            search += (
                "; a collection of this size is searched faster with pip install 'samesense[search]' and index compact"
            )
        return {
            "texts": texts,
            "deleted": self.rows - texts,
            "model": self.model,
            "precision": self.precision,
            "dim": self.dim,
            "vectors": self.dtype,
            "search": search,
            **({"recall_at_10": self.recall, "recall_queries": self.queries} if self.graph else {}),
            "next_id": self.next_id,
        }

    def map_vectors(self, folder: Path) -> npt.NDArray[np.floating]:
        """Return the vectors ``(rows, dim)``, memory-mapped; as a plain array, because indexing np.memmap is slow.

        FileNotFoundError if the file does not exist, DataError if it is too short.
        """
        if not self.rows:
            return np.zeros((0, self.dim), dtype=self.dtype)
        path = folder / self.vectors
        try:
            return np.asarray(np.memmap(path, dtype=self.dtype, mode="r", shape=(self.rows, self.dim)))
        except ValueError as error:
            raise DataError(f"The collection is damaged: {path} is too short. Rebuild it from its texts.") from error


class NoCollectionError(DataError):
    """There is no collection in a folder, or no longer, or one that is still being built."""


@contextmanager
def saying(folder: Path) -> Iterator[None]:
    """Turn errors of the database and of files into DataError (damage) or OutputError, with a message that explains."""
    try:
        yield
    except (LookupError, ValueError, TypeError) as error:  # the values read contradict each other
        raise _damaged(folder, error) from error
    except (sqlite3.DatabaseError, OSError) as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            raise OutputError(
                f"A collection has one writer at a time, and another process writes to {folder}, and has done so for "
                f"{WAIT:g} s. Wait for it."
            ) from error
        if name == "SQLITE_INTERRUPT":
            raise OutputError(f"The search of {folder} was stopped.") from error
        if name in ("SQLITE_ERROR", "SQLITE_NOTADB") or name.startswith("SQLITE_CORRUPT"):
            raise _damaged(folder, error) from error
        raise OutputError(
            f"{folder} cannot be read or written: {error}. Is the disk full, or read-only?{space_left(folder / 'a')}"
        ) from error


def _damaged(folder: Path, error: Exception) -> DataError:
    return DataError(
        f"{folder / DATABASE} is damaged, or not that of a collection: {error}. Build the collection again in "
        "another folder, or delete this one first."
    )


def connect(folder: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open the database; DataError if there is none, or if it is a link."""
    path = folder / DATABASE
    mode = "rw"
    if path.is_symlink():
        raise DataError(f"{path} is a link; the files of a collection are its own. Open the folder that it leads to.")
    if not path.is_file():
        raise no_collection(folder)
    if not write and not os.access(folder, os.W_OK):
        # SQLite would try to create the missing write-ahead log, which fails in a read-only folder.
        mode = "ro" if (folder / f"{DATABASE}-wal").exists() else "ro&immutable=1"
    # as_uri encodes signs such as ? and #, which would end the path.
    where = f"{path.absolute().as_uri()}?mode={mode}"
    # No implicit transactions: they begin and end by the statements here.
    return sqlite3.connect(where, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)


def check_writable(folder: Path) -> None:
    """Raise OutputError, before long work, for a collection that may not be changed, with the place that forbids it."""
    path = folder / DATABASE
    # SQLite says only that it cannot open the database, or that it is read-only.
    with writing(path):
        for place in (path, folder):
            # Nothing is opened: closing the database would free the locks that SQLite holds on it in this process.
            if not os.access(place, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


def state_of(folder: Path) -> tuple[int, ...] | None:
    """Return values that change when the database is replaced by another one; ``None`` if there is none.

    In a read-only folder they also change when the database does, which SQLite notices itself elsewhere.
    """
    try:
        stat = (folder / DATABASE).stat()
    except OSError:
        return None
    if os.access(folder, os.W_OK):
        return stat.st_dev, stat.st_ino
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size, (folder / f"{DATABASE}-wal").exists()


def no_collection(folder: Path) -> NoCollectionError:
    """Return the error for a folder without a collection."""
    command = f"samesense index build {quote(str(folder))} texts.txt"
    return NoCollectionError(f"{folder} holds no collection. Build one: {command}")


def read_about(folder: Path, db: sqlite3.Connection, *, built: bool = True) -> About:
    """Return the table ``about``; DataError if the database is not ours or, with ``built``, not yet complete."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise no_collection(folder)
    rows = dict(db.execute("SELECT name, value FROM about"))
    if built and not rows.get("identity"):
        raise no_collection(folder)
    try:
        # A damaged database may hold bytes, which JSON has no form for.
        about = TypeAdapter(About).validate_json(json.dumps(rows, default=repr))
    except ValidationError as error:
        raise DataError(f"{folder / DATABASE}: {described(error)} Rebuild the collection.") from error
    if about.graph_rows > about.rows:
        raise DataError(f"{folder / DATABASE} is damaged: {about}. Rebuild the collection.")
    # A database from elsewhere must not lead to files of other programs.
    for name in filter(None, (about.vectors, about.graph)):
        if not about.is_ours(name) or (folder / name).is_symlink():
            raise DataError(f"{folder} is damaged: it names {name!r}, which is a link or no file of a collection.")
    return about


def make_place(folder: Path) -> None:
    """Create the folder and database of a collection; OutputError if the folder holds something else."""
    path = folder / DATABASE
    check_folder(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"A collection is a folder; {folder} is a file. Give another place.")
    with saying(folder):
        entries = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
        if entries and (DATABASE not in entries or path.is_symlink() or not path.is_file()):
            raise OutputError(f"{folder} is not empty: it holds {', '.join(entries[:5])}. Give a folder of its own.")
        folder.mkdir(parents=True, exist_ok=True)
        # connect opens only a file that exists.
        path.touch()
        with closing(connect(folder, write=True)) as db:
            # Of two builds at once the second waits here, and finds the tables.
            db.execute("BEGIN IMMEDIATE")
            if path.stat().st_size == 0:
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                make_tables(db, secrets.token_hex(4))
            elif db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise OutputError(f"{path} is the database of another program. Give a folder of its own.")
            db.execute("COMMIT")


def shrink(folder: Path) -> None:
    """Free the space of deleted rows in the database."""
    with closing(connect(folder, write=True)) as db:
        db.execute("VACUUM")
        # In this mode VACUUM writes the whole database into the log.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def make_tables(db: sqlite3.Connection, key: str) -> None:
    """Drop and create all tables, within the current transaction."""
    for table in _TABLES:
        db.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA:
        db.execute(statement)
    db.execute("INSERT INTO about VALUES ('key', ?)", (key,))


def derive(db: sqlite3.Connection) -> None:
    """Fill the tables that are derived from the texts, and create the triggers that update them."""
    for statement in _DERIVED:
        db.execute(statement)


def matching_positions(db: sqlite3.Connection, chosen: Condition, rows: int) -> tuple[Indices, Indices]:
    """Return ids and positions of the texts that meet a condition, both ``(texts,)``, by ascending position.

    ``rows`` is the number of vectors in the file.
    """
    if chosen == Condition():  # no row need be fetched while ids are consecutive and nothing is deleted
        least, most, texts = db.execute("SELECT min(id - position), max(id - position), count(*) FROM text").fetchone()
        if texts == rows > 0 and least == most:
            return np.arange(rows) + least, np.arange(rows)
    cursor = db.execute(f"SELECT id, position FROM text WHERE {chosen.sql} ORDER BY position", chosen.values)
    # A copy, because the columns of a transposed array are not contiguous.
    ids, positions = np.fromiter(chain.from_iterable(cursor), dtype=np.int64).reshape(-1, 2).T.copy()
    return ids, positions


def blocks(ids: Indices, positions: Indices, vectors: npt.NDArray[np.floating]) -> Iterator[Block]:
    """Yield ids and vectors of the rows at ``positions``, ascending, at most ``BLOCK_ROWS`` at a time."""
    for start in range(0, len(ids), BLOCK_ROWS):
        block = positions[start : start + BLOCK_ROWS]
        if block[-1] - block[0] == len(block) - 1:  # consecutive positions need no copy
            rows = vectors[block[0] : block[-1] + 1]
        else:
            rows = vectors.take(block, axis=0)  # twice as fast as indexing
        yield ids[start : start + BLOCK_ROWS], rows


_FIRST_NAMES = """WITH RECURSIVE known (name) AS (SELECT min(name) FROM field UNION ALL
SELECT (SELECT min(field.name) FROM field WHERE field.name > known.name) FROM known WHERE known.name IS NOT NULL)
SELECT substr(name, 1, 100) FROM known WHERE name IS NOT NULL LIMIT ?"""
"""The first names of metadata, each looked up in the index, because DISTINCT would read every value of every text."""

SHOWN_NAMES = 30
"""Most names of metadata that a message lists."""


def check_names(db: sqlite3.Connection, chosen: Condition) -> None:
    """Raise DataError, listing the existing names, for a name of metadata that no text has."""
    for name in dict.fromkeys(chosen.names):
        if db.execute("SELECT 1 FROM field WHERE name = ? LIMIT 1", (name,)).fetchone() is None:
            first_names = [row[0] for row in db.execute(_FIRST_NAMES, (SHOWN_NAMES + 1,))]
            names = ", ".join(first_names[:SHOWN_NAMES]) or "none at all"
            suffix = " and others" if len(first_names) > SHOWN_NAMES else ""
            raise DataError(f"No text has metadata named {excerpt(name)}. There are: {names}{suffix}.")
