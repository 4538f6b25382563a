"""Encode each distinct text once: in memory during a run, and on disk between runs where a folder is given.

A long task that writes vectors as it goes keeps them on disk alone, until it is done (:class:`Unfinished`).

On disk there are blocks of two files, each written beside its place and renamed, its keys last. A killed run leaves
whole blocks, and processes that write at the same time do not disturb each other.
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
"""Is told the texts that are not encoded, since their vectors are there."""


class Blocks:
    """The blocks of one model, in a folder of their own that is named by the hash of its identity.

    The name of a block is the hash of its content. One that is damaged is removed, which is said, and its texts are not
    found any more.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = identity_folder(folder, identity)
        self._home: dict[bytes, tuple[Path, int]] = {}
        self._read: set[Path] = set()
        self._sound: set[Path] = set()
        self._look()

    def _look(self) -> None:
        """Read the keys of blocks that were not there at the last look: others write here too."""
        for path in sorted(set(self._folder.glob("*.keys.npy")) - self._read):
            self._read.add(path)
            try:
                for row, key in enumerate(np.load(path, allow_pickle=False)):
                    self._home.setdefault(bytes(key), (path, row))
            except DAMAGED as error:
                self._discard(path, type(error).__name__)

    def find(self, texts: Sequence[str]) -> Iterator[tuple[list[str], Embeddings]]:
        """Yield the texts that are here, block by block, with their vectors."""
        self._look()
        wanted: dict[Path, list[tuple[str, int]]] = {}
        for text in texts:
            home = self._home.get(text_digest(text))
            if home is not None:
                wanted.setdefault(home[0], []).append((text, home[1]))
        for path, places in wanted.items():
            block = self._block(path)
            if block is None:
                continue
            keys, vectors = block
            # the file may have been written anew since its keys were read
            found = [(text, row) for text, row in places if row < len(keys) and bytes(keys[row]) == text_digest(text)]
            if found:
                yield [text for text, _ in found], np.asarray(vectors[[row for _, row in found]], dtype=np.float32)

    def _block(self, path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return keys and vectors of a block; ``None`` if it is damaged, and is now removed."""
        beside = _vectors_of(path)
        try:
            if path not in self._sound and _name(path.read_bytes(), beside.read_bytes()) != path.name.partition(".")[0]:
                raise ValueError("its content is not what was written")
            block = tuple(np.load(file, mmap_mode="r", allow_pickle=False) for file in (path, beside))
        except DAMAGED as error:
            self._discard(path, type(error).__name__)
            return None
        self._sound.add(path)
        return block[0], block[1]

    def _discard(self, path: Path, reason: str) -> None:
        logger.warning(f"{path}: a block of kept vectors is damaged ({reason}); its texts are encoded again.")
        for file in (path, _vectors_of(path)):
            with suppress(OSError):
                file.unlink()
        self._home = {key: home for key, home in self._home.items() if home[0] != path}

    def remove(self) -> None:
        """Remove all blocks, whose vectors are not those that the model gives."""
        for path in self._folder.glob("*.npy"):
            path.unlink(missing_ok=True)
        self._home.clear()

    def write(self, texts: Sequence[str], vectors: Embeddings) -> None:
        """Add one block."""
        keys = np.array([np.frombuffer(text_digest(text), dtype=np.uint8) for text in texts])
        name = _name(_npy(keys), _npy(vectors))
        write_array(self._folder / f"{name}{_VECTORS}", vectors)
        write_array(self._folder / f"{name}{_KEYS}", keys)


_KEYS, _VECTORS = ".keys.npy", ".vectors.npy"


def _vectors_of(path: Path) -> Path:
    return path.with_name(path.name.replace(_KEYS, _VECTORS))


def _name(keys: bytes, vectors: bytes) -> str:
    return content_hash([keys, vectors])[:32]


def _npy(array: npt.NDArray[Any]) -> bytes:
    """Return the bytes of the file that holds an array."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


BLOCK_TEXTS = 2048
"""Texts encoded, and written, at a time: what a killed run may lose."""


class EmbeddingCache:
    """An :data:`~samesense.types.Encode` that knows what it has encoded.

    It takes the vector of a text to depend on that text alone. All vectors of the run are held in memory, as float32.
    Threads may share it; they encode one after another.

    Blocks of them are kept in ``folder`` as they are made, where one is given. ``identity`` is then everything that
    decides a vector besides its text, as :func:`~samesense.encoder.saving.storage.model_identity` returns; ModelError
    if it is missing. Blocks that are damaged are removed and encoded again. ``look`` is called with the texts that are
    found there.
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
        self._goes_on = place.is_dir()
        self._keeps = self._goes_on or not place.exists()
        try:
            if self._goes_on:
                self._blocks.find([])
        except (FileExistsError, NotADirectoryError):  # of others
            self._keeps = False
        if not self._keeps:
            logger.warning(f"{place} holds a file of others: vectors of this work are not kept while it is unfinished.")
        self._width: int | None = None  # of the model's vectors, once it is known

    def rows(self, texts: Sequence[str], encode: Callable[[list[str]], Embeddings], *, keep: bool = True) -> Embeddings:
        """Return the vectors of ``texts``, ``(texts, dim)``: those that are here, and those that ``encode`` gives.

        The latter stay here if ``keep``. Where the kept ones are of another width, all are encoded again.
        """
        vectors = dict(self._found(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        computed = encode(missing) if missing else self._none(vectors, encode)
        stale = [text for text, vector in vectors.items() if len(vector) != computed.shape[1]]
        if stale:
            self._say_other_width(len(vectors[stale[0]]), computed.shape[1])
            missing += stale
            computed = np.concatenate([computed, encode(stale)])
        if missing and keep and self._keeps:
            self._blocks.write(missing, computed)
        vectors.update(zip(missing, computed, strict=True))
        return np.stack([vectors[text] for text in texts])

    def _none(self, vectors: Iterable[str], encode: Callable[[list[str]], Embeddings]) -> Embeddings:
        """Return no vectors, but as wide as those of the model: the first time, a text is encoded for that."""
        if self._width is None:
            self._width = encode(list(islice(vectors, 1))).shape[1]
        return np.empty((0, self._width), dtype=np.float32)

    def _say_other_width(self, kept: int, width: int) -> None:
        logger.warning(
            f"{self._place}: vectors of {kept} numbers are kept, and the model gives {width}: they are removed, and "
            "their texts encoded again."
        )
        self._blocks.remove()

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._place, self._identity)

    def _found(self, texts: Sequence[str]) -> Iterator[tuple[str, Embeddings]]:
        if self._goes_on and self._keeps:
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
    if not place.is_symlink():
        remove_unfinished(place)


def remove_unfinished(place: Path) -> None:
    """Remove the folder of :class:`Unfinished`, but for what others put there."""
    with suppress(OSError):
        for home in list(place.iterdir()):
            if re.fullmatch("[0-9a-f]{32}", home.name) and not home.is_symlink():
                _remove_blocks(home)
        place.rmdir()


def _remove_blocks(home: Path) -> None:
    with suppress(OSError):
        for path in (*home.glob(f"*{_KEYS}"), *home.glob(f"*{_VECTORS}"), home / IDENTITY):
            path.unlink(missing_ok=True)
        clear_temporary(home)
        home.rmdir()
