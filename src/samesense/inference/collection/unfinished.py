"""Vectors of a change that was stopped before its end, so that the same change does not compute them again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from samesense.encoder.embedding_cache import Blocks
from samesense.errors import DataError
from samesense.inference.collection.embedder import Embedder
from samesense.types import Embeddings


class Unfinished:
    """The embedder of one change of a collection, which keeps what it computes until :func:`forget`.

    What is found is of the same model and the same texts, whatever else was to be changed.

    Args:
        folder: that of the collection; DataError if what is kept there is a link.
        model: encodes what is not there.
    """

    def __init__(self, folder: Path, model: Embedder) -> None:
        self._place, self._model = place_of(folder), model
        if self._place.is_symlink():
            raise DataError(f"{self._place} is a link; the files of a collection are its own. Delete the link.")
        self._goes_on = self._place.exists()

    def unit(self, texts: list[str], *, keep: bool) -> Embeddings:
        """Return the embeddings of ``texts`` as unit rows, ``(texts, dim)``; ``keep`` for what is computed."""
        vectors = dict(self._found(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            computed = self._model.unit(missing)
            if keep:
                self._blocks.write(missing, computed)
            vectors.update(zip(missing, computed, strict=True))
        return np.stack([vectors[text] for text in texts])

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks(self._place, self._model.identity)

    def _found(self, texts: list[str]) -> Iterator[tuple[str, Embeddings]]:
        if self._goes_on:
            for found, rows in self._blocks.find(texts):
                yield from zip(found, rows, strict=True)


def place_of(folder: Path) -> Path:
    """Return where the vectors of an unfinished change of the collection in ``folder`` are."""
    return folder / "unfinished"


def forget(folder: Path) -> None:
    """Remove what is kept, once a change is done."""
    shutil.rmtree(place_of(folder), ignore_errors=True)
