"""The folder that a job writes to: on a disk, or in a store of objects, such as ``s3://bucket/vectors``."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from samesense.files import (
    as_object,
    clear_temporary,
    is_empty,
    only_writer,
    parse_json,
    write_bytes,
)
from samesense.places import check_folder, check_inside
from samesense.urls import delivered, is_url, local, open_file, store_of


class Folder:
    """A folder on a disk: files by their names in it, with / between parts; each there whole or not at all."""

    def __init__(self, name: str | Path) -> None:
        self.name, self._path = str(name), Path(local(str(name))).expanduser()

    def path(self, name: str) -> str | Path:
        """Return where a file is, for whoever opens it."""
        return self._path / name

    def check(self, *names: str) -> None:
        """Raise OutputError if nothing could be written here; DataError if a file leads out of the folder."""
        check_folder(self._path)
        check_inside(self._path, *names)

    def only_writer(self) -> AbstractContextManager[None]:
        """Keep other writers out."""
        return only_writer(self._path)

    def is_empty(self) -> bool:
        """Return whether there is nothing in it, or no folder."""
        return not self._path.exists() or is_empty(self._path)

    def names(self, inner: str) -> list[str]:
        """Return the names in an inner folder, cleared of what killed writers left; those with a dot are left out."""
        place = self._path / inner
        clear_temporary(place)
        found = [path for path in (place.iterdir() if place.exists() else ()) if not path.name.startswith(".")]
        check_inside(self._path, *found)
        return [path.name for path in found]

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""
        return (self._path / name).exists()

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read."""
        return open_file(self.path(name))

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that it outlives a loss of power."""
        write_bytes(self._path / name, content, sync=True)

    def append(self, name: str, entry: object) -> None:
        """Add a line of JSON to a file."""
        append_json(self._path / name, entry)

    def read(self, name: str) -> bytes:
        """Return what a file holds, nothing of one that is absent."""
        if not self.exists(name):
            return b""
        with self.open(name) as stream:
            return stream.read()

    def json(self, name: str) -> dict[str, Any]:
        """Return the object in a file of JSON; DataError if it is none."""
        return as_object(self.read(name), self.path(name))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the lines that were added; one that a kill cut off is left out."""
        return parsed_lines(self.read(name))

    def sha256(self, name: str) -> str:
        """Return the hash of a file."""
        with self.open(name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


class StoreFolder(Folder):
    """A folder in a store of objects. There are no locks: two writers at once write the same, shard by shard."""

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self._store, self._place = store_of(self.name)
        self._lines: dict[str, bytes] = {}

    def path(self, name: str) -> str:
        """See :class:`Folder`."""
        return f"{self.name}/{name}"

    def check(self, *names: str) -> None:
        """Do nothing: a store says no when it is written to."""

    def only_writer(self) -> AbstractContextManager[None]:
        """Keep no one out."""
        return nullcontext()

    def is_empty(self) -> bool:
        """See :class:`Folder`."""
        return not self._store.exists(self._place) or not self._store.ls(self._place, detail=False)

    def names(self, inner: str) -> list[str]:
        """See :class:`Folder`."""
        self._store.invalidate_cache()
        place = f"{self._place}/{inner}"
        found = self._store.ls(place, detail=False) if self._store.exists(place) else []
        return [name.rpartition("/")[2] for name in found]

    def exists(self, name: str) -> bool:
        """See :class:`Folder`."""
        return bool(self._store.exists(f"{self._place}/{name}"))

    def write(self, name: str, content: bytes) -> None:
        """See :class:`Folder`."""
        delivered(self.path(name), content)

    def append(self, name: str, entry: object) -> None:
        """Write the file anew with another line: objects cannot be added to."""
        before = self._lines[name] if name in self._lines else self.read(name)
        self._lines[name] = before + json.dumps(entry).encode() + b"\n"
        self.write(name, self._lines[name])


def folder_at(name: str | Path) -> Folder:
    """Return the folder of this name or URL; ConfigError for a kind of store that cannot be opened."""
    return StoreFolder(str(name)) if is_url(name) else Folder(name)


def append_json(path: Path, entry: object) -> None:
    """Add a line of JSON; a line before it that a kill cut off stays by itself."""
    with path.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            cut_off = stream.read(1) != b"\n"
            stream.write(b"\n" if cut_off else b"")
        stream.write(json.dumps(entry).encode() + b"\n")


def parsed_lines(content: bytes) -> list[dict[str, Any]]:
    """Return what :func:`append_json` wrote; a line that a kill cut off is left out."""
    found = []
    for line in content.split(b"\n"):
        with suppress(ValueError):
            entry = parse_json(line)
            found += [entry] if isinstance(entry, dict) else []
    return found
