"""Pairs of sentences that have a vector each: a pair costs a dot product, so few sentences give any number of pairs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import words
from samesense.context.harvest.plan import Mixture, PairKind, Planned
from samesense.errors import ConfigError, DataError, ModelError
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

BLOCK_PAIRS, BLOCK_ROWS = 4096, 1024
"""Pairs, and sentences beside all others, that are looked at at once."""


def choose_sentences(corpus: Corpus, mixture: Mixture) -> Indices:
    """Return the sentences that take part, ``(n,)``: short runs of a section, drawn at random, no text twice.

    Raises:
        DataError: if fewer than two fit.
        ConfigError: if they have fewer pairs than are asked for.
    """
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
    chosen = chosen[: mixture.sentences]
    _check_pairs(corpus, len(chosen), mixture)
    return np.array(chosen, dtype=np.int64)


def _check_pairs(corpus: Corpus, sentences: int, mixture: Mixture) -> None:
    most = sentences * (sentences - 1) // 2
    if mixture.pairs > most:
        needed = math.isqrt(2 * mixture.pairs) + 1
        needed += needed * (needed - 1) // 2 < mixture.pairs
        more = (
            f"Raise sentences to {needed:,} at least"
            if sentences == mixture.sentences
            else f"{corpus.folder} has no more that fit: give more documents"
        )
        raise ConfigError(
            f"{sentences:,} sentences have {most:,} pairs; pairs is {mixture.pairs:,}. {more}, or lower pairs."
        )


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
        "section": lambda count: _section_pairs(sections, count, chance),
        "neighbours": lambda count: _near_pairs(near, count, chance),
        "random": lambda count: _random_pairs(sections, near, count, chance),
    }
    found = [drawn[kind](count) for kind, count in wanted.items()]
    codes = np.concatenate(found)
    if not len(codes):
        raise DataError(
            f"{corpus.folder}: {len(ids)} sentences have no pair of the kinds asked for, {', '.join(wanted)}. Give the "
            "other kinds a share, or take documents with more sections."
        )
    kinds = np.repeat(np.array(list(wanted), dtype=object), [len(part) for part in found])
    order = chance.permutation(len(codes))
    first, second = np.divmod(codes[order], len(ids))
    scores = np.empty(len(codes))
    for start in range(0, len(codes), BLOCK_PAIRS):
        part = slice(start, start + BLOCK_PAIRS)
        one, other = (vectors[side[part]].astype(np.float64) for side in (first, second))
        scores[part] = np.einsum("nd,nd->n", one, other)
    return Planned(ids[first], ids[second], kinds[order].tolist(), wanted), np.clip(scores, -1.0, 1.0)


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


def _near_pairs(near: Indices, count: int, chance: np.random.Generator) -> Indices:
    """Return pairs of sentences that are near each other, as numbers, the nearest ones more often."""
    codes, first = np.unique(_codes(near), return_index=True)
    weights = np.tile(1.0 / np.arange(1, near.shape[1] + 1), len(near))[near.ravel() >= 0][first]
    # the largest keys of u^(1/w) are a weighted sample without replacement (Efraimidis and Spirakis 2006)
    keys = np.log(chance.random(len(codes))) / weights
    return codes[np.sort(np.argsort(-keys, kind="stable")[:count])]


def _section_pairs(sections: Indices, count: int, chance: np.random.Generator) -> Indices:
    """Return pairs of one section, as numbers."""
    return _sample(len(sections), lambda rows: sections[rows, None] == sections, _within(sections), count, chance)


def _random_pairs(sections: Indices, near: Indices, count: int, chance: np.random.Generator) -> Indices:
    """Return pairs of different sections of which neither is among the nearest of the other, as numbers."""
    n, close = len(sections), np.unique(_codes(near))

    def allowed(rows: Indices) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = sections[rows, None] != sections
        lowest, end = np.searchsorted(close, [rows[0] * n, (rows[-1] + 1) * n])
        found.ravel()[close[lowest:end] - rows[0] * n] = False
        return found

    return _sample(n, allowed, n * (n - 1) // 2 - _within(sections) - len(close), count, chance)


def _sample(
    n: int,
    allowed: Callable[[Indices], npt.NDArray[np.bool_]],
    total: int,
    count: int,
    chance: np.random.Generator,
) -> Indices:
    """Return some of the pairs of ``n`` sentences that are allowed, each as likely as the others, as numbers.

    Pairs are never held but a block of rows at a time: all those of 20,000 sentences are 200 million. ``allowed`` says
    it of rows beside all sentences, ``(rows, n)``; ``total`` is how many pairs it allows.
    """
    ranks, before, found = _distinct(total, count, chance), 0, [np.zeros(0, dtype=np.int64)]
    for start in range(0, n, BLOCK_ROWS):
        rows = np.arange(start, min(n, start + BLOCK_ROWS))
        codes = np.flatnonzero(allowed(rows) & (rows[:, None] < np.arange(n))) + start * n
        lowest, end = np.searchsorted(ranks, [before, before + len(codes)])
        found.append(codes[ranks[lowest:end] - before])
        before += len(codes)
    return np.concatenate(found)


def _distinct(total: int, count: int, chance: np.random.Generator) -> Indices:
    """Return so many different numbers below ``total``, or all of them, ascending."""
    if 2 * count >= total:
        return np.sort(chance.permutation(total)[:count])
    found = np.unique(chance.integers(0, total, count))
    while len(found) < count:
        found = np.unique(np.append(found, chance.integers(0, total, count - len(found))))
    return found


def _within(sections: Indices) -> int:
    """Return how many pairs are of one section."""
    sizes = np.unique(sections, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def _codes(near: Indices) -> Indices:
    """Return a number for each sentence with each of its nearest: n times the lower place, and the higher one."""
    pairs = np.sort(np.stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()]), axis=0)
    codes: Indices = (pairs[0] * len(near) + pairs[1])[near.ravel() >= 0]
    return codes
