"""Pairs of sentences with vectors: a pair costs only a dot product, so few sentences give many pairs."""

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
"""Consecutive sentences that are chosen together, so that there are pairs of one section."""

NEAREST = 64
"""Most neighbours of a sentence; nearer ones are sampled more often."""

LOWEST_MEAN = -0.02
"""Mean score of random pairs below which no encoder can learn: the mean cosine of many vectors is at least about 0."""

LEAST_DEVIATION = 0.02
"""Standard deviation of scores below which there is nothing to learn."""

ENOUGH = 50
"""Fewest random pairs whose mean is tested."""

BLOCK_PAIRS = 4096
"""Pairs per block."""

BLOCK_ROWS = 1024
"""Sentences that are compared with all others per block."""


def choose_sentences(corpus: Corpus, mixture: Mixture) -> Indices:
    """Return the chosen sentences, ``(n,)``: random short runs within sections, without repeated texts.

    Raises:
        DataError: if fewer than two sentences fit.
        ConfigError: if they have fewer pairs than requested.
    """
    # Back in the order of the corpus, so that a run is of consecutive sentences.
    ids = np.sort(np.unique(corpus.text_keys, return_index=True)[1]).astype(np.int64)
    starts = np.flatnonzero(np.append(True, np.diff(corpus.sections_of(ids)) != 0))
    within = np.arange(len(ids)) - np.repeat(starts, np.diff(np.append(starts, len(ids))))
    runs = np.split(ids, np.flatnonzero((within % RUN == 0)[1:]) + 1)
    chosen: list[int] = []
    for number in np.random.default_rng([mixture.seed, 2]).permutation(len(runs)):
        run = runs[number]
        lengths = [len(words(corpus.sentence(int(i)))) for i in run]
        fits = [mixture.min_words <= length <= mixture.max_words for length in lengths]
        chosen += run[fits].tolist()
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
        # The root may be one sentence too few.
        needed += needed * (needed - 1) // 2 < mixture.pairs
        if sentences == mixture.sentences:
            advice = f"Raise sentences to {needed:,} at least"
        else:
            advice = f"{corpus.folder} has no more that fit: give more documents"
        raise ConfigError(
            f"{sentences:,} sentences have {most:,} pairs; pairs is {mixture.pairs:,}. {advice}, or lower pairs."
        )


def draw_pairs(corpus: Corpus, ids: Indices, vectors: Embeddings, mixture: Mixture) -> tuple[Planned, Floats]:
    """Return pairs in random order, and the scores of all of them, ``(pairs,)``.

    A pair has one kind: section if both sentences are in one section; otherwise neighbours if one is among the
    :func:`nearest_of` nearest of the other by their vectors; otherwise random. Kinds with a share of 0 are left out. No
    pair occurs twice; a kind with fewer pairs than requested gives all of them.

    Args:
        corpus: corpus of the sentences.
        ids: the sentences, ``(n,)``.
        vectors: their unit vectors, ``(n, dim)``.
        mixture: numbers of pairs by kind.

    Raises:
        DataError: if there is no pair of these kinds.
    """
    rng = np.random.default_rng([mixture.seed, 3])
    if mixture.section:
        sections = corpus.sections_of(ids)
    else:
        # Each sentence is a section of its own, and no pair is of this kind.
        sections = np.arange(len(ids))
    if mixture.neighbours:
        near = _nearest(vectors, sections)
    else:
        near = np.empty((len(ids), 0), dtype=np.int64)
    requested = _count_pairs_by_kind(mixture)
    samplers = {
        "section": lambda count: _section_pairs(sections, count, rng),
        "neighbours": lambda count: _near_pairs(near, count, rng),
        "random": lambda count: _random_pairs(sections, near, count, rng),
    }
    samples = [samplers[kind](count) for kind, count in requested.items()]
    codes = np.concatenate(samples)
    if not len(codes):
        raise DataError(
            f"{corpus.folder}: {len(ids)} sentences have no pair of the kinds asked for, {', '.join(requested)}. Give "
            "the other kinds a share, or take documents with more sections."
        )
    kinds = np.repeat(np.array(list(requested), dtype=object), [len(sample) for sample in samples])
    order = rng.permutation(len(codes))
    first, second = np.divmod(codes[order], len(ids))
    planned = Planned(ids[first], ids[second], kinds[order].tolist(), requested)
    return planned, _score_pairs(vectors, first, second)


