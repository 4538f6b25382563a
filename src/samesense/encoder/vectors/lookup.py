"""Precomputed vectors: of texts, looked up by the text, and of words, averaged over a text."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.encoder.pieces import Pieces
from samesense.encoder.vectors.stored import stored_rows
from samesense.errors import DataError, ModelError
from samesense.execution.unread import Unread, note
from samesense.failures import DAMAGED
from samesense.files import parse_json
from samesense.parquet.arrays import values_of
from samesense.parquet.table import ParquetTable
from samesense.types import Embeddings


class StoredVectors:
    """An :data:`~samesense.types.Encode` that looks texts up; ModelError unless there is one float vector per text."""

    def __init__(self, texts: Sequence[str], vectors: Embeddings, source: str) -> None:
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.issubdtype(vectors.dtype, np.floating):
            raise ModelError(
                f"{source}: there must be one vector a text; received {len(texts)} texts and vectors of shape "
                f"{vectors.shape}, {vectors.dtype}."
            )
        self._row_of = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors.astype(np.float32, copy=False)
        self._source = source

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the vectors of ``texts``, float32 ``(texts, dim)``; ModelError, naming the first missing text."""
        absent = [text for text in texts if text not in self._row_of]
        if absent:
            raise ModelError(
                f"{self._source} must hold a vector for every text; {len(set(absent))} of {len(set(texts))} are not "
                f"there, the first being {absent[0][:80]!r}. Texts must be equal to the letter."
            )
        return self._vectors[[self._row_of[text] for text in texts]]


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
    except DAMAGED as error:
        raise ModelError(f"{path} cannot be read as {path.suffix} ({error}). Write it again.") from error
    return StoredVectors(texts, vectors, str(path))


def _read_npz(path: Path) -> tuple[list[str], Embeddings]:
    with np.load(path, allow_pickle=False) as arrays:
        if not {"texts", "embeddings"} <= set(arrays):
            raise ModelError(f"{path}: the arrays must be texts and embeddings; it has {', '.join(arrays)}.")
        return [str(text) for text in arrays["texts"]], arrays["embeddings"]


def _read_npy(path: Path) -> tuple[list[str], Embeddings]:
    texts_path = path.with_suffix(".txt")
    if not texts_path.is_file():
        raise ModelError(f"{path} holds no texts, and there is no {texts_path}. Put them there, one a line, in order.")
    # Not splitlines(), which also splits within texts; utf-8-sig drops a byte-order mark.
    texts = texts_path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    return texts, stored_rows(path)


def _read_parquet(path: Path) -> tuple[list[str], Embeddings]:
    try:
        table = ParquetTable(path)
        if not {"text", "embedding"} <= set(table.names):
            raise ModelError(f"{path}: the columns must be text and embedding; it has {', '.join(table.names)}.")
        texts = [str(text) for block in table.column("text") for text in values_of(block)]
        return texts, stored_rows(path)
    except DataError as error:
        raise ModelError(str(error)) from error


