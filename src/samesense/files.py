"""Files: written whole or not at all, appended to, and read as JSON, all in one place.

A file is written under a temporary name beside its place and renamed. The name is one of a kind, so that processes that
write the same file at the same time do not disturb each other: the last one wins, unless the first holds the file by
:func:`~samesense.locks.only_writer_of`, as commands do whose work is long.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError, OutputError
from samesense.failures import TEMPORARY, TEMPORARY_ENDING, visible, writing
from samesense.scratch import ScratchFolder

DEEPEST = 100
"""Levels of lists and objects in each other that a file of JSON may have."""

STARTED = time.time()
"""When this process began to write files, about."""

CLOCK_ERROR = 60
"""Seconds by which the clock of a file system may differ from that of this machine."""

_NAME_BYTES = 200
"""Bytes of a name that are kept in that of its temporary file, as file systems end at 255."""


@contextmanager
def replacing(path: str | Path, *, sync: bool = False) -> Iterator[Path]:
    """Yield a temporary place for a file, which becomes ``path`` at the end, unless there was an exception.

    Folders are made as needed. What is no file, such as a pipe, ``/dev/stdout`` or ``/dev/null``, is never replaced: it
    is written into at the end. A link stays a link, and a file that is replaced keeps its permissions. ``sync`` waits
    until the content is on the disk, so that it outlives a loss of power. OutputError if the file cannot be written;
    what was there before is left as it was.
    """
    with writing(path):
        if is_special(path):
            # Not beside the target: in a folder such as /dev no file can be made.
            with ScratchFolder() as folder:
                beside = Path(folder) / "content"
                # A disk that is full here is not that of the target.
                with writing(beside):
                    yield beside
                _write_into(path, beside)
            return
        target = Path(path).resolve()
        # In the same folder, as a rename is atomic within one file system only.
        beside = temporary(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            # Before the rename: after a loss of power the name must not stand for content that is not there.
            if sync:
                sync_file(beside)
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}


def _descriptor(path: str | Path) -> int | None:
    """Return the number of an open file that a name stands for."""
    match = _DESCRIPTOR.fullmatch(str(path))
    return int(match[1]) if match else _STANDARD.get(str(path))


def is_special(path: str | Path) -> bool:
    """Return whether a name is that of something that is written into and never replaced: a pipe, a device."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_into(path: str | Path, content: Path) -> None:
    number = _descriptor(path)
    # What Python still buffers for standard output belongs before this content.
    if number == 1 and sys.stdout is not None:
        sys.stdout.flush()
    # a file behind a number is written where it stands, and not from its start
    handle = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
    with content.open("rb") as source, os.fdopen(handle, "wb") as target:
        shutil.copyfileobj(source, target)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``path``, file or folder, at the end unless there is an exception.

    A link stays a link, and what it leads to is replaced. Its files get the permissions that new files have.
    OutputError if it cannot be written, or is the current folder, which other programs are in too.
    """
    path = path.resolve()
    if path == Path.cwd():
        raise OutputError("A folder is replaced as a whole, and the current one cannot be. Name another.")
    if is_special(path):
        raise OutputError(f"{path} is no folder or file, and is not replaced by a folder. Name another place.")
    beside = temporary(path)
    try:
        with writing(path):
            beside.mkdir(parents=True)
            yield beside
            _as_new(beside)
            if path.exists():
                _exchange(path, beside)
            else:
                beside.rename(path)
    except OutputError as error:
        # A writer within names the temporary folder, of which the user knows nothing.
        raise OutputError(str(error).replace(str(beside), str(path))) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _exchange(path: Path, new: Path) -> None:
    """Put a folder in the place of another one, which comes back if that fails; see :func:`left_of`."""
    old = beside_path(path, f"{_SET_ASIDE}{os.getpid()}")
    try:
        path.rename(old)
        new.rename(path)
    # Ctrl-C between the two renames must not leave the place empty either.
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    _remove(old)


_SET_ASIDE = "-old-"


def left_of(path: Path) -> str:
    """Say where a folder is that a writer set aside and was killed before the new one stood there; else nothing.

    It is never cleared, as it may be all there is.
    """
    aside = beside_path(path, _SET_ASIDE).name
    left = [] if path.exists() or not path.parent.is_dir() else sorted(path.parent.iterdir())
    remaining = [entry for entry in left if entry.name.startswith(aside)]
    return (
        f" A writer was killed, and what was there before is {remaining[-1]}: rename it to {path.name}."
        if remaining
        else ""
    )


def _as_new(folder: Path) -> None:
    """Give the files of a folder that was just made its permissions: some libraries keep theirs to the user."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


def write_bytes(path: str | Path, content: bytes, *, sync: bool = False) -> Path:
    """Write a file and return its path; see :func:`replacing`."""
    with replacing(path, sync=sync) as beside:
        beside.write_bytes(content)
    return Path(path)


def write_text(path: str | Path, content: str, *, sync: bool = False) -> Path:
    """Write text as UTF-8 with line ends as they are, and return the path; see :func:`replacing`."""
    return write_bytes(path, content.encode("utf-8"), sync=sync)


def write_lines(path: str | Path, lines: Iterable[str]) -> Path:
    """Write lines, their ends included, as they come; see :func:`write_text`."""
    with replacing(path) as beside, beside.open("wb") as stream:
        stream.writelines(line.encode("utf-8") for line in lines)
    return Path(path)


def write_json(path: str | Path, content: object, *, sync: bool = False) -> Path:
    """Write indented JSON, and return the path; see :func:`replacing`."""
    return write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n", sync=sync)