def _count_pairs_by_kind(mixture: Mixture) -> dict[PairKind, int]:
    """Return the number of pairs of each kind that has a share."""
    shares: dict[PairKind, float] = {
        "random": mixture.random,
        "neighbours": mixture.neighbours,
        "section": mixture.section,
    }
    # Cumulative sums are rounded, not the counts, so that these add up to all pairs.
    edges = np.floor(np.cumsum([0.0, *shares.values()]) / sum(shares.values()) * mixture.pairs + 0.5).astype(int)
    return {kind: int(count) for kind, count in zip(shares, np.diff(edges), strict=True) if shares[kind] > 0}


def _score_pairs(vectors: Embeddings, first: Indices, second: Indices) -> Floats:
    """Return the cosines of pairs of unit vectors, block by block, in float64."""
    scores = np.empty(len(first))
    for start in range(0, len(first), BLOCK_PAIRS):
        block = slice(start, start + BLOCK_PAIRS)
        first_vectors = vectors[first[block]].astype(np.float64)
        second_vectors = vectors[second[block]].astype(np.float64)
        scores[block] = np.einsum("nd,nd->n", first_vectors, second_vectors)
    return np.clip(scores, -1.0, 1.0)


def check_targets(planned: Planned, scores: Floats) -> None:
    """Raise ModelError if no encoder can fit the scores of these pairs by a cosine.

    The mean cosine of ``n`` unit vectors is at least ``-1 / (n - 1)``. Pairs share sentences, so the standard error of
    their mean is computed over sentences, which is at least that of a U-statistic (Hoeffding 1948).
    """
    random = np.array([kind == "random" for kind in planned.kinds], dtype=bool)
    if random.sum() >= ENOUGH:
        sentences, inverse = np.unique(np.stack([planned.first, planned.second])[:, random], return_inverse=True)
        sums = np.bincount(inverse.ravel(), weights=np.tile(scores[random], 2))
        error = 2 * (sums / np.bincount(inverse.ravel())).std(ddof=1) / math.sqrt(len(sentences))
        mean = scores[random].mean()
        if mean + 3 * error < min(LOWEST_MEAN, -1 / (len(sentences) - 1)):
            raise ModelError(
                f"The scores of {random.sum()} random pairs of {len(sentences)} sentences have a mean of {mean:.3f}. "
                "The cosines of many vectors cannot have a mean below 0, so that no model could learn these scores. "
                "Make the Origin with another normalisation, or by next words."
            )
    check_spread(scores)


def check_spread(scores: Floats) -> None:
    """Raise ModelError if the scores hardly vary."""
    if len(scores) >= ENOUGH and scores.std() < LEAST_DEVIATION:
        raise ModelError(
            f"The scores of {len(scores)} pairs have a deviation of {scores.std():.4f}: all are alike, and there is "
            "nothing to learn. Make the Origin of other documents, or fit it on other texts."
        )


