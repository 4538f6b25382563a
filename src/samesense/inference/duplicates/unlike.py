"""Texts that are different however close their vectors, since they differ in what the model did not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from samesense.encoder.pieces import Pieces, differ_unread
from samesense.encoder.windows import Reading
from samesense.types import Indices

BLOCK_TEXTS = 4096
"""Texts that are tokenised at once."""


class Unlike:
    """Compares texts by what was not read of them: behind the cut, or unknown to the tokenizer.

    Only texts that are compared are tokenised, each once.
    """

    def __init__(self, texts: Sequence[str], *readings: Reading | None, in_windows: bool = False) -> None:
        """Take texts and how they are read, ``None`` for wholly, or in which ways; ``in_windows`` to their ends."""
        self._each = [_Read(texts, reading, in_windows) for reading in readings if reading is not None]

    def __call__(self, first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts, by their numbers, differ in what was not read in some way ``(pairs,)``."""
        unlike = np.zeros(len(first), dtype=bool)
        for each in self._each:
            unlike |= each.differ(first, second)
        return unlike


class _Read:
    """Texts as they are read in one way."""

    def __init__(self, texts: Sequence[str], reading: Reading, in_windows: bool) -> None:
        self._texts, self._in_windows, self._pieces_of = texts, in_windows, reading.pieces_of
        count = len(texts)
        self._seen, self._looked_at = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        self._strange, self._end = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._pieces: dict[int, Pieces] = {}

    def differ(self, first: Indices, second: Indices) -> npt.NDArray[np.bool_]:
        """Return which pairs of texts differ in what was not read ``(pairs,)``."""
        self._look(np.union1d(first, second))
        differ: npt.NDArray[np.bool_] = self._strange[first] != self._strange[second]
        closer = ~differ & (self._looked_at[first] | self._looked_at[second])
        differ |= closer & (self._end[first] != self._end[second])
        for index in np.flatnonzero(closer & ~differ).tolist():
            differ[index] = differ_unread(self._pieces[int(first[index])], self._pieces[int(second[index])])
        return differ

    def _look(self, wanted: Indices) -> None:
        """Tokenise texts that were not looked at yet."""
        new = wanted[~self._seen[wanted]]
        for start in range(0, len(new), BLOCK_TEXTS):
            block = new[start : start + BLOCK_TEXTS].tolist()
            pieces_of_block = self._pieces_of([self._texts[number] for number in block])
            for number, pieces in zip(block, pieces_of_block, strict=True):
                self._keep(number, pieces)
        self._seen[new] = True

    def _keep(self, number: int, pieces: Pieces) -> None:
        if self._in_windows and pieces.cut:
            pieces = replace(pieces, read=len(pieces.all))
        self._looked_at[number] = pieces.cut or not pieces.known
        if pieces.strange:
            self._strange[number] = hash(pieces.strange)
        self._end[number] = hash(pieces.all[-1:])
        self._pieces[number] = pieces
