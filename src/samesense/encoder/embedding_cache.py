"""Encode each distinct text once: in memory during a run, and on disk between runs where a folder is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from samesense.encoder.cosine import checked_rows
from samesense.encoder.vector_store import Blocks
from samesense.errors import ModelError
from samesense.types import Embeddings, Encode

BLOCK_TEXTS = 2048
"""Texts encoded, and written, at a time: what a killed run may lose."""


class EmbeddingCache:
    """An :data:`~samesense.types.Encode` that knows what it has encoded.

    It takes the vector of a text to depend on that text alone. All vectors of the run are held in memory, as float32.

    Blocks of them are kept in ``folder`` as they are made, where one is given.
    """

    def __init__(self, encode: Encode, *, folder: Path | None = None, identity: str = "") -> None:
        self._encode = encode
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
        wanted = [text for text in dict.fromkeys(texts) if text not in self._place]
        if self._blocks is not None and wanted:
            for found, vectors in self._blocks.find(wanted):
                self._add(found, vectors)
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


def cache_embeddings(encode: Encode, *, folder: Path | None = None, identity: str = "") -> EmbeddingCache:
    """Make an encoder that encodes each distinct text once, and keeps vectors between runs in ``folder``, if given.

    ``identity`` is everything that decides a vector besides its text, as
    :func:`~samesense.encoder.identity.model_identity` returns. ModelError if a folder is given without one, or holds
    damaged files.
    """
    if folder is not None and not identity:
        raise ModelError("Vectors can be kept on disk only for a model with an identity; received an empty one.")
    return EmbeddingCache(encode, folder=folder, identity=identity)
