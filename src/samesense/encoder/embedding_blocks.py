"""Embeddings on disk, in blocks of two files: the keys of some texts, and their vectors.

Each file is written under a temporary name and renamed, the keys last, so a killed run leaves only whole blocks, and
processes may write at the same time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.failures import DAMAGED
from samesense.files import clear_temporary, npy_bytes, write_array
from samesense.hashes import content_hash, text_digest
from samesense.places import IDENTITY, identity_folder
from samesense.types import Embeddings

logger = logging.getLogger(__name__)

Look = Callable[[Sequence[str]], None]
"""Callback with the texts whose vectors were found on disk."""


class EmbeddingBlocks:
    """The blocks of one model, in a subfolder that is named by the hash of the model's identity.

    The name of a block is the hash of its content. A damaged block is removed with a warning, and its texts are encoded
    again.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = identity_folder(folder, identity)
        self._location_of: dict[bytes, tuple[Path, int]] = {}  # block and row of each key
        self._read: set[Path] = set()
        self._verified: set[Path] = set()
        self._read_new_keys()

    def _read_new_keys(self) -> None:
        """Read the keys of blocks that are new since the last call: other processes write here too."""
        for path in sorted(set(self._folder.glob("*.keys.npy")) - self._read):
            self._read.add(path)
            try:
                for row, key in enumerate(np.load(path, allow_pickle=False)):
                    self._location_of.setdefault(bytes(key), (path, row))
            except DAMAGED as error:
                self._discard(path, type(error).__name__)

    def find(self, texts: Sequence[str]) -> Iterator[tuple[list[str], Embeddings]]:
        """Yield the stored ones of ``texts`` with their vectors, block by block."""
        self._read_new_keys()
        rows_by_block: dict[Path, list[tuple[str, int]]] = {}
        for text in texts:
            location = self._location_of.get(text_digest(text))
            if location is not None:
                path, row = location
                rows_by_block.setdefault(path, []).append((text, row))
        for path, candidates in rows_by_block.items():
            block = self._block(path)
            if block is None:
                continue
            keys, vectors = block
            # another process may have rewritten the file since its keys were read
            matches = [
                (text, row) for text, row in candidates if row < len(keys) and bytes(keys[row]) == text_digest(text)
            ]
            if matches:
                yield [text for text, _ in matches], np.asarray(vectors[[row for _, row in matches]], dtype=np.float32)

    def _block(self, path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return keys and vectors of a block; a damaged one is removed, and ``None`` returned."""
        vectors_path = _vectors_path(path)
        try:
            # A block is read whole for its hash, so this is done once a process.
            if path not in self._verified:
                _check_hash(path, vectors_path)
            block = tuple(np.load(file, mmap_mode="r", allow_pickle=False) for file in (path, vectors_path))
        except DAMAGED as error:
            self._discard(path, type(error).__name__)
            return None
        self._verified.add(path)
        return block[0], block[1]

    def _discard(self, path: Path, reason: str) -> None:
        logger.warning(f"{path}: a block of kept vectors is damaged ({reason}); its texts are encoded again.")
        for file in (path, _vectors_path(path)):
            # Another process may have removed the file already.
            with suppress(OSError):
                file.unlink()
        self._location_of = {key: (block, row) for key, (block, row) in self._location_of.items() if block != path}

    def remove(self) -> None:
        """Remove all blocks: their vectors are not those of the model."""
        for path in self._folder.glob("*.npy"):
            path.unlink(missing_ok=True)
        self._location_of.clear()

    def write(self, texts: Sequence[str], vectors: Embeddings) -> None:
        """Add one block."""
        keys = np.array([np.frombuffer(text_digest(text), dtype=np.uint8) for text in texts])
        name = _hash_block(npy_bytes(keys), npy_bytes(vectors))
        # the keys last: a block counts as written once its keys are there
        write_array(self._folder / f"{name}{_VECTORS}", vectors)
        write_array(self._folder / f"{name}{_KEYS}", keys)


_KEYS = ".keys.npy"
_VECTORS = ".vectors.npy"


def _vectors_path(path: Path) -> Path:
    return path.with_name(path.name.replace(_KEYS, _VECTORS))


def _check_hash(keys_path: Path, vectors_path: Path) -> None:
    """Raise ValueError if the content of a block is not that of which its name is the hash."""
    name = keys_path.name.partition(".")[0]
    if _hash_block(keys_path.read_bytes(), vectors_path.read_bytes()) != name:
        raise ValueError("its content is not what was written")


def _hash_block(keys: bytes, vectors: bytes) -> str:
    return content_hash([keys, vectors])[:32]


def remove_blocks(folder: Path) -> None:
    """Remove the folder of the blocks of one model, except files of other programs in it."""
    with suppress(OSError):
        for path in (*folder.glob(f"*{_KEYS}"), *folder.glob(f"*{_VECTORS}"), folder / IDENTITY):
            path.unlink(missing_ok=True)
        clear_temporary(folder)
        folder.rmdir()
