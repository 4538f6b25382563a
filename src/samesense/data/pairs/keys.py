"""Keys that decide when two texts or pairs are the same, as 64-bit hashes, so that texts need not stay in memory."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from samesense.types import Pair

Keys = npt.NDArray[np.uint64]
"""A hash of each text or pair.

Among ten million texts, two different ones collide with a probability of 0.000003. Hashes differ from process to
process, so they are never stored, and no result may depend on their order.
"""

Groups = npt.NDArray[np.intp]
"""The group number of each row; groups are numbered from 0 by their first row."""

# odd, so that multiplication modulo 2**64 is invertible and loses no bits
_ODD = np.uint64(0x9E3779B97F4A7C15)


def text_keys(texts: Iterable[str]) -> Keys:
    """Return the keys of texts."""
    return np.fromiter(map(hash, texts), np.int64).view(np.uint64)


def plain_keys(texts: Iterable[str]) -> Keys:
    """Return the keys of texts normalized by :func:`plain_text`."""
    return text_keys(map(plain_text, texts))


def pair_keys(first: Keys, second: Keys) -> Keys:
    """Return the keys of pairs from those of their texts, the same for both orders of the texts."""
    keys: Keys = np.minimum(first, second) * _ODD + np.maximum(first, second)
    return keys


def group_equal(keys: Keys) -> Groups:
    """Return the group of each key; equal keys are one group."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    # np.unique numbers by value; groups are numbered by their first row.
    rank = np.empty(len(first), np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def components(first: Keys, second: Keys) -> Groups:
    """Return the connected component of each pair; pairs that share a text are connected."""
    # Loads SciPy, which only a split needs.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(first):
        return np.zeros(0, np.intp)
    # Texts become the nodes of a graph, pairs its edges.
    texts, number = np.unique(np.concatenate([first, second]), return_inverse=True)
    first_number = number[: len(first)]
    second_number = number[len(first) :]
    edges = np.ones(len(first), np.int8)
    graph = coo_array((edges, (first_number, second_number)), shape=(len(texts), len(texts)))
    return group_equal(connected_components(graph, directed=False)[1][first_number])


def pair_key(first: str, second: str) -> Pair:
    """Return a pair normalized for comparison: in lower case and sorted."""
    folded1 = first.casefold()
    folded2 = second.casefold()
    if folded1 <= folded2:
        return folded1, folded2
    return folded2, folded1


class _DropPunctuation(dict[int, int | None]):
    """Translation table that deletes punctuation; it caches each character on first use."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_TABLE = _DropPunctuation()


def plain_pair(first: str, second: str) -> Pair:
    """Return a pair normalized for comparison without case, punctuation, whitespace and order.

    A sentence of nothing but punctuation stays as it is.
    """
    plain1 = plain_text(first)
    plain2 = plain_text(second)
    if plain1 <= plain2:
        return plain1, plain2
    return plain2, plain1


def plain_text(text: str) -> str:
    """Return a text in lower case, without punctuation, with single spaces; punctuation alone is kept."""
    # Texts such as "?!" and "..." would all become empty, and so the same.
    return " ".join(text.casefold().translate(_TABLE).split()) or text.casefold()


def sentences_of(pairs: Iterable[Pair]) -> set[str]:
    """Return the set of all sentences of pairs."""
    return {text for pair in pairs for text in pair}