def _read_jsonl(path: Path) -> tuple[list[str], Embeddings]:
    texts = []
    rows = []
    for number, line in _numbered_lines(path):
        try:
            record = parse_json(line)
            texts.append(record["text"])
            rows.append(record["embedding"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f'{path}, row {number}: every line must be {{"text": ..., "embedding": [...]}}; received '
                f"{line[:60].decode('utf-8', errors='replace')!r}."
            ) from error
    return texts, _matrix(rows, path)


def _numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers; ModelError if a compressed file is truncated or damaged."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            yield from enumerate(stream, 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ModelError(f"{path} cannot be read to its end ({error}). Write it, or fetch it, again.") from error


def _matrix(rows: Sequence[Any], path: Path) -> Embeddings:
    try:
        return np.array(rows, dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path}: embeddings must be lists of numbers, all of one length ({error}).") from error


READERS: dict[str, Callable[[Path], tuple[list[str], Embeddings]]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".parquet": _read_parquet,
    ".jsonl": _read_jsonl,
}
"""The reader of a file, by the end of its name."""


WORD = re.compile(r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+|[^\w\s]", re.IGNORECASE)
SIF_A = 1e-3


class WordVectors:
    """An :data:`~samesense.types.Encode` that averages the vectors ``(words, dim)`` of a text's words: a baseline.

    A text is split into words: runs of letters and digits, English endings (n't, 's, 're and the like) separately, and
    single punctuation marks. A word is looked up as it is, then in lower case. Unknown words are skipped. A text
    without any known word gets the mean of all word vectors; such texts are counted
    (:mod:`samesense.execution.unread`).

    ``sif`` weights a word by a / (a + p), where p is its frequency by Zipf's law; the most frequent word must come
    first. Of a repeated word the first vector counts. ``protocol`` describes all of this. ModelError unless there are
    words with one finite vector each.

    Source: Pennington et al. 2014, "GloVe" (the vectors); Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for
        Sentence Embeddings" (the weights a / (a + p) of SIF, a = 0.001).
    Differs: the frequency p of a word follows Zipf's law for its rank in the file, as the files carry no counts. The
        second step of SIF, removing the first principal component, is left to whitening.
    """

    def __init__(self, words: Sequence[str], vectors: npt.NDArray[Any], *, sif: bool = False) -> None:
        if vectors.ndim != 2 or len(vectors) != len(words) or not len(words):
            raise ModelError(f"There must be one vector a word; received {len(words)} words and {vectors.shape}.")
        self._row_of: dict[str, int] = {}
        for row, word in enumerate(words):
            self._row_of.setdefault(word, row)
        self._vectors = vectors
        self._mean = vectors.mean(axis=0, dtype=np.float64)
        # one NaN or infinity anywhere shows in the mean, which saves a pass over all vectors
        if not np.isfinite(self._mean).all():
            bad = next(row for row in range(len(words)) if not np.isfinite(vectors[row]).all())
            raise ModelError(f"The vector of {words[bad]!r}, row {bad + 1}, holds a NaN or an infinity.")
        weighted = f"SIF weights (a = {SIF_A}, Zipf's law)" if sif else "equal weights"
        self.protocol = f"mean of word vectors, {weighted}, a text of no known word gets the mean of all"
        ranks = np.arange(1, len(words) + 1)
        frequencies = 1 / (ranks * (1 / ranks).sum())
        self._weights = SIF_A / (SIF_A + frequencies) if sif else np.ones(len(words))

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the averages, float32 ``(texts, dim)``, computed in float64."""
        out = np.empty((len(texts), len(self._mean)), dtype=np.float32)
        unknown: list[str] = []
        for index, text in enumerate(texts):
            rows = [row for word in WORD.findall(text) if (row := self._lookup(word)) is not None]
            if rows:
                weights = self._weights[rows]
                out[index] = weights @ self._vectors[rows].astype(np.float64) / weights.sum()
            else:
                out[index] = self._mean
                unknown.append(text)
        unread = Unread()
        unread.see(texts)
        for text in unknown:
            unread.unknown.add(text)
        note(unread, self)
        return out

    def pieces(self, texts: list[str]) -> list[Pieces]:
        """Return the words of each text as pieces: a known word as its row, an unknown word as itself."""
        return [_pieces_of_words([(word, self._lookup(word)) for word in WORD.findall(text)]) for text in texts]

    def _lookup(self, word: str) -> int | None:
        row = self._row_of.get(word)
        if row is not None:
            return row
        return self._row_of.get(word.lower())


def _pieces_of_words(words: list[tuple[str, int | None]]) -> Pieces:
    any_known = any(row is not None for _, row in words)
    return Pieces(tuple(word if row is None else row for word, row in words), len(words), any_known)


def read_words(path: Path, *, sif: bool = False) -> WordVectors:
    """Read word vectors; ModelError if there is no file, or a line breaks the format (its number is named).

    A text file has a word and its numbers per line, separated by spaces (GloVe), with or without a first line of two
    counts (word2vec, fastText), plain or ``.gz``; a folder holds ``vectors.npy`` and ``words.txt``. ``sif`` needs the
    most frequent words first, as in these files.
    """
    if path.is_dir():
        matrix = path / "vectors.npy"
        names = path / "words.txt"
        if not matrix.is_file() or not names.is_file():
            raise ModelError(f"A folder of word vectors holds vectors.npy and words.txt; {path} does not.")
        try:
            # As for texts: splitlines() would also split at other separators.
            words = names.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
            array = np.load(matrix, mmap_mode="r", allow_pickle=False)
        except DAMAGED as error:
            raise ModelError(f"{path} holds damaged word vectors ({error}). Write them again.") from error
        return WordVectors(words, array, sif=sif)
    if not path.is_file():
        raise ModelError(f"There are no word vectors at {path}. Give a text file of vectors, or a folder with them.")
    words = []
    vectors = []
    for word, vector in _parse_words(path):
        words.append(word)
        vectors.append(vector)
    return WordVectors(words, np.array(vectors, dtype=np.float32), sif=sif)


def _parse_words(path: Path) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    dim = 0
    for number, raw in _numbered_lines(path):
        line = raw.decode("utf-8", errors="replace").rstrip("\r\n ")
        if number == 1 and len(line.split(" ")) == 2 and all(field.isdigit() for field in line.split(" ")):
            continue  # word2vec's header: numbers of words and of dimensions
        dim = dim or line.count(" ")
        # From the right, as the words of some files hold spaces.
        word, *numbers = line.rsplit(" ", dim)
        try:
            # Too large a number becomes infinite, and is refused with its row later.
            with np.errstate(over="ignore"):
                vector = np.array(numbers, dtype=np.float32)
        except ValueError:
            vector = np.zeros(0, dtype=np.float32)
        if len(vector) != dim or dim == 0 or not word:
            raise ModelError(
                f"{path}, row {number}: every line must be a word and {dim or 'its'} numbers with single spaces "
                f"between; received {line[:60]!r}."
            )
        yield word, vector
