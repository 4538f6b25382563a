"""Encodes each distinct text once: cached in memory during a run, and on disk between runs if a folder is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from samesense.encoder.cosine import checked_rows
from samesense.encoder.embedding_blocks import EmbeddingBlocks, Look
from samesense.errors import ModelError
from samesense.failures import excerpt
from samesense.types import Embeddings, Encode

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
        self._blocks = None if folder is None else EmbeddingBlocks(folder, identity)

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
                raise ModelError(
                    f"Only strings can be encoded; received {excerpt(text)} of type {type(text).__name__}."
                )
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
