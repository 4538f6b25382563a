"""What was computed before, found by its content: numbers a cell, and arrays a text.

Each identity (a model, a way of selecting) has a folder of its own, named by its hash, so that what another one gave is
never taken up. Files are written beside their place and renamed: a killed run leaves whole ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.failures import DAMAGED
from samesense.files import write_array
from samesense.hashes import content_hash, text_digest, text_hash
from samesense.places import identity_folder

Keys = npt.NDArray[np.uint64]
"""Matrix of 128-bit keys, ``(n, 2)``."""

MOST_RUNS = 16
"""Blocks searched one by one; more are merged."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


def content_keys(texts: Sequence[str]) -> Keys:
    """Return a key a text, ``(texts, 2)``."""
    # Little-endian on every machine, as keys are written to the disk.
    digests = b"".join(text_digest(text)[:16] for text in texts)
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def cell_keys(first: Keys, second: Keys) -> Keys:
    """Return a key for each pair of contents, ``(n, 2)``; the order within a pair counts."""
    # Modulo 2^64; the odd factor is invertible and makes the order of the two count.
    return first + second * _ODD


class CellCache:
    """A few numbers for each pair of contents; DataError if a file is damaged."""

    def __init__(self, folder: Path | None, identity: str, width: int = 1) -> None:
        self.width = width
        self._dtype = np.dtype([("first", "<u8"), ("second", "<u8"), ("values", "<f4", (width,))])
        self._folder = None if folder is None else identity_folder(folder, identity)
        blocks = [] if self._folder is None else sorted(self._folder.glob("*.npy"))
        self._runs = [self._checked(path) for path in blocks]
        # One array from the start, so that a search goes through few of them.
        self._merge(most=1)

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return the numbers of each cell ``(n, width)``, 0 where they are not known, and whether they are ``(n,)``."""
        values = np.zeros((len(keys), self.width), dtype=np.float32)
        hits = np.zeros(len(keys), dtype=np.bool_)
        for run in self._runs:
            # A key beyond the last one is compared with the last one, which it is not.
            rows = np.minimum(np.searchsorted(run["first"], keys[:, 0]), len(run) - 1)
            hit = (run["first"][rows] == keys[:, 0]) & (run["second"][rows] == keys[:, 1])
            values[hit] = run["values"][rows[hit]]
            hits |= hit
        return values, hits

    def write(self, keys: Keys, values: npt.NDArray[np.floating]) -> None:
        """Add the numbers ``(n, width)`` of some cells."""
        if not len(keys):
            return
        block = np.empty(len(keys), dtype=self._dtype)
        block["first"] = keys[:, 0]
        block["second"] = keys[:, 1]
        block["values"] = values
        # Sorted, so that find can use a binary search.
        block = block[np.argsort(block["first"], kind="stable")]
        if self._folder is not None:
            # Named by content: processes that compute the same write the same file.
            write_array(self._folder / f"{content_hash([block.tobytes()])[:32]}.npy", block)
        self._runs.append(block)
        self._merge(most=MOST_RUNS)

    def _merge(self, most: int) -> None:
        if len(self._runs) > most:
            joined = np.concatenate(self._runs)
            self._runs = [joined[np.argsort(joined["first"], kind="stable")]]

    def _checked(self, path: Path) -> npt.NDArray[Any]:
        block = _load(path)
        if block.dtype != self._dtype or block.ndim != 1 or not len(block):
            raise _damaged(path)
        return block


class ArrayCache:
    """An array of numbers for each text."""

    def __init__(self, folder: Path | None, identity: str) -> None:
        self._folder = None if folder is None else identity_folder(folder, identity)
        self._memory: dict[str, npt.NDArray[np.int64]] = {}

    def find(self, text: str) -> npt.NDArray[np.int64] | None:
        """Return the array of ``text``, if it is known; DataError if its file is damaged."""
        if text not in self._memory and self._folder is not None:
            path = self._path(self._folder, text)
            if path.exists():
                array = _load(path)
                if array.dtype != np.int64 or array.ndim != 1:
                    raise _damaged(path)
                self._memory[text] = array
        return self._memory.get(text)

    def write(self, text: str, array: npt.NDArray[np.int64]) -> None:
        """Keep the array of ``text``."""
        self._memory[text] = array
        if self._folder is not None:
            path = self._path(self._folder, text)
            write_array(path, array)

    @staticmethod
    def _path(folder: Path, text: str) -> Path:
        name = text_hash(text)[:40]
        return folder / name[:2] / f"{name}.npy"


def _load(path: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except DAMAGED as error:
        raise _damaged(path) from error
    return array


def _damaged(path: Path) -> DataError:
    return DataError(f"A file of kept numbers is damaged: {path}. Delete its folder; it will be made again.")
