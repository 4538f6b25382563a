"""Pairs of sentences that have a vector each: a pair costs a dot product, so few sentences give any number of pairs."""

from __future__ import annotations

import math

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import words
from samesense.context.harvest.plan import Mixture, PairKind, Planned
from samesense.errors import DataError, ModelError
from samesense.types import Embeddings, Floats, Indices

RUN = 8
"""Sentences in a row that are taken together, so that there are pairs of one section."""

NEAREST = 64
"""Most ranks from which a neighbour is drawn, the near ones more often."""

LOWEST_MEAN = -0.02
"""Mean score of random pairs of many sentences below which no encoder can learn: that of cosines is not below 0."""

LEAST_DEVIATION = 0.02
"""Deviation of scores below which there is nothing to learn."""

ENOUGH = 50
"""Random pairs from which their mean says something."""


def choose_sentences(corpus: Corpus, mixture: Mixture) -> Indices:
    """Return the sentences that take part, ``(n,)``: short runs of a section, drawn at random, no text twice."""
    ids = np.sort(np.unique(corpus.text_keys, return_index=True)[1]).astype(np.int64)
    starts = np.flatnonzero(np.append(True, np.diff(corpus.sections_of(ids)) != 0))
    within = np.arange(len(ids)) - np.repeat(starts, np.diff(np.append(starts, len(ids))))
    runs = np.split(ids, np.flatnonzero((within % RUN == 0)[1:]) + 1)
    chosen: list[int] = []
    for at in np.random.default_rng([mixture.seed, 2]).permutation(len(runs)):
        lengths = [len(words(corpus.sentence(int(i)))) for i in runs[at]]
        fits = [mixture.min_words <= length <= mixture.max_words for length in lengths]
        chosen += runs[at][fits].tolist()
        if len(chosen) >= mixture.sentences:
            break
    if len(chosen) < 2:
        raise DataError(
            f"A pair needs two different sentences; {corpus.folder} has {len(chosen)} of {mixture.min_words} to "
            f"{mixture.max_words} words."
        )
    return np.array(chosen[: mixture.sentences], dtype=np.int64)


def draw_pairs(corpus: Corpus, ids: Indices, vectors: Embeddings, mixture: Mixture) -> tuple[Planned, Floats]:
    """Return pairs in random order, and the scores of all of them, ``(pairs,)``.

    A pair has one kind: section if both sentences are in one section; otherwise neighbours if one is among the
    :func:`nearest_of` nearest of the other by their vectors; otherwise random. Kinds with a share of 0 do not exist. No
    pair comes twice; where a kind has fewer pairs than wanted, all of them are taken.

    Args:
        corpus: where the sentences stand.
        ids: the sentences, ``(n,)``.
        vectors: theirs, of unit length, ``(n, dim)``.
        mixture: how many pairs of which kinds.

    Raises:
        DataError: if there is no pair of these kinds.
    """
    chance = np.random.default_rng([mixture.seed, 3])
    sections = corpus.sections_of(ids) if mixture.section else np.arange(len(ids))
    near = _nearest(vectors, sections) if mixture.neighbours else np.empty((len(ids), 0), dtype=np.int64)
    shares: dict[PairKind, float] = {
        "random": mixture.random,
        "neighbours": mixture.neighbours,
        "section": mixture.section,
    }
    edges = np.floor(np.cumsum([0.0, *shares.values()]) / sum(shares.values()) * mixture.pairs + 0.5).astype(int)
    wanted = {kind: int(count) for kind, count in zip(shares, np.diff(edges), strict=True) if shares[kind] > 0}
    drawn = {
        "section": lambda count: _sample(_in_sections(sections), count, chance),
        "neighbours": lambda count: _near_pairs(near, count, chance),
        "random": lambda count: _random_pairs(sections, near, count, chance),
    }
    found = [(kind, drawn[kind](count)) for kind, count in wanted.items()]
    places = np.concatenate([pairs for _, pairs in found])
    if not len(places):
        raise DataError(
            f"{corpus.folder}: {len(ids)} sentences have no pair of the kinds asked for, {', '.join(wanted)}. Give the "
            "other kinds a share, or take documents with more sections."
        )
    kinds = [kind for kind, pairs in found for _ in range(len(pairs))]
    order = chance.permutation(len(places))
    first, second = places[order].T
    scores: Floats = np.einsum("nd,nd->n", vectors[first].astype(np.float64), vectors[second].astype(np.float64))
    return Planned(ids[first], ids[second], [kinds[at] for at in order], wanted), np.clip(scores, -1.0, 1.0)


