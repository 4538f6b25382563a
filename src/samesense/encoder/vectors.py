"""Vectors that were computed elsewhere, looked up by their text."""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
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
        """Return the vectors of ``texts``, float32 ``(texts, dim)``; ModelError, naming the first that is not there."""
        absent = [text for text in texts if text not in self._row]
        if absent:
            raise ModelError(
                f"{self._source} must hold a vector for every text; {len(set(absent))} of {len(set(texts))} are not "
                f"there, the first being {absent[0][:80]!r}. Texts must be equal to the letter."
            )
        return self._vectors[[self._row[text] for text in texts]]


def read_vectors(path: Path) -> StoredVectors:
    """Read vectors with their texts; ModelError if the file is missing, has another ending, or breaks its format.

    A ``.parquet`` or ``.jsonl`` (also ``.jsonl.gz``) has columns ``text`` and ``embedding``, as ``samesense encode``
    writes them; ``.npz`` arrays ``texts`` and ``embeddings``; the texts of an ``.npy`` are in a file of the same name
    ending in ``.txt``, one a line.
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

    table = pq.read_table(path)
    if not {"text", "embedding"} <= set(table.column_names):
        raise ModelError(f"{path}: the columns must be text and embedding; it has {', '.join(table.column_names)}.")
    return table["text"].to_pylist(), _matrix(table["embedding"].to_pylist(), path)


def _jsonl(path: Path) -> tuple[list[str], Embeddings]:
    texts, rows = [], []
    for number, line in _lines(path):
        try:
            record = json.loads(line)
            texts.append(record["text"])
            rows.append(record["embedding"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f'{path}, row {number}: every line must be {{"text": ..., "embedding": [...]}}; received {line[:60]!r}.'
            ) from error
    return texts, _matrix(rows, path)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as stream:
        yield from enumerate(stream, 1)


def _matrix(rows: Sequence[Any], path: Path) -> Embeddings:
    try:
        return np.array(rows, dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path}: embeddings must be lists of numbers, all of one length ({error}).") from error


READERS: dict[str, Callable[[Path], tuple[list[str], Embeddings]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
"""How a file is read, by the end of its name."""
