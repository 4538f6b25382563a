"""Endings of file names: the format and the compression that they say, and files opened by them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from samesense.errors import DataError
from samesense.failures import abridged
from samesense.urls import open_file

SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Supported file endings; all except Parquet may be followed by one of :data:`PACKED`."""

PACKED = (".gz", ".bz2", ".xz", ".zip")
"""Endings of compressed files that can be read."""

LIKE_THEM = f"or one of these with {', '.join(PACKED)}"
"""The part of a message that follows :data:`SUFFIXES` and covers compressed files."""


class Packer(NamedTuple):
    """A compression format, and the command that unpacks it."""

    name: str
    unpack: str


PACKERS = {
    ".gz": Packer("gzip", "gunzip"),
    ".bz2": Packer("bzip2", "bunzip2"),
    ".xz": Packer("xz", "unxz"),
    ".zip": Packer("ZIP", "unzip"),
    ".tgz": Packer("tar", "tar -xf"),
    ".zst": Packer("zstd", "zstd -d"),
    ".lz4": Packer("lz4", "unlz4"),
    ".7z": Packer("7-Zip", "7z x"),
    ".rar": Packer("RAR", "unrar x"),
}
"""Compression formats by file ending."""


class FileEnding(NamedTuple):
    """The end of a file name.

    Attributes:
        suffix: the format, one of :data:`SUFFIXES`; empty for any other.
        packing: the compression, one of :data:`PACKERS`; empty without one.
    """

    suffix: str
    packing: str


def split_suffix(name: str) -> FileEnding:
    """Return the known suffix of a file name, and the compression after it."""
    lowered = name.lower()
    packing = next((ending for ending in PACKERS if lowered.endswith(ending)), "")
    stem = lowered.removesuffix(packing)
    suffix = next((suffix for suffix in SUFFIXES if stem.endswith(suffix)), "")
    return FileEnding(suffix, packing)


def is_text_file(name: str) -> bool:
    """Return whether a file name ends in ``.txt``, compressed or not."""
    return name.lower().removesuffix(split_suffix(name).packing).endswith(".txt")


@contextmanager
def open_decompressed(name: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed according to its name; DataError for an unsupported compression."""
    packing = split_suffix(str(name)).packing
    # Known by name only, so that the message can say how to unpack it.
    if packing and packing not in PACKED:
        raise DataError(
            f"{name}: a data file may be compressed by gzip, bzip2 or xz, or be a ZIP archive of one file; by its "
            f"name, this is one of {PACKERS[packing].name}. Unpack it: {PACKERS[packing].unpack} {quote(str(name))}"
        )
    with open_file(name) as file, _decompress(file, packing, name) as stream:
        yield stream


def read_errors(packing: str) -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a damaged file of this compression may raise."""
    # lzma and bz2 are loaded for their files alone: not every Python was built with them.
    if packing == ".xz":
        from lzma import LZMAError

        return OSError, EOFError, LZMAError
    if packing == ".zip":
        return OSError, EOFError, zlib.error, BadZipFile, NotImplementedError
    return OSError, EOFError, zlib.error


def _decompress(file: IO[bytes], packing: str, name: str | Path) -> Any:
    if packing == ".gz":
        return gzip.open(file)
    if packing == ".bz2":
        import bz2

        return bz2.open(file)
    if packing == ".xz":
        import lzma

        return lzma.open(file)
    if packing == ".zip":
        return _only_member(file, name)
    return file


def _only_member(file: IO[bytes], name: str | Path) -> IO[bytes]:
    """Open the only file of a ZIP archive; DataError if there are several or none, or it has a password."""
    archive = ZipFile(file)
    members = [member for member in archive.infolist() if not (member.is_dir() or _is_metadata(member.filename))]
    if len(members) != 1:
        names = f" ({abridged([member.filename for member in members], 5)})" if members else ""
        raise DataError(
            f"{name}: a ZIP archive that is read holds exactly one file; this one holds "
            f"{len(members)}{names}. Unpack it, and name the file that is meant: unzip {quote(str(name))}"
        )
    member_name = members[0].filename
    suffix = split_suffix(member_name).suffix
    if suffix and not split_suffix(str(name)).suffix:
        raise DataError(
            f"{name}: the end of the file name says the format, and the file inside is {member_name}. Rename "
            f"the archive to end in {suffix}.zip."
        )
    # Bit 0 of the flags means that the member is encrypted.
    if members[0].flag_bits & 1:
        raise DataError(f"{name}: the file inside, {member_name}, has a password. Unpack it: unzip {quote(str(name))}")
    return archive.open(members[0])


def _is_metadata(member_name: str) -> bool:
    """Return whether a file manager added a member of an archive by itself."""
    return member_name.startswith("__MACOSX/") or member_name.rpartition("/")[2] in FOLDER_SETTINGS


FOLDER_SETTINGS = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files in which macOS and Windows keep how a folder is shown."""
