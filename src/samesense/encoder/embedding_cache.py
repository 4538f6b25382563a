"""Encode each distinct text once: in memory during a run, and on disk between runs where a folder is given.

A long task that writes vectors as it goes keeps them on disk alone, until it is done (:class:`Unfinished`).

On disk there are blocks of two files, each written beside its place and renamed, its keys last. A killed run leaves
whole blocks, and processes that write at the same time do not disturb each other.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.cosine import checked_rows
from samesense.errors import ModelError, OutputError
from samesense.failures import DAMAGED
from samesense.files import write_array
from samesense.hashes import content_hash, text_digest
from samesense.places import IDENTITY, identity_folder
from samesense.types import Embeddings, Encode

Look = Callable[[Sequence[str]], None]
"""Is told the texts that are not encoded, since their vectors are there."""


class Blocks:
    """The blocks of one model, in a folder of their own that is named by the hash of its identity."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = identity_folder(folder, identity)
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
    except DAMAGED as error:
        raise _damaged(path) from error
    return array


def _damaged(path: Path) -> ModelError:
    return ModelError(f"A file of remembered vectors is damaged: {path}. Delete its folder; it will be made anew.")


BLOCK_TEXTS = 2048
"""Texts encoded, and written, at a time: what a killed run may lose."""


class EmbeddingCache:
    """An :data:`~samesense.types.Encode` that knows what it has encoded.

    It takes the vector of a text to depend on that text alone. All vectors of the run are held in memory, as float32.
    Threads may share it; they encode one after another.

    Blocks of them are kept in ``folder`` as they are made, where one is given. ``identity`` is then everything that
    decides a vector besides its text, as :func:`~samesense.encoder.saving.storage.model_identity` returns; ModelError
    if it is missing, or the folder holds damaged files. ``look`` is called with the texts that are found there.
    """

    def __init__(
        self, encode: Encode, *, folder: Path | None = None, identity: str = "", look: Look | None = None
    ) -> None:
        if folder is not None and not identity:
            raise ModelError("Vectors can be kept on disk only for a model with an identity; received an empty one.")
        self._encode, self._look = encode, look
        self._filling = Lock()
        self._place: dict[str, int] = {}
        self._vectors: Embeddings = np.zeros((0, 0), dtype=np.float32)
        self._blocks = None if folder is None else Blocks(folder, identity)

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the embeddings of ``texts``, float32 ``(texts, dim)``; a copy, in order."""
        self.fill(texts)
        rows = np.fromiter((self._place[text] for text in texts), dtype=np.intp, count=len(texts))
        return self._vectors[rows]

    def fill(self, texts: Iterable[str], *, on_progress: Callable[[int], None] | None = None) -> int:
        """Encode what is not known yet, the longest texts first; return how many that were.

        Give the texts of several tasks at once so that equal lengths meet. ModelError if the encoder gives another
        number of rows, or one that is not finite.
        """
        with self._filling:
            return self._fill(texts, on_progress)

    def _fill(self, texts: Iterable[str], on_progress: Callable[[int], None] | None) -> int:
        wanted = [text for text in dict.fromkeys(texts) if text not in self._place]
        for text in wanted:
            if not isinstance(text, str):
                raise ModelError(f"Only strings can be encoded; received {text!r} of type {type(text).__name__}.")
        if self._blocks is not None and wanted:
            for found, vectors in self._blocks.find(wanted):
                self._add(found, vectors)
                if self._look is not None:
                    self._look(found)
            wanted = [text for text in wanted if text not in self._place]
        wanted.sort(key=len, reverse=True)
        for start in range(0, len(wanted), BLOCK_TEXTS):
            block = wanted[start : start + BLOCK_TEXTS]
            vectors = checked_rows(np.asarray(self._encode(block)), block).astype(np.float32, copy=False)
            if self._blocks is not None:
                self._blocks.write(block, vectors)
            self._add(block, vectors)
            if on_progress is not None:
                on_progress(len(block))
        return len(wanted)

    def __len__(self) -> int:
        return len(self._place)

    def _add(self, texts: Sequence[str], vectors: Embeddings) -> None:
        known = len(self._place)
        if known == 0:
            self._vectors = np.empty((len(texts), vectors.shape[1]), dtype=np.float32)
        elif vectors.shape[1] != self._vectors.shape[1]:
            raise ModelError(
                f"An encoder must give vectors of one width; it gave {self._vectors.shape[1]} dimensions before and "
                f"{vectors.shape[1]} now."
            )
        if known + len(texts) > len(self._vectors):  # doubling: few copies however often texts come
            grown = np.empty((max(2 * known, known + len(texts)), vectors.shape[1]), dtype=np.float32)
            grown[:known] = self._vectors[:known]
            self._vectors = grown
        self._vectors[known : known + len(texts)] = vectors
        for text in texts:
            self._place[text] = len(self._place)


class Unfinished:
    """The vectors of a task that may be stopped before its end, so that it goes on from there.

    What is found is of the same model and the same texts, whatever else the task was to do with them.

    Args:
        place: folder for them, which :func:`kept_while_unfinished` removes; OutputError if it is a link.
        identity: everything that decides a vector besides its text.
        look: called with the texts that are found here.
    """

    def __init__(self, place: Path, identity: str, look: Look | None = None) -> None:
        if place.is_symlink():
            raise OutputError(f"{place} is a link; vectors of unfinished work are kept in a folder. Delete the link.")
        self._place, self._identity, self._look = place, identity, look
        self._goes_on = place.exists()

    def rows(self, texts: Sequence[str], encode: Callable[[list[str]], Embeddings], *, keep: bool = True) -> Embeddings:
        """Return the vectors of ``texts``, ``(texts, dim)``: those that are here, and those that ``encode`` gives.

        The latter stay here if ``keep``.
        """
        vectors = dict(self._found(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            computed = encode(missing)
            if keep:
                self._blocks.write(missing, computed)
            vectors.update(zip(missing, computed, strict=True))
        return np.stack([vectors[text] for text in texts])

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._place, self._identity)

    def _found(self, texts: Sequence[str]) -> Iterator[tuple[str, Embeddings]]:
        if self._goes_on:
            for found, rows in self._blocks.find(texts):
                if self._look is not None:
                    self._look(found)
                yield from zip(found, rows, strict=True)


@contextmanager
def kept_while_unfinished(place: Path) -> Iterator[None]:
    """Remove the folder of :class:`Unfinished` once what is done here is done; Ctrl-C says that it stays."""
    try:
        yield
    except KeyboardInterrupt:
        if place.exists():
            raise KeyboardInterrupt("What is encoded is kept: the same command goes on from there.") from None
        raise
    with suppress(OSError):  # the place may be a link, or hold something of others
        for home in () if place.is_symlink() else place.glob(f"*/{IDENTITY}"):
            shutil.rmtree(home.parent)
        place.rmdir()
