"""SHA-256 of texts, values, rows, files and folders."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path


def content_hash(pieces: Iterable[bytes | memoryview | Path]) -> str:
    """Return the SHA-256, in hex, of bytes and of the content of files, one after the other."""
    digest = hashlib.sha256()
    for piece in pieces:
        if not isinstance(piece, Path):
            digest.update(piece)
            continue
        with piece.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def text_digest(text: str) -> bytes:
    """Return the 32 bytes of the SHA-256 of a text; half a surrogate pair is no error."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return text_digest(text).hex()


def json_hash(value: object) -> str:
    """Return the SHA-256 of a value of JSON types; the order of keys does not count."""
    return text_hash(json.dumps(value, sort_keys=True))


def rows_hash(rows: Iterable[object], start: bytes = b"") -> str:
    """Return the SHA-256 of rows of JSON types in their order, after ``start``, which tells kinds of rows apart."""
    return content_hash(chain((start,), (json.dumps(row).encode() + b"\n" for row in rows)))


def folder_hash(folder: Path, files: Iterable[Path]) -> str:
    """Return the SHA-256 of files in a folder: their places in it and their contents."""
    return content_hash(f"{path.relative_to(folder).as_posix()} {content_hash([path])}\n".encode() for path in files)


def source_hash(source: str) -> str:
    """Return the SHA-256 of a file or of all files in a folder, with its split; of a name on the hub, the name."""
    path = Path(source).expanduser()
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
    else:
        files = [path]
    if not path.exists():
        folder, _, split = source.rpartition(":")
        if folder and Path(folder).expanduser().is_dir():
            return f"{source_hash(folder)} {split}"
        return f"name {source}"
    # Name and size part the files: text moved from one to the next changes the hash.
    headed = ((f"{file.relative_to(path)} {file.stat().st_size}".encode(), file) for file in files)
    return content_hash(chain.from_iterable(headed))
