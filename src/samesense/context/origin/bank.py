"""One bank of contexts for all sentences: windows of the corpus, of which the text after the centre is what counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from samesense.context.corpus.corpus import Corpus, Window
from samesense.errors import ConfigError, DataError
from samesense.failures import DAMAGED
from samesense.files import write_array
from samesense.types import Indices

WINDOWS, TAILS = "windows.npy", "tails.npy"


@dataclass(frozen=True)
class Bank:
    """Windows that every sentence is put into, with the beginning of what comes after each."""

    windows: Indices  # numbers of the windows in the corpus, (windows,)
    tails: Indices  # the first tokens of their right sides, equally many of each, (windows, tokens)

    @classmethod
    def draw(
        cls, corpus: Corpus, tokens_of: Callable[[Window], list[int]], *, windows: int, tokens: int, seed: int
    ) -> Bank:
        """Draw windows at random whose right sides have ``tokens`` tokens or more, no two of them the same.

        A smaller bank of the same seed is the beginning of a larger one.

        Raises:
            ConfigError: if the corpus has too few.
        """
        found: dict[tuple[int, ...], int] = {}
        for i in np.random.default_rng(seed).permutation(corpus.windows):
            tail = tuple(tokens_of(corpus.window(int(i)))[:tokens])
            if len(tail) == tokens:
                found.setdefault(tail, int(i))
            if len(found) == windows:
                break
        if len(found) < windows:
            raise ConfigError(
                f"A bank of {windows} windows was asked for, and the corpus has {len(found)} with {tokens} tokens "
                "after the centre. Ask for fewer windows or tokens, or give more documents."
            )
        return cls(np.array(list(found.values()), dtype=np.int64), np.array(list(found), dtype=np.int64))

    @classmethod
    def read(cls, folder: Path) -> Bank:
        """Read what :meth:`write` wrote; DataError if it is missing or damaged."""
        try:
            windows, tails = (np.load(folder / name, allow_pickle=False) for name in (WINDOWS, TAILS))
        except DAMAGED as error:
            raise DataError(f"{folder} holds no whole bank of contexts ({error}). Make the Origin anew.") from error
        if not (windows.dtype == tails.dtype == np.int64 and windows.shape == tails.shape[:1] and tails.ndim == 2):
            raise DataError(
                f"{folder} holds no bank of contexts: its arrays are of other shapes. Make the Origin anew."
            )
        return cls(windows, tails)

    def write(self, folder: Path) -> None:
        """Write it as two arrays; the folder is made."""
        write_array(folder / WINDOWS, self.windows)
        write_array(folder / TAILS, self.tails)
