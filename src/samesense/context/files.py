"""Arrays in files that grow at their end and are read by memory mapping."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError


def append(path: Path, content: bytes | npt.NDArray[Any]) -> None:
    """Add bytes, or the elements of an array, to the end of a file."""
    with path.open("ab") as stream:
        stream.write(content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes())


def cut(path: Path, size: int) -> None:
    """Shorten a file to ``size`` bytes, making an empty one where there is none.

    Raises:
        DataError: if it is shorter than that.
    """
    path.touch()
    if path.stat().st_size < size:
        raise DataError(f"{path} holds {path.stat().st_size} bytes, and {size} were written. Delete its folder.")
    os.truncate(path, size)


def mapped(path: Path, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
    """Return the array in a file, read-only, as it lies on the disk.

    It is a plain array over the mapping: each subscript of numpy's own class for mapped files goes through Python.

    Raises:
        DataError: if the file is absent or does not hold ``count`` elements.
    """
    expected = count * np.dtype(dtype).itemsize
    size = path.stat().st_size if path.is_file() else -1
    if size != expected:
        found = "is absent" if size < 0 else f"holds {size} bytes"
        raise DataError(f"{path} must hold {expected} bytes and {found}. Delete its folder; it will be made anew.")
    if count == 0:
        return np.zeros(0, dtype=dtype)  # an empty file cannot be mapped
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def append_json(path: Path, entry: object) -> None:
    """Add a line of JSON; a line before it that a kill cut off stays by itself."""
    with path.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            cut_off = stream.read(1) != b"\n"
            stream.write(b"\n" if cut_off else b"")
        stream.write(json.dumps(entry).encode() + b"\n")


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return what :func:`append_json` wrote, nothing for an absent file; a line that a kill cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def write_json(path: Path, content: object) -> None:
    """Write ``content`` beside ``path`` and rename it into place."""
    beside = path.with_name(f".{path.name}.part")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        DataError: if the file is absent, or holds none.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} must be a file of JSON ({error}). Make its folder anew.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must hold a JSON object; it holds {str(content)[:40]!r}. Make its folder anew.")
    return content


def spans(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers from each start up to its end, one span after the other, as one vector."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