def write_json_lines(path: str | Path, rows: Iterable[object], *, sync: bool = False) -> Path:
    """Write one line of JSON a row, and return the path; see :func:`replacing`."""
    return write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), sync=sync)


def npy_bytes(array: npt.NDArray[Any]) -> bytes:
    """Return the bytes of an ``.npy`` file with this array."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array as ``.npy``; see :func:`replacing`."""
    with replacing(path) as beside, beside.open("wb") as stream:
        np.save(stream, array)


def sync_file(path: Path) -> None:
    """Wait until a file is on the disk."""
    with path.open("r+b") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_temporary(name: str) -> bool:
    """Return whether a file or folder of this name is what a killed writer left, or another one is writing."""
    return TEMPORARY.fullmatch(name) is not None


def clear_temporary(folder: Path, name: str = "") -> None:
    """Remove what killed writers left in a folder, or of a file in it.

    The files of running processes stay: not every writer holds a lock.
    """
    pattern = TEMPORARY
    if name:
        pattern = re.compile(rf"{re.escape(beside_path(Path(name)).name)}{TEMPORARY_ENDING}")
    for path in folder.glob(".*.part"):
        match = pattern.fullmatch(path.name)
        if match is not None and not _has_writer(path, match["process"]):
            _remove(path)


def _has_writer(path: Path, process: str) -> bool:
    """Return whether the process that made a temporary file still runs on this machine."""
    # On Windows a signal would end it, and a file that is open is not removed there.
    if os.name != "posix":
        return False
    if int(process) == os.getpid():
        # In a container that is started again, the killed writer may have had the same number.
        return path.lstat().st_ctime > STARTED - CLOCK_ERROR
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # of another user
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def temporary(target: Path) -> Path:
    """Return a name of its own beside a file; see :func:`is_temporary`."""
    return beside_path(target, f".{os.getpid()}-{secrets.token_hex(4)}.part")


def beside_path(path: Path, ending: str = "") -> Path:
    """Return a hidden place beside a file, named after it."""
    # The limit of file systems is in bytes; the cut may fall within a character, which is then dropped.
    return path.with_name(f".{os.fsencode(path.name)[:_NAME_BYTES].decode(errors='ignore')}{ending}")


def append(path: Path, content: bytes | npt.NDArray[Any]) -> None:
    """Add bytes, or the elements of an array, to the end of a file; OutputError if it cannot be written."""
    with writing(path), path.open("ab") as stream:
        stream.write(content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes())


def truncate(path: Path, size: int) -> None:
    """Shorten a file to ``size`` bytes, making an empty one where there is none; DataError if it is shorter already."""
    path.touch()
    if path.stat().st_size < size:
        raise DataError(f"{path} holds {path.stat().st_size} bytes, and {size} were written. Delete its folder.")
    os.truncate(path, size)


def map_array(path: Path, dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """Return the array in a file of bare elements, read-only, by memory mapping; DataError if it is of another size.

    It is a plain array over the mapping: each subscript of numpy's own class for mapped files goes through Python.
    """
    expected = math.prod(shape) * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else -1
    if size != expected:
        size_text = "is absent" if size < 0 else f"holds {size} bytes"
        raise DataError(f"{path} must hold {expected} bytes and {size_text}. Delete its folder; it will be made again.")
    if not expected:
        return np.zeros(shape, dtype=dtype)  # an empty file cannot be mapped
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))


def read_json(path: Path, fix: str = "Make its folder again.") -> dict[str, Any]:
    """Return the JSON object in a file; DataError if there is none, with what the user can do (``fix``)."""
    try:
        return as_object(path.read_bytes(), path, fix)
    except OSError as error:
        raise DataError(f"{path} must be a file of JSON ({error}). {fix}") from error


def as_object(read: bytes, path: str | Path, fix: str = "Make its folder again.") -> dict[str, Any]:
    """Return the JSON object that was read from a file; see :func:`read_json`."""
    try:
        content = parse_json(read.decode())
    except ValueError as error:
        raise DataError(f"{path} must be a file of JSON ({error}). {fix}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a JSON object; it holds {str(content)[:40]!r}. {fix}")
    return content


def parse_json(content: str | bytes) -> Any:
    """Return what JSON says; ValueError for what is none, or is nested deeper than anyone writes by hand."""
    try:
        text = content if isinstance(content, str) else content.decode()
        value = json.loads(text)
        # Brackets within texts count too, so this is an upper bound; the depth itself is costly.
        if text.count("[") + text.count("{") > DEEPEST:
            _check_depth(value)
    # json.loads recurses, and gives up by itself far beyond the limit.
    except RecursionError as error:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep") from error
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"it is nested more than {DEEPEST} levels deep")


class _Terminal(io.RawIOBase):
    """Standard output as a stream of UTF-8 whose control characters are written as escapes."""

    def __init__(self) -> None:
        # A write may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raw = bytes(content)
        sys.stdout.buffer.write(visible(self._decoder.decode(raw)).encode())
        return len(raw)


@contextmanager
def open_output(output: str) -> Iterator[IO[bytes]]:
    """Open a file that is written completely or not at all; ``"-"`` is standard output.

    A terminal is shown control characters as escapes.
    """
    if output == "-":
        stdout: Any = sys.stdout.buffer
        if sys.stdout.isatty():
            stdout = _Terminal()
        yield stdout
        sys.stdout.buffer.flush()
        return
    with replacing(output) as path, path.open("wb") as stream:
        yield stream
