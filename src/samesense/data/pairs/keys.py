"""What makes two texts, or two pairs, one and the same; as numbers of 64 bits, so that memory need not hold texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from samesense.types import Pair

Keys = npt.NDArray[np.uint64]
"""A number for each text or pair, equal for equal ones.

Of ten million texts, two differ and have one number with a probability of 0.000003. Numbers differ from process to
process, so that none is stored, and no result may depend on their order.
"""

Groups = npt.NDArray[np.intp]
"""The group of each row, from 0, in the order of their first rows."""

_ODD = np.uint64(0x9E3779B97F4A7C15)


def text_keys(texts: Iterable[str]) -> Keys:
    """Return the keys of texts."""
    return np.fromiter(map(hash, texts), np.int64).view(np.uint64)


def plain_keys(texts: Iterable[str]) -> Keys:
    """Return the keys of what :func:`plain_text` makes of texts."""
    return text_keys(map(plain_text, texts))


def pair_keys(first: Keys, second: Keys) -> Keys:
    """Return the keys of pairs, by those of their texts, whichever comes first."""
    keys: Keys = np.minimum(first, second) * _ODD + np.maximum(first, second)
    return keys


def same(keys: Keys) -> Groups:
    """Return the groups of equal keys."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def components(first: Keys, second: Keys) -> Groups:
    """Return the connected components of pairs by their texts."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(first):
        return np.zeros(0, np.intp)
    texts, number = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, other = number[: len(first)], number[len(first) :]
    graph = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(len(texts), len(texts)))
    return same(connected_components(graph, directed=False)[1][one])


def pair_key(first: str, second: str) -> Pair:
    """Return what two spellings of one pair share: letters in one case, the smaller sentence first."""
    one, two = first.casefold(), second.casefold()
    return (one, two) if one <= two else (two, one)


class _DropPunctuation(dict[int, int | None]):
    """Translation table that deletes punctuation, filled as characters are met."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_TABLE = _DropPunctuation()


def plain_pair(first: str, second: str) -> Pair:
    """Return what two spellings of one pair share when punctuation and spaces count as little as case and order.

    A sentence of punctuation alone is taken as it is.
    """
    one, two = plain_text(first), plain_text(second)
    return (one, two) if one <= two else (two, one)


def plain_text(text: str) -> str:
    """Return a text in one case, without punctuation, with single spaces; as it is if it is of punctuation alone."""
    return " ".join(text.casefold().translate(_TABLE).split()) or text.casefold()


def sentences_of(pairs: Iterable[Pair]) -> set[str]:
    """Return the sentences of pairs."""
    return {text for pair in pairs for text in pair}
