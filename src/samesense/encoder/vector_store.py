"""Vectors on disk, found by the hash of their text: blocks that are there whole or not at all.

A block is two files, each written beside its place and renamed, its keys last. A killed run leaves whole blocks, and
processes that write at the same time do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.files import write_array, write_text
from samesense.hashes import content_hash, text_digest, text_hash
from samesense.types import Embeddings


class Blocks:
    """The blocks of one model, in a folder of their own that is named by the hash of its identity."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder / text_hash(identity)[:32]
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / "identity.txt").exists():
            write_text(self._folder / "identity.txt", identity + "\n")
        self._home: dict[bytes, tuple[Path, int]] = {}
        self._read: set[Path] = set()
        self._look()

    def _look(self) -> None:
        """Read the keys of blocks that were not there at the last look: others write here too."""
        for path in sorted(set(self._folder.glob("*.keys.npy")) - self._read):
            for row, key in enumerate(_load(path)):
                self._home.setdefault(bytes(key), (path, row))
            self._read.add(path)

    def find(self, texts: Sequence[str]) -> Iterator[tuple[list[str], Embeddings]]:
        """Yield the texts that are here, block by block, with their vectors."""
        self._look()
        wanted: dict[Path, tuple[list[str], list[int]]] = {}
        for text in texts:
            home = self._home.get(text_digest(text))
            if home is not None:
                found, rows = wanted.setdefault(home[0], ([], []))
                found.append(text)
                rows.append(home[1])
        for path, (found, rows) in wanted.items():
            vectors = _load(path.with_name(path.name.replace(".keys.", ".vectors.")))
            if vectors.ndim != 2 or len(vectors) <= max(rows):
                raise _damaged(path)
            yield found, np.asarray(vectors[rows], dtype=np.float32)

    def write(self, texts: Sequence[str], vectors: Embeddings) -> None:
        """Add one block."""
        keys = np.array([np.frombuffer(text_digest(text), dtype=np.uint8) for text in texts])
        name = content_hash([keys.tobytes()])[:32]
        write_array(self._folder / f"{name}.vectors.npy", vectors)
        write_array(self._folder / f"{name}.keys.npy", keys)


def _load(path: Path) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path) from error
    return array


def _damaged(path: Path) -> ModelError:
    return ModelError(f"A file of remembered vectors is damaged: {path}. Delete its folder; it will be made anew.")
