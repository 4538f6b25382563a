"""Word vectors averaged into sentence vectors: the baseline that any encoder should beat.

A text is cut into words: runs of letters and digits, with the English endings n't and 's, 're and the like apart, and
marks of punctuation one by one. A word is looked up as it stands, then in lower case. Unknown words are left out. A
text of no known word has the mean of all word vectors, so that it has a place without pointing anywhere; such texts
are counted and warned of.

Source: Pennington et al. 2014, "GloVe" (the vectors); Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for
    Sentence Embeddings" (the weights a / (a + p) of SIF, a = 0.001).
Differs: the share p of a word in running text is that of Zipf's law for its rank, the file's order, as the files carry
    no counts. SIF's other half, taking off the first principal component, is left to whitening.
"""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.types import Embeddings

WORD = re.compile(r"\w+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+|[^\w\s]", re.IGNORECASE)
SIF_A = 1e-3


class WordVectors:
    """An :data:`~samesense.types.Encode` that averages the vectors ``(words, dim)`` of a text's words.

    ``sif`` weights a word by a / (a + p), p its share in running text by Zipf's law: the most frequent word comes
    first. Of repeated words the first counts; ``protocol`` says all of this in words. ModelError if there is not one
    finite vector a word, or no word.
    """

    def __init__(self, words: Sequence[str], vectors: npt.NDArray[Any], *, sif: bool = False) -> None:
        if vectors.ndim != 2 or len(vectors) != len(words) or not len(words):
            raise ModelError(f"There must be one vector a word; received {len(words)} words and {vectors.shape}.")
        self._row: dict[str, int] = {}
        for row, word in enumerate(words):
            self._row.setdefault(word, row)
        self._vectors = vectors
        self._mean = vectors.mean(axis=0, dtype=np.float64)
        if not np.isfinite(self._mean).all():
            bad = next(row for row in range(len(words)) if not np.isfinite(vectors[row]).all())
            raise ModelError(f"The vector of {words[bad]!r}, row {bad + 1}, holds a NaN or an infinity.")
        weighted = f"SIF weights (a = {SIF_A}, Zipf's law)" if sif else "equal weights"
        self.protocol = f"mean of word vectors, {weighted}, a text of no known word gets the mean of all"
        ranks = np.arange(1, len(words) + 1)
        share = 1 / (ranks * (1 / ranks).sum())
        self._weights = SIF_A / (SIF_A + share) if sif else np.ones(len(words))

    def __call__(self, texts: Sequence[str]) -> Embeddings:
        """Return the averages, float32 ``(texts, dim)``, computed in float64."""
        out = np.empty((len(texts), len(self._mean)), dtype=np.float32)
        unknown: list[str] = []
        for at, text in enumerate(texts):
            rows = [row for word in WORD.findall(text) if (row := self._find(word)) is not None]
            if rows:
                weights = self._weights[rows]
                out[at] = weights @ self._vectors[rows].astype(np.float64) / weights.sum()
            else:
                out[at] = self._mean
                unknown.append(text)
        if unknown:
            warnings.warn(
                f"{len(unknown)} of {len(texts)} texts have no known word, {unknown[0][:60]!r} the first; "
                "they get the mean of all word vectors.",
                stacklevel=2,
            )
        return out

    def _find(self, word: str) -> int | None:
        row = self._row.get(word)
        return self._row.get(word.lower()) if row is None else row


def read_words(path: Path, *, sif: bool = False) -> WordVectors:
    """Read word vectors; ModelError if nothing is there, or a line breaks the format (its number is named).

    A text file holds a word and its numbers a line, spaces between (GloVe), with or without a first line of two counts
    (word2vec, fastText), plain or ``.gz``; a folder holds ``vectors.npy`` and ``words.txt``. ``sif`` needs the most
    frequent words first, as these files have them.
    """
    if path.is_dir():
        matrix, names = path / "vectors.npy", path / "words.txt"
        if not matrix.is_file() or not names.is_file():
            raise ModelError(f"A folder of word vectors holds vectors.npy and words.txt; {path} does not.")
        words = names.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return WordVectors(words, np.load(matrix, mmap_mode="r", allow_pickle=False), sif=sif)
    if not path.is_file():
        raise ModelError(f"There are no word vectors at {path}. Give a text file of vectors, or a folder with them.")
    words, vectors = [], []
    for word, vector in _parsed(path):
        words.append(word)
        vectors.append(vector)
    return WordVectors(words, np.array(vectors, dtype=np.float32), sif=sif)


def _parsed(path: Path) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    dim = 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            line = raw.decode("utf-8", errors="replace").rstrip("\r\n ")
            if number == 1 and len(line.split(" ")) == 2 and all(part.isdigit() for part in line.split(" ")):
                continue  # word2vec's header: how many words, how many dimensions
            dim = dim or line.count(" ")
            word, *numbers = line.rsplit(" ", dim)
            try:
                vector = np.array(numbers, dtype=np.float32)
            except ValueError:
                vector = np.zeros(0, dtype=np.float32)
            if len(vector) != dim or dim == 0 or not word:
                raise ModelError(
                    f"{path}, row {number}: every line must be a word and {dim or 'its'} numbers with single spaces "
                    f"between; received {line[:60]!r}."
                )
            yield word, vector
