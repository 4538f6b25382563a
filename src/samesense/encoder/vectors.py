"""Vectors that were computed elsewhere, looked up by their text."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from samesense.errors import ModelError
from samesense.types import Embeddings


class StoredVectors:
    """An :data:`~samesense.types.Encode` that looks texts up; ModelError if there is not one row of numbers a text."""

    def __init__(self, texts: Sequence[str], vectors: Embeddings, source: str) -> None:
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.issubdtype(vectors.dtype, np.floating):
            raise ModelError(
                f"{source}: there must be one vector a text; received {len(texts)} texts and vectors of shape "
                f"{vectors.shape}, {vectors.dtype}."
            )
        self._row = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors.astype(np.float32, copy=False)
        self._source = source

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the vectors of ``texts``, float32 ``(texts, dim)``."""
        absent = [text for text in texts if text not in self._row]
        if absent:
            raise ModelError(
                f"{self._source} must hold a vector for every text; {len(set(absent))} of {len(set(texts))} are not "
                f"there, the first being {absent[0][:80]!r}. Texts must be equal to the letter."
            )
        return self._vectors[[self._row[text] for text in texts]]


def read_vectors(path: Path) -> StoredVectors:
    """Read vectors with their texts.

    Args:
        path: ``.parquet`` or ``.jsonl`` (also ``.jsonl.gz``) with columns ``text`` and ``embedding``, as
            ``samesense encode`` writes them; ``.npz`` with arrays ``texts`` and ``embeddings``; or ``.npy`` with the
            texts in a file of the same name ending in ``.txt``, one a line.

    Raises:
        ModelError: if the file is missing, has another ending, or breaks its format.
    """
    if not path.is_file():
        raise ModelError(f"There is no file of vectors at {path}.")
    name = path.name.removesuffix(".gz")
    read = next((READERS[suffix] for suffix in READERS if name.endswith(suffix)), None)
    if read is None:
        raise ModelError(f"{path}: a file of vectors ends in {', '.join(READERS)}. Rename or convert it.")
    try:
        texts, vectors = read(path)
    except (OSError, ValueError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ModelError(f"{path} cannot be read as {path.suffix} ({error}). Write it again.") from error
    return StoredVectors(texts, vectors, str(path))


def _npz(path: Path) -> tuple[list[str], Embeddings]:
    with np.load(path, allow_pickle=False) as arrays:
        if not {"texts", "embeddings"} <= set(arrays):
            raise ModelError(f"{path}: the arrays must be texts and embeddings; it has {', '.join(arrays)}.")
        return [str(text) for text in arrays["texts"]], arrays["embeddings"]


def _npy(path: Path) -> tuple[list[str], Embeddings]:
    beside = path.with_suffix(".txt")
    if not beside.is_file():
        raise ModelError(f"{path} holds no texts, and there is no {beside}. Put them there, one a line, in order.")
    texts = beside.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return texts, np.load(path, allow_pickle=False)


def _parquet(path: Path) -> tuple[list[str], Embeddings]:
    import pyarrow.parquet as pq

    return _columns(pq.read_table(path), path)


def _jsonl(path: Path) -> tuple[list[str], Embeddings]:
    import pyarrow.json as pj

    return _columns(pj.read_json(path), path)  # unzips what ends in .gz; an error names the row


def _columns(table: Any, path: Path) -> tuple[list[str], Embeddings]:
    if not {"text", "embedding"} <= set(table.column_names):
        raise ModelError(f"{path}: the columns must be text and embedding; it has {', '.join(table.column_names)}.")
    try:
        return table["text"].to_pylist(), np.array(table["embedding"].to_pylist(), dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path}: embeddings must be lists of numbers, all of one length ({error}).") from error


READERS: dict[str, Callable[[Path], tuple[list[str], Embeddings]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
"""How a file is read, by the end of its name."""