def check_targets(planned: Planned, scores: Floats) -> None:
    """Raise ModelError if no encoder can learn the scores of these pairs by a cosine.

    ``n`` vectors of unit length have a mean cosine of ``-1 / (n - 1)`` or more. Pairs share sentences, so the standard
    error of their mean is that over sentences, which is not less than that of a U-statistic (Hoeffding 1948).
    """
    random = np.array([kind == "random" for kind in planned.kinds], dtype=bool)
    if random.sum() >= ENOUGH:
        sentences, places = np.unique(np.stack([planned.first, planned.second])[:, random], return_inverse=True)
        sums = np.bincount(places.ravel(), weights=np.tile(scores[random], 2))
        error = 2 * (sums / np.bincount(places.ravel())).std(ddof=1) / math.sqrt(len(sentences))
        mean = scores[random].mean()
        if mean + 3 * error < min(LOWEST_MEAN, -1 / (len(sentences) - 1)):
            raise ModelError(
                f"The scores of {random.sum()} random pairs of {len(sentences)} sentences have a mean of {mean:.3f}. "
                "The cosines of many vectors cannot have a mean below 0, so that no model could learn these scores. "
                "Make the Origin with another normalisation, or with a bank."
            )
    check_spread(scores)


def check_spread(scores: Floats) -> None:
    """Raise ModelError if all scores are alike."""
    if len(scores) >= ENOUGH and scores.std() < LEAST_DEVIATION:
        raise ModelError(
            f"The scores of {len(scores)} pairs have a deviation of {scores.std():.4f}: all are alike, and there is "
            "nothing to learn. Make the Origin with more contexts, or whiten it by other texts."
        )


def nearest_of(sentences: int) -> int:
    """Return how many sentences are neighbours of one, of so many: most pairs of few sentences are random ones too."""
    return max(1, min(NEAREST, sentences // 16))


def _nearest(vectors: Embeddings, sections: Indices) -> Indices:
    """Return the nearest sentences of each, best first, none of its own section, -1 where there is none."""
    found = np.full((len(vectors), nearest_of(len(vectors))), -1, dtype=np.int64)
    for start in range(0, len(vectors), 1024):
        scores = vectors[start : start + 1024] @ vectors.T
        scores[sections[start : start + 1024, None] == sections] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, : found.shape[1]]
        defined = np.take_along_axis(scores, order, axis=1) > -np.inf
        found[start : start + 1024] = np.where(defined, order, -1)
    return found


def _in_sections(sections: Indices) -> Indices:
    """Return all pairs of one section, ``(pairs, 2)``."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for section in np.unique(sections):
        members = np.flatnonzero(sections == section)
        pairs.append(members[np.stack(np.triu_indices(len(members), 1), axis=1)])
    return np.concatenate(pairs)


def _sample(pairs: Indices, count: int, chance: np.random.Generator) -> Indices:
    return pairs[np.sort(chance.permutation(len(pairs))[:count])]


def _near_pairs(near: Indices, count: int, chance: np.random.Generator) -> Indices:
    """Return pairs of sentences that are near each other, the nearest ones more often."""
    pairs = np.stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()], axis=1)
    weights = np.tile(1.0 / np.arange(1, near.shape[1] + 1), len(near))
    kept = near.ravel() >= 0
    pairs, first = np.unique(np.sort(pairs[kept], axis=1), axis=0, return_index=True)
    # the largest keys of u^(1/w) are a weighted sample without replacement (Efraimidis and Spirakis 2006)
    keys = np.log(chance.random(len(pairs))) / weights[kept][first]
    return pairs[np.sort(np.argsort(-keys, kind="stable")[:count])]


def _random_pairs(sections: Indices, near: Indices, count: int, chance: np.random.Generator) -> Indices:
    """Return pairs of different sections of which neither is among the nearest of the other."""
    n, found = len(sections), np.zeros((0, 2), dtype=np.int64)
    close = _codes(np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()], axis=1), n)
    for _ in range(20):
        pairs = np.sort(chance.integers(0, n, (2 * (count - len(found)) + 10, 2)), axis=1)
        pairs = pairs[sections[pairs[:, 0]] != sections[pairs[:, 1]]]
        pairs = np.concatenate([found, pairs[~np.isin(_codes(pairs, n), close)]])
        found = pairs[np.sort(np.unique(_codes(pairs, n), return_index=True)[1])][:count]
        if len(found) == count:
            break
    return found


def _codes(pairs: Indices, n: int) -> Indices:
    """Return one number a pair, the same whichever comes first."""
    ordered = np.sort(pairs, axis=1)
    return ordered[:, 0] * n + ordered[:, 1]
