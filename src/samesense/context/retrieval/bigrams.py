"""Words and pairs of neighbouring words as 64-bit keys, counted."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.words import Keys, key, words

FORMAT = 1
"""Changes when the same text gets other keys, so that no older index is read with them."""

_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)

_word_key = lru_cache(maxsize=1 << 18)(key)


def term_keys(text: str, unigrams: bool) -> Keys:
    """Return the keys of the terms of one sentence, repeated ones as often as they come.

    The pair of two words is hashed in order. Keys of 64 bits collide with a chance of 3 in 100 million among a million
    terms.

    Args:
        text: the sentence.
        unigrams: take its words as well as its pairs of words.

    Returns:
        Pairs from left to right, then words; ``(terms,)``.
    """
    found = words(text)
    single = np.fromiter((_word_key(word) for word in found), dtype=np.uint64, count=len(found))
    pairs = _mixed(single[:-1] * _FIRST + _mixed(single[1:] ^ _SECOND))
    return np.concatenate([pairs, single]) if unigrams else pairs


def counted(texts: Iterable[str], unigrams: bool) -> tuple[Keys, npt.NDArray[np.int64]]:
    """Return the distinct terms of some sentences, ascending, and how often each comes; no pair crosses sentences."""
    found = [term_keys(text, unigrams) for text in texts]
    return np.unique(np.concatenate(found) if found else np.zeros(0, dtype=np.uint64), return_counts=True)


def _mixed(keys: Keys) -> Keys:
    """Spread every bit of a key over all others (the finaliser of splitmix64, Steele et al. 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
