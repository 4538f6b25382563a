"""Which pairs are labelled first: candidates among texts, and their order by what models make of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from samesense.errors import ConfigError
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.types import Encode, Floats, Indices, Pair, Score, Scores

PairsBy = Literal["bands", "neighbours", "disagreement", "random"]

CANDIDATES = 10_000
"""Pairs at most among which is chosen, unless more are wanted, as each is scored by the model, or by two."""

TEXTS = 20_000
"""Texts at most that are encoded; of more, these are drawn."""

NEAR = 5
"""Nearest texts of a text that are candidates with it."""

BANDS = 10
"""Ranges of the model's score, equally wide, that have their turn."""


def near_pairs(texts: Sequence[str], encode: Encode, count: int, rng: np.random.Generator) -> list[Pair]:
    """Return pairs of a text with one of the :data:`NEAR` nearest others, each pair once, in random order.

    There are ``count``, or all that there are if they are fewer. ``encode`` is asked for all texts.
    """
    vectors = unit_rows(encode(texts))
    sample = rng.permutation(len(texts))[: 1 + 2 * count // NEAR]  # two may be the nearest of each other
    best = [Best(NEAR + 1) for _ in sample]
    nearest(vectors[sample], lambda: [(np.arange(len(texts)), vectors)], best, NEAR + 1)
    index_pairs = dict.fromkeys(
        (min(row, neighbour), max(row, neighbour))
        for row, closest in zip(sample.tolist(), best, strict=True)
        for neighbour in closest.ids.tolist()
        if row != neighbour
    )
    return _shuffled([(texts[row], texts[neighbour]) for row, neighbour in index_pairs], rng)[:count]


def random_pairs(texts: Sequence[str], count: int, rng: np.random.Generator) -> list[Pair]:
    """Return pairs of two different texts drawn at random, each pair once; all that there are if they are fewer."""
    if len(texts) * (len(texts) - 1) // 2 <= 4 * count:  # of more, enough of the drawn ones differ
        return _shuffled(list(combinations(texts, 2)), rng)[:count]
    drawn = np.sort(rng.integers(len(texts), size=(2 * count + 100, 2)), axis=1).tolist()
    different = dict.fromkeys((left, right) for left, right in drawn if left != right)
    return [(texts[left], texts[right]) for left, right in list(different)[:count]]


def pairs_of(
    texts: Sequence[str], by: PairsBy, encode: Encode | None, count: int, rng: np.random.Generator
) -> list[Pair]:
    """Return candidates among texts: near ones, random ones (without an ``encode``), or half and half for all scores.

    They are about ``count``, or :data:`CANDIDATES` if that is more. ConfigError if there are not two different texts.
    """
    different, most = list(dict.fromkeys(texts)), max(count, CANDIDATES)
    if len(different) < 2:
        raise ConfigError(f"Pairs are made of two different texts or more; received {len(different)}.")
    if len(different) > TEXTS:
        different = [different[index] for index in np.sort(rng.permutation(len(different))[:TEXTS])]
    if encode is None:
        return random_pairs(different, most, rng)
    if by == "neighbours":
        return near_pairs(different, encode, most, rng)
    near = near_pairs(different, encode, most // 2, rng)
    pairs = [*near, *random_pairs(different, most - most // 2, rng)]
    return list({frozenset(pair): pair for pair in pairs}.values())


def some_of(pairs: Sequence[Pair], count: int, rng: np.random.Generator) -> list[Pair]:
    """Return different pairs of those given, in random order, ``count`` or :data:`CANDIDATES` at most."""
    different = {frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}
    return _shuffled(list(different.values()), rng)[: max(count, CANDIDATES)]


def ordered(
    pairs: list[Pair], by: PairsBy, score: Score | None, other: Score | None, rng: np.random.Generator
) -> list[Pair]:
    """Return the pairs in the order in which they should be labelled; any first part of it is a choice of that size.

    ``score`` is needed for bands and for disagreement, which is that within bands, ``other`` for disagreement; other
    orders are that of the pairs.

    Source: Thakur et al. 2021 (Augmented SBERT), section 3.1, chooses by neighbourhood (semantic search) and by the
    distribution of scores, from candidates drawn at random.
    Differs: bands are equally full, while there the scores follow the labels that are already there.
    """
    if score is None or by not in ("bands", "disagreement"):
        return pairs
    scores = score(pairs)
    first = rng.permutation(len(pairs)) if other is None else np.argsort(-disagreement(scores, other(pairs)))
    return [pairs[index] for index in in_bands(scores, first, rng)]


def in_bands(scores: Scores, order: Indices, rng: np.random.Generator) -> Indices:
    """Return places so that :data:`BANDS` equally wide ranges of the scores take turns while they have any left.

    In each range the places keep their ``order``.
    """
    edges = np.linspace(scores.min(), scores.max(), BANDS + 1)[1:-1]
    band = np.searchsorted(edges, scores[order], side="right")
    turn = np.empty(len(scores), dtype=np.int64)
    for number in range(BANDS):
        turn[band == number] = np.arange(np.count_nonzero(band == number))
    indices: Indices = order[np.lexsort((rng.permutation(BANDS)[band], turn))]
    return indices


def disagreement(one: Scores, other: Scores) -> Floats:
    """Return how far apart two models are on each pair, by scores of mean 0 and deviation 1.

    Not by ranks: those of unrelated pairs, which are the most, are chance, and would be furthest apart.
    """
    standard = [(scores - scores.mean()) / (scores.std() or 1.0) for scores in (one, other)]
    apart: Floats = np.abs(standard[0] - standard[1])
    return apart


def _shuffled(pairs: list[Pair], rng: np.random.Generator) -> list[Pair]:
    return [pairs[index] for index in rng.permutation(len(pairs))]
