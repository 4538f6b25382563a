"""Where each shard of a text file begins and ends, found in one pass, so that no one need hold the file."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from samesense.data.formats.files import split_suffix
from samesense.errors import ConfigError, DataError
from samesense.files import read_json, write_json
from samesense.hashes import content_hash
from samesense.inference.stream import LINE_END, checked_lines

FILE = "input.json"
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Part:
    """The lines of one shard: its bytes in the file, their number, and the SHA-256 of the bytes."""

    start: int
    end: int
    rows: int
    sha256: str


@dataclass(frozen=True)
class Input:
    """A text file, cut into shards."""

    path: str  # of the file, the same on every machine that reads it
    size: int  # in bytes
    changed: int  # when, in nanoseconds
    sha256: str  # of its content
    parts: tuple[Part, ...]  # the shards, one after the other

    @property
    def rows(self) -> int:
        """Return the number of lines."""
        return sum(part.rows for part in self.parts)

    def read(self, shard: int) -> list[str]:
        """Return the texts of a shard; reads nothing else of the file."""
        part = self.parts[shard]
        try:
            with Path(self.path).open("rb") as stream:
                stream.seek(part.start)
                content = stream.read(part.end - part.start)
        except FileNotFoundError as error:
            raise DataError(
                f"Every worker reads the input itself, and there is no file {self.path} where shard {shard} is made. "
                "Put it at the same path on every machine."
            ) from error
        if content_hash([content]) != part.sha256:
            raise DataError(
                f"The input must stay as it is; bytes {part.start} to {part.end} of {self.path} (shard {shard}) are "
                "not what they were when its lines were counted. Put the file back, or encode into another folder."
            )
        return [line.decode().rstrip(LINE_END) for line in io.BytesIO(content)]  # a line feed alone ends a line


def cut(path: Path, shard_size: int, on_bytes: Callable[[int], None] = lambda count: None) -> Input:
    """Read a file once and note its shards.

    ``on_bytes`` is called with the number of bytes that have just been read.
    """
    before = path.stat()
    with path.open("rb") as stream:
        mark = _MARK if stream.read(len(_MARK)) == _MARK else b""
    whole, parts = hashlib.sha256(mark), []
    start = end = len(mark)
    rows, digest = 0, hashlib.sha256()
    for line in checked_lines(str(path)):
        content = line.encode()
        whole.update(content)
        digest.update(content)
        rows, end = rows + 1, end + len(content)
        if rows == shard_size:
            parts.append(Part(start, end, rows, digest.hexdigest()))
            on_bytes(end - start)
            start, rows, digest = end, 0, hashlib.sha256()
    if rows:
        parts.append(Part(start, end, rows, digest.hexdigest()))
        on_bytes(end - start)
    return Input(str(path), before.st_size, before.st_mtime_ns, whole.hexdigest(), tuple(parts))


def check_plain(path: Path) -> Path:
    """Return the whole path of a file that can be read from any byte on."""
    if str(path) == "-" or path.suffix == ".gz" or split_suffix(path.name)[0]:
        raise ConfigError(
            f"Shards are read by their place in a plain text file, one text a line; received {path}. Write it out "
            "first, for example: gunzip --keep FILE.gz"
        )
    if not path.is_file():
        raise DataError(f"There is no file {path}. Give a text file with one text a line.")
    return path.resolve()


def write(folder: Path, found: Input) -> None:
    """Keep the shards of an input in a folder, whole or not at all."""
    write_json(folder / FILE, asdict(found))


def recall(folder: Path, path: Path) -> Input | None:
    """Return the shards kept in a folder, if the file seems untouched since; workers look closer."""
    try:
        content = read_json(folder / FILE)
        parts = tuple(Part(**part) for part in content.pop("parts"))
        known = Input(parts=parts, **content)
    except (DataError, TypeError, KeyError):
        return None  # found anew
    now = path.stat()
    return known if (known.path, known.size, known.changed) == (str(path), now.st_size, now.st_mtime_ns) else None
