"""The folder that a job writes to: on a disk, or in an object store, such as ``s3://bucket/vectors``."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from samesense.failures import writing
from samesense.files import as_object, clear_temporary, parse_json, write_bytes
from samesense.locks import is_empty, only_writer
from samesense.places import check_folder, check_inside
from samesense.urls import delivered, is_url, local, open_file, store_of


class Folder:
    """A folder on a disk. Files are named by their paths in it, with ``/``, and are written atomically."""

    def __init__(self, name: str | Path) -> None:
        self.name = str(name)
        self._path = Path(local(self.name)).expanduser()

    def path(self, name: str) -> str | Path:
        """Return the path of a file."""
        return self._path / name

    def check(self, *names: str) -> None:
        """Raise OutputError if the folder cannot be written to; DataError if a file leads out of it."""
        check_folder(self._path)
        check_inside(self._path, *names)

    def only_writer(self) -> AbstractContextManager[None]:
        """Keep other writers out."""
        return only_writer(self._path)

    def is_empty(self) -> bool:
        """Return whether the folder is empty or absent."""
        return not self._path.exists() or is_empty(self._path)

    def names(self, inner: str) -> list[str]:
        """Return the names in a subfolder without hidden ones, after removing temporary files of killed writers."""
        folder = self._path / inner
        clear_temporary(folder)
        paths = [path for path in (folder.iterdir() if folder.exists() else ()) if not path.name.startswith(".")]
        check_inside(self._path, *paths)
        return [path.name for path in paths]

    def exists(self, name: str) -> bool:
        """Return whether a file exists."""
        return (self._path / name).exists()

    def open(self, name: str) -> IO[bytes]:
        """Open a file to read."""
        return open_file(self.path(name))

    def write(self, name: str, content: bytes) -> None:
        """Write a file and sync it to the disk."""
        write_bytes(self._path / name, content, sync=True)

    def append(self, name: str, entry: object) -> None:
        """Add a line of JSON to a file."""
        append_json(self._path / name, entry)

    def read(self, name: str) -> bytes:
        """Return the content of a file; empty if it is absent."""
        if not self.exists(name):
            return b""
        with self.open(name) as stream:
            return stream.read()

    def json(self, name: str) -> dict[str, Any]:
        """Return the object in a JSON file; DataError if it holds none."""
        return as_object(self.read(name), self.path(name))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return the lines that were appended, without one that a kill truncated."""
        return parsed_lines(self.read(name))

    def sha256(self, name: str) -> str:
        """Return the hash of a file."""
        with self.open(name) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]

    def is_intact(self, name: str, sha256: str) -> bool:
        """Return whether a file has this hash."""
        return self.sha256(name) == sha256


class StoreFolder(Folder):
    """A folder in an object store. There are no locks: two writers at once write identical shards."""

    def __init__(self, url: str) -> None:
        self.name = url.rstrip("/")
        self._store, self._prefix = store_of(self.name)
        self._lines: dict[str, bytes] = {}

    def path(self, name: str) -> str:
        """See :class:`Folder`."""
        return f"{self.name}/{name}"

    def check(self, *names: str) -> None:
        """Do nothing: a store refuses when it is written to."""

    def only_writer(self) -> AbstractContextManager[None]:
        """Do nothing: a store has no locks."""
        return nullcontext()

    def is_empty(self) -> bool:
        """See :class:`Folder`."""
        return not self._store.exists(self._prefix) or not self._store.ls(self._prefix, detail=False)

    def names(self, inner: str) -> list[str]:
        """See :class:`Folder`."""
        # Other workers write to the same folder.
        self._store.invalidate_cache()
        prefix = f"{self._prefix}/{inner}"
        keys = self._store.ls(prefix, detail=False) if self._store.exists(prefix) else []
        return [key.rpartition("/")[2] for key in keys]

    def exists(self, name: str) -> bool:
        """See :class:`Folder`."""
        return bool(self._store.exists(f"{self._prefix}/{name}"))

    def is_intact(self, name: str, sha256: str) -> bool:
        """Return True: to tell, the object would have to be downloaded."""
        return True

    def write(self, name: str, content: bytes) -> None:
        """See :class:`Folder`."""
        delivered(self.path(name), content)

    def append(self, name: str, entry: object) -> None:
        """Write the whole file again with another line: objects cannot be appended to."""
        # What this process wrote need not be read again.
        before = self._lines[name] if name in self._lines else self.read(name)
        self._lines[name] = before + json.dumps(entry).encode() + b"\n"
        self.write(name, self._lines[name])


def folder_at(name: str | Path) -> Folder:
    """Return the folder of this name or URL; ConfigError if its kind of store cannot be opened."""
    if is_url(name):
        return StoreFolder(str(name))
    return Folder(name)


def append_json(path: Path, entry: object) -> None:
    """Append a line of JSON, on a new line even where a kill truncated the line before; OutputError if it cannot be."""
    # The plus allows reading; whatever the position, writes go to the end.
    with writing(path), path.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            cut_off = stream.read(1) != b"\n"  # a kill truncated the last line
            stream.write(b"\n" if cut_off else b"")
        stream.write(json.dumps(entry).encode() + b"\n")


def parsed_lines(content: bytes) -> list[dict[str, Any]]:
    """Return the objects that :func:`append_json` wrote, without a line that a kill truncated."""
    entries = []
    for line in content.split(b"\n"):
        with suppress(ValueError):
            entry = parse_json(line)
            if isinstance(entry, dict):
                entries.append(entry)
    return entries