def nearest_of(sentences: int) -> int:
    """Return the number of neighbours of a sentence among ``sentences``; of few sentences most pairs stay random."""
    return max(1, min(NEAREST, sentences // 16))


def _nearest(vectors: Embeddings, sections: Indices) -> Indices:
    """Return the nearest sentences of each from other sections, best first, -1 where there is none."""
    nearest = np.full((len(vectors), nearest_of(len(vectors))), -1, dtype=np.int64)
    for start in range(0, len(vectors), 1024):
        scores = vectors[start : start + 1024] @ vectors.T
        # This also leaves a sentence out of its own neighbours.
        scores[sections[start : start + 1024, None] == sections] = -np.inf
        # Stable, so that ties have one order on every machine.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : nearest.shape[1]]
        defined = np.take_along_axis(scores, order, axis=1) > -np.inf
        nearest[start : start + 1024] = np.where(defined, order, -1)
    return nearest


def _near_pairs(near: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Return the codes of neighbour pairs; nearer ones are sampled more often."""
    codes, first = np.unique(_codes(near), return_index=True)
    weights = np.tile(1.0 / np.arange(1, near.shape[1] + 1), len(near))[near.ravel() >= 0][first]
    # the largest of the keys u^(1/w) are a weighted sample without replacement (Efraimidis and Spirakis 2006)
    keys = np.log(rng.random(len(codes))) / weights
    return codes[np.sort(np.argsort(-keys, kind="stable")[:count])]


def _section_pairs(sections: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Return the codes of pairs within a section."""
    return _sample(len(sections), lambda rows: sections[rows, None] == sections, _within(sections), count, rng)


def _random_pairs(sections: Indices, near: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Return the codes of pairs from different sections that are no neighbours."""
    n = len(sections)
    close = np.unique(_codes(near))

    def allowed(rows: Indices) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = sections[rows, None] != sections
        # The codes are sorted, so those of these rows are one slice.
        lowest, end = np.searchsorted(close, [rows[0] * n, (rows[-1] + 1) * n])
        # The ravel of a contiguous array is a view, so this writes into the mask.
        mask.ravel()[close[lowest:end] - rows[0] * n] = False
        return mask

    return _sample(n, allowed, n * (n - 1) // 2 - _within(sections) - len(close), count, rng)


def _sample(
    n: int,
    allowed: Callable[[Indices], npt.NDArray[np.bool_]],
    total: int,
    count: int,
    rng: np.random.Generator,
) -> Indices:
    """Return the codes of a uniform sample of the allowed pairs of ``n`` sentences.

    Pairs are enumerated by blocks of rows: 20,000 sentences have 200 million. ``allowed`` returns the mask of allowed
    pairs for a block of rows, ``(rows, n)``; ``total`` is the number of allowed pairs.
    """
    # Ranks in the order in which the allowed pairs are enumerated below.
    ranks = _distinct(total, count, rng)
    before = 0  # allowed pairs in earlier blocks
    samples = [np.zeros(0, dtype=np.int64)]
    for start in range(0, n, BLOCK_ROWS):
        rows = np.arange(start, min(n, start + BLOCK_ROWS))
        codes = np.flatnonzero(allowed(rows) & (rows[:, None] < np.arange(n))) + start * n
        lowest, end = np.searchsorted(ranks, [before, before + len(codes)])
        samples.append(codes[ranks[lowest:end] - before])
        before += len(codes)
    return np.concatenate(samples)


def _distinct(total: int, count: int, rng: np.random.Generator) -> Indices:
    """Return ``count`` distinct random numbers below ``total``, or all of them, ascending."""
    # With most numbers taken, drawing until all are distinct would take long.
    if 2 * count >= total:
        return np.sort(rng.permutation(total)[:count])
    numbers = np.unique(rng.integers(0, total, count))
    while len(numbers) < count:
        numbers = np.unique(np.append(numbers, rng.integers(0, total, count - len(numbers))))
    return numbers


def _within(sections: Indices) -> int:
    """Return the number of pairs within a section."""
    sizes = np.unique(sections, return_counts=True)[1]
    return int((sizes * (sizes - 1) // 2).sum())


def _codes(near: Indices) -> Indices:
    """Return a code for each sentence with each of its neighbours: n times the lower index, plus the higher one."""
    pairs = np.sort(np.stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()]), axis=0)
    codes: Indices = (pairs[0] * len(near) + pairs[1])[near.ravel() >= 0]
    return codes
