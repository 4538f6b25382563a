"""The sentences that a harvest pairs: each text of a corpus once, in random order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import Keys, words
from samesense.context.retrieval.postings import counted
from samesense.errors import DataError
from samesense.types import Indices

KNOWN_TEXTS = 1 << 18
"""Sentences whose words are kept: some 150 MB of English."""


class Population:
    """Distinct sentences, numbered by their positions in a random order.

    Sentences with the same words are copies, whatever their case and punctuation; the first one stands for all. It
    holds 32 bytes a sentence of the corpus, and the words of a bounded number. ``ids`` ``(n,)`` are the sentences of
    the corpus by position, ``positions`` ``(sentences,)`` the position of each sentence or of that which it is a copy
    of.
    """

    def __init__(self, corpus: Corpus, seed: int, min_words: int, max_words: int) -> None:
        self.corpus = corpus
        _, first, which = np.unique(corpus.text_keys, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise DataError(f"A pair needs two different sentences, and {corpus.folder} has {len(first)} in all.")
        order = np.random.default_rng([seed, 0]).permutation(len(first))
        self.ids: Indices = first[order].astype(np.int64)
        place = np.empty(len(first), dtype=np.int64)
        place[order] = np.arange(len(first))
        self.positions: Indices = place[which]
        self._least, self._most = min_words, max_words
        self._terms = lru_cache(maxsize=KNOWN_TEXTS)(self._read_terms)

    def __len__(self) -> int:
        return len(self.ids)

    def text(self, position: int) -> str:
        """Return the sentence at a position."""
        return self.corpus.sentence(int(self.ids[position]))

    def sections(self, positions: Indices) -> Indices:
        """Return the number of the section of each sentence, counted over the corpus."""
        return self.corpus.sections_of(self.ids[positions])

    def terms(self, position: int) -> Keys:
        """Return the distinct words and pairs of words of a sentence, ascending."""
        return self._terms(int(position))[0]

    def fitting(self, positions: Indices) -> Indices:
        """Return those of the positions whose sentences have as many words as asked for, in their order."""
        lengths = np.array([self._terms(int(at))[1] for at in positions], dtype=np.int64)
        fitting: Indices = positions[(lengths >= self._least) & (lengths <= self._most)]
        return fitting

    def _read_terms(self, position: int) -> tuple[Keys, int]:
        text = self.text(position)
        return counted([text], unigrams=True)[0], len(words(text))
