"""Detect texts that differ in what the model did not read, so that close vectors do not mean the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from samesense.encoder.pieces import Pieces, differ_unread
from samesense.encoder.windows import BLOCK_TEXTS, Reading
from samesense.types import Indices


class Unlike:
    """Compares texts by what was not read of them: after the truncation, or unknown to the tokenizer.

    Texts are tokenised when they are first compared.
    """

    def __init__(self, texts: Sequence[str], *readings: Reading | None, in_windows: bool = False) -> None:
        """Store texts and the ways in which they are read.

        A reading of ``None`` means that all of a text is read; ``in_windows`` that long texts are read to their ends.
        """
        self._readers = [_ReadTexts(texts, reading, in_windows) for reading in readings if reading is not None]

    def __call__(self, first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts, given by index, differ in what any of the readings did not read ``(pairs,)``."""
        unlike = np.zeros(len(first), dtype=bool)
        for reader in self._readers:
            unlike |= reader.differ(first, second)
        return unlike


class _ReadTexts:
    """Texts as one reading sees them; hashes decide first, as comparing pieces is slow."""

    def __init__(self, texts: Sequence[str], reading: Reading, in_windows: bool) -> None:
        self._texts = texts
        self._in_windows = in_windows
        self._pieces_of = reading.pieces_of
        count = len(texts)
        self._tokenized = np.zeros(count, dtype=bool)
        self._incomplete = np.zeros(count, dtype=bool)  # truncated, or with pieces that the tokenizer does not know
        self._strange = np.zeros(count, dtype=np.int64)  # hash of the characters unknown to the tokenizer
        self._end = np.zeros(count, dtype=np.int64)  # hash of the last piece
        self._pieces: dict[int, Pieces] = {}  # of the incomplete texts: those of all would take most of the memory

    def differ(self, first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts differ in what was not read ``(pairs,)``."""
        self._tokenize(np.union1d(first, second))
        differ: npt.NDArray[np.bool_] = self._strange[first] != self._strange[second]
        unread = ~differ & (self._incomplete[first] | self._incomplete[second])
        differ |= unread & (self._end[first] != self._end[second])
        open_pairs = np.flatnonzero(unread & ~differ)
        pieces = self._pieces_of_both(first[open_pairs], second[open_pairs])
        for index in open_pairs.tolist():
            differ[index] = differ_unread(pieces[int(first[index])], pieces[int(second[index])])
        return differ

    def _tokenize(self, indices: Indices) -> None:
        """Tokenise the texts that are not tokenised yet."""
        new = indices[~self._tokenized[indices]]
        for number, pieces in self._read(new):
            self._incomplete[number] = pieces.cut or not pieces.has_known
            if pieces.strange:
                self._strange[number] = hash(pieces.strange)
            self._end[number] = hash(pieces.all[-1:])
            if self._incomplete[number]:
                self._pieces[number] = pieces
        self._tokenized[new] = True

    def _pieces_of_both(self, first: Indices, second: Indices) -> dict[int, Pieces]:
        """Return the pieces of tokenised texts by their numbers; complete ones are tokenised again."""
        numbers = np.union1d(first, second)
        incomplete = self._incomplete[numbers]
        stored = {number: self._pieces[number] for number in numbers[incomplete].tolist()}
        return stored | dict(self._read(numbers[~incomplete]))

    def _read(self, numbers: Indices) -> Iterator[tuple[int, Pieces]]:
        """Yield the number and the pieces of texts, tokenised a block at a time."""
        for start in range(0, len(numbers), BLOCK_TEXTS):
            block = numbers[start : start + BLOCK_TEXTS].tolist()
            pieces_of_block = self._pieces_of([self._texts[number] for number in block])
            for number, pieces in zip(block, pieces_of_block, strict=True):
                if self._in_windows and pieces.cut:
                    pieces = replace(pieces, read=len(pieces.all))
                yield number, pieces
