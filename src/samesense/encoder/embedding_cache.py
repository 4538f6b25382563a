"""Encode each distinct text once: cached in memory during a run, and on disk between runs if a folder is given.

A long task that writes vectors as it goes caches them on disk only, until it is done (:class:`Unfinished`).

The disk cache consists of blocks of two files. Each file is written under a temporary name and renamed, the keys last,
so a killed run leaves only whole blocks, and processes may write at the same time.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import checked_rows
from samesense.errors import ModelError, OutputError
from samesense.failures import DAMAGED
from samesense.files import clear_temporary, write_array
from samesense.hashes import content_hash, text_digest
from samesense.places import IDENTITY, identity_folder
from samesense.types import Embeddings, Encode

logger = logging.getLogger(__name__)

Look = Callable[[Sequence[str]], None]
"""Callback with the texts whose vectors were found on disk."""


class Blocks:
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
        vectors_path = _vectors_of(path)
        try:
            # A block is read whole for its hash, so this is done once a process.
            if (
                path not in self._verified
                and _name(path.read_bytes(), vectors_path.read_bytes()) != path.name.partition(".")[0]
            ):
                raise ValueError("its content is not what was written")
            block = tuple(np.load(file, mmap_mode="r", allow_pickle=False) for file in (path, vectors_path))
        except DAMAGED as error:
            self._discard(path, type(error).__name__)
            return None
        self._verified.add(path)
        return block[0], block[1]

    def _discard(self, path: Path, reason: str) -> None:
        logger.warning(f"{path}: a block of kept vectors is damaged ({reason}); its texts are encoded again.")
        for file in (path, _vectors_of(path)):
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
        name = _name(_npy(keys), _npy(vectors))
        # the keys last: a block counts as written once its keys are there
        write_array(self._folder / f"{name}{_VECTORS}", vectors)
        write_array(self._folder / f"{name}{_KEYS}", keys)


_KEYS = ".keys.npy"
_VECTORS = ".vectors.npy"


def _vectors_of(path: Path) -> Path:
    return path.with_name(path.name.replace(_KEYS, _VECTORS))


def _name(keys: bytes, vectors: bytes) -> str:
    return content_hash([keys, vectors])[:32]


def _npy(array: npt.NDArray[Any]) -> bytes:
    """Return the bytes of an ``.npy`` file with this array."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


BLOCK_TEXTS = 2048
"""Texts encoded and written at a time; a killed run loses at most this many."""


