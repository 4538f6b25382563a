"""Choose the pairs to label first: candidates among texts, ordered by the scores of models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from samesense.choices import PairsBy
from samesense.errors import ConfigError
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.types import Encode, Floats, Indices, Pair, Score, Scores

CANDIDATES = 10_000
"""Number of candidate pairs, unless more are requested; each is scored by one model or two."""

TEXTS = 20_000
"""Most texts that are encoded; of more, this number is sampled."""

NEAR = 5
"""Number of nearest neighbours of a text that are candidates with it."""

BANDS = 10
"""Number of equally wide ranges of the model's score, which take turns."""


def near_pairs(texts: Sequence[str], encode: Encode, count: int, rng: np.random.Generator) -> list[Pair]:
    """Return ``count`` pairs of a text and one of its :data:`NEAR` nearest neighbours, each once, in random order.

    They are fewer if there are not as many. All texts are encoded.
    """
    vectors = unit_rows(encode(texts))
    # Twice as many as needed, because two texts may be neighbours of each other.
    sample = rng.permutation(len(texts))[: 1 + 2 * count // NEAR]
    # One more than wanted, as a text finds itself.
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
    """Return ``count`` random pairs of two different texts, each once; fewer if there are not as many."""
    if len(texts) * (len(texts) - 1) // 2 <= 4 * count:  # with more pairs, enough of the drawn ones are distinct
        return _shuffled(list(combinations(texts, 2)), rng)[:count]
    # Twice as many as needed, since pairs come twice, or are of one text.
    drawn = np.sort(rng.integers(len(texts), size=(2 * count + 100, 2)), axis=1).tolist()
    different = dict.fromkeys((left, right) for left, right in drawn if left != right)
    return [(texts[left], texts[right]) for left, right in list(different)[:count]]


def pairs_of(
    texts: Sequence[str], by: PairsBy, encode: Encode | None, count: int, rng: np.random.Generator
) -> list[Pair]:
    """Return candidate pairs: near pairs for ``"neighbours"``, otherwise half near and half random pairs.

    Without ``encode`` all are random. There are about ``count``, or :data:`CANDIDATES` if that is more. ConfigError if
    there are fewer than two different texts.
    """
    different = list(dict.fromkeys(texts))
    most = max(count, CANDIDATES)
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
    # A near pair may have been drawn again as a random one.
    return list({frozenset(pair): pair for pair in pairs}.values())


def some_of(pairs: Sequence[Pair], count: int, rng: np.random.Generator) -> list[Pair]:
    """Return a random sample of distinct pairs, of ``count`` or, if that is more, :data:`CANDIDATES` pairs."""
    different = {frozenset(pair): pair for pair in pairs if pair[0] != pair[1]}
    return _shuffled(list(different.values()), rng)[: max(count, CANDIDATES)]


def ordered(
    pairs: list[Pair], by: PairsBy, score: Score | None, second_score: Score | None, rng: np.random.Generator
) -> list[Pair]:
    """Return the pairs in the order in which they should be labelled; any number of them from the start can be used.

    ``"bands"`` needs ``score``; ``"disagreement"``, which orders the pairs within bands, needs ``second_score`` as
    well. Otherwise the pairs keep their order.

    Source: Thakur et al. 2021 (Augmented SBERT), section 3.1, samples by semantic search and by the distribution of
    scores, from random candidates.
    Differs: bands are filled equally; there the scores follow the distribution of the existing labels.
    """
    if score is None or by not in ("bands", "disagreement"):
        return pairs
    scores = score(pairs)
    if second_score is None:
        order = rng.permutation(len(pairs))
    else:
        order = np.argsort(-disagreement(scores, second_score(pairs)))
    return [pairs[index] for index in in_bands(scores, order, rng)]


def in_bands(scores: Scores, order: Indices, rng: np.random.Generator) -> Indices:
    """Return indices such that :data:`BANDS` equally wide ranges of the scores take turns until they are empty.

    Within a range the indices keep their ``order``.
    """
    # Inner edges only: the ranges at both ends are open.
    edges = np.linspace(scores.min(), scores.max(), BANDS + 1)[1:-1]
    band = np.searchsorted(edges, scores[order], side="right")
    turn = np.empty(len(scores), dtype=np.int64)
    for number in range(BANDS):
        turn[band == number] = np.arange(np.count_nonzero(band == number))
    # Ranges take their turn in random order, so that a beginning of any length favours none.
    indices: Indices = order[np.lexsort((rng.permutation(BANDS)[band], turn))]
    return indices


def disagreement(first: Scores, second: Scores) -> Floats:
    """Return the distance of two models' standardized scores (mean 0, deviation 1) on each pair.

    Ranks are not used: among the many unrelated pairs they are random, and would differ the most.
    """
    standard = [(scores - scores.mean()) / (scores.std() or 1.0) for scores in (first, second)]
    apart: Floats = np.abs(standard[0] - standard[1])
    return apart


def _shuffled(pairs: list[Pair], rng: np.random.Generator) -> list[Pair]:
    return [pairs[index] for index in rng.permutation(len(pairs))]