class EmbeddingCache:
    """An :data:`~samesense.types.Encode` that caches what it has encoded.

    It assumes that the vector of a text depends on that text alone. All vectors of the run are held in memory, as
    float32. Threads may share the cache; they encode one after another.

    With a ``folder``, blocks of vectors are also written to disk as they are computed. ``identity`` must then state
    everything besides the text that decides a vector, as
    :func:`~samesense.encoder.saving.storage.model_identity` does; ModelError if it is empty. Damaged blocks are removed
    and encoded again. ``look`` is called with the texts that are found on disk.
    """

    def __init__(
        self, encode: Encode, *, folder: Path | None = None, identity: str = "", look: Look | None = None
    ) -> None:
        if folder is not None and not identity:
            raise ModelError("Vectors can be kept on disk only for a model with an identity; received an empty one.")
        self._encode = encode
        self._look = look
        self._lock = Lock()
        self._row_of: dict[str, int] = {}
        self._vectors: Embeddings = np.zeros((0, 0), dtype=np.float32)
        self._blocks = None if folder is None else Blocks(folder, identity)

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``; a copy, in order."""
        self.fill(texts)
        rows = np.fromiter((self._row_of[text] for text in texts), dtype=np.intp, count=len(texts))
        return self._vectors[rows]

    def fill(self, texts: Iterable[str], *, on_progress: Callable[[int], None] | None = None) -> int:
        """Encode the texts that are not cached yet, the longest first; return their number.

        Pass the texts of several tasks at once, so that texts of equal length share batches. ModelError if the encoder
        returns another number of rows, or a row that is not finite.
        """
        with self._lock:
            return self._fill(texts, on_progress)

    def _fill(self, texts: Iterable[str], on_progress: Callable[[int], None] | None) -> int:
        missing = [text for text in dict.fromkeys(texts) if text not in self._row_of]
        for text in missing:
            if not isinstance(text, str):
                raise ModelError(f"Only strings can be encoded; received {text!r} of type {type(text).__name__}.")
        if self._blocks is not None and missing:
            for stored, vectors in self._blocks.find(missing):
                self._add(stored, vectors)
                if self._look is not None:
                    self._look(stored)
            missing = [text for text in missing if text not in self._row_of]
        missing.sort(key=len, reverse=True)  # texts of similar length need little padding
        for start in range(0, len(missing), BLOCK_TEXTS):
            block = missing[start : start + BLOCK_TEXTS]
            vectors = checked_rows(np.asarray(self._encode(block)), block).astype(np.float32, copy=False)
            if self._blocks is not None:
                self._blocks.write(block, vectors)
            self._add(block, vectors)
            if on_progress is not None:
                on_progress(len(block))
        return len(missing)

    def __len__(self) -> int:
        return len(self._row_of)

    def _add(self, texts: Sequence[str], vectors: Embeddings) -> None:
        count = len(self._row_of)
        if count == 0:
            self._vectors = np.empty((len(texts), vectors.shape[1]), dtype=np.float32)
        elif vectors.shape[1] != self._vectors.shape[1]:
            raise ModelError(
                f"An encoder must give vectors of one width; it gave {self._vectors.shape[1]} dimensions before and "
                f"{vectors.shape[1]} now."
            )
        if count + len(texts) > len(self._vectors):  # doubled, so that vectors are copied only a few times
            grown = np.empty((max(2 * count, count + len(texts)), vectors.shape[1]), dtype=np.float32)
            grown[:count] = self._vectors[:count]
            self._vectors = grown
        self._vectors[count : count + len(texts)] = vectors
        for text in texts:
            self._row_of[text] = len(self._row_of)


class Unfinished:
    """Vectors on disk of a task that may be stopped early, so that it can resume.

    The vectors are identified by model and text, so any other setting of the task may change in between.

    Args:
        folder: folder for the vectors, which :func:`remove_when_finished` removes; OutputError if it is a link.
        identity: everything besides the text that decides a vector.
        look: called with the texts that are found on disk.
    """

    def __init__(self, folder: Path, identity: str, look: Look | None = None) -> None:
        if folder.is_symlink():
            raise OutputError(f"{folder} is a link; vectors of unfinished work are kept in a folder. Delete the link.")
        self._folder = folder
        self._identity = identity
        self._look = look
        self._resumes = folder.is_dir()
        self._writes = self._resumes or not folder.exists()
        try:
            if self._resumes:
                # Opening the blocks makes their folder, and so finds a file that is in the way.
                self._blocks.find([])
        except (FileExistsError, NotADirectoryError):  # a file of another program is in the way
            self._writes = False
        if not self._writes:
            logger.warning(
                f"{folder} holds a file of others: vectors of this work are not kept while it is unfinished."
            )
        self._width: int | None = None  # of the model's vectors, once it is known

    def rows(self, texts: Sequence[str], encode: Callable[[list[str]], Embeddings], *, keep: bool = True) -> Embeddings:
        """Return the vectors of ``texts``, ``(texts, dim)``: the stored ones, and those of ``encode`` for the others.

        With ``keep`` the new ones are stored. If the stored ones have another width, they are all encoded again.
        """
        vectors = dict(self._stored(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            computed = encode(missing)
        else:
            computed = self._no_vectors(vectors, encode)
        stale = [text for text, vector in vectors.items() if len(vector) != computed.shape[1]]
        if stale:
            self._discard_other_width(len(vectors[stale[0]]), computed.shape[1])
            missing += stale
            computed = np.concatenate([computed, encode(stale)])
        if missing and keep and self._writes:
            self._blocks.write(missing, computed)
        vectors.update(zip(missing, computed, strict=True))
        return np.stack([vectors[text] for text in texts])

    def _no_vectors(self, texts: Iterable[str], encode: Callable[[list[str]], Embeddings]) -> Embeddings:
        """Return an empty matrix of the model's width; the first call encodes one text to learn it."""
        if self._width is None:
            self._width = encode(list(islice(texts, 1))).shape[1]
        return np.empty((0, self._width), dtype=np.float32)

    def _discard_other_width(self, stored_width: int, width: int) -> None:
        logger.warning(
            f"{self._folder}: vectors of {stored_width} numbers are kept, and the model gives {width}: they are "
            "removed, and their texts encoded again."
        )
        self._blocks.remove()

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._folder, self._identity)

    def _stored(self, texts: Sequence[str]) -> Iterator[tuple[str, Embeddings]]:
        if self._resumes and self._writes:
            for stored, rows in self._blocks.find(texts):
                if self._look is not None:
                    self._look(stored)
                yield from zip(stored, rows, strict=True)


@contextmanager
def remove_when_finished(folder: Path) -> Iterator[None]:
    """Remove the folder of :class:`Unfinished` when the block has succeeded; on Ctrl-C say that it is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if folder.exists():
            raise KeyboardInterrupt("What is encoded is kept: the same command goes on from there.") from None
        raise
    if not folder.is_symlink():
        remove_unfinished(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove the folder of :class:`Unfinished`, except files of other programs in it."""
    with suppress(OSError):
        for subfolder in list(folder.iterdir()):
            # only folders with the name of an identity are ours
            if re.fullmatch("[0-9a-f]{32}", subfolder.name) and not subfolder.is_symlink():
                _remove_blocks(subfolder)
        # This fails, as intended, where files of others remain.
        folder.rmdir()


def _remove_blocks(folder: Path) -> None:
    with suppress(OSError):
        for path in (*folder.glob(f"*{_KEYS}"), *folder.glob(f"*{_VECTORS}"), folder / IDENTITY):
            path.unlink(missing_ok=True)
        clear_temporary(folder)
        folder.rmdir()
