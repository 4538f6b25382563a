"""Units of a harvest: small sets of sentences all of whose pairs are scored, which shares the cost of a sentence.

Each kind numbers its units, and no pair is in two units of a kind. A unit is a function of the population, the settings
and its number, so that workers need not communicate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from samesense.context.corpus.corpus import Corpus, spans
from samesense.context.corpus.words import Keys, words
from samesense.context.retrieval.postings import counted, top_k
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import DataError
from samesense.types import Floats, Indices

KNOWN_TEXTS = 1 << 18
"""Sentences whose words are cached: some 150 MB of English."""

SWEEPS = 4
"""Number of sweeps with each spacing, each with other leaders."""

DEPTH = 4
"""Nearest neighbours to search, in spacings: a leader is among them with a probability of 1 - exp(-4)."""

SENTENCES_PER_LEADER = 32
"""A spacing is used if the corpus has at least this many times as many sentences, so that most pairs stay random."""

KNOWN_NEIGHBOURS = 8192
"""Sentences whose neighbours are cached: 17 MB at the default spacings."""

KNOWN_LEADERS = 1 << 18
"""Sentences whose leaders are cached: some 60 MB."""


class Population:
    """Distinct sentences, numbered by their positions in a random order.

    Sentences with the same words are copies, regardless of case and punctuation; the first represents all. Memory is 32
    bytes per sentence of the corpus, and the words of a bounded number of them. ``ids`` ``(n,)`` are the sentences of
    the corpus by position, ``positions`` ``(sentences,)`` the position of each sentence or of its representative.
    """

    def __init__(self, corpus: Corpus, seed: int, min_words: int, max_words: int) -> None:
        self.corpus = corpus
        _, first, inverse = np.unique(corpus.text_keys, return_index=True, return_inverse=True)
        if len(first) < 2:
            raise DataError(f"A pair needs two different sentences, and {corpus.folder} has {len(first)} in all.")
        order = np.random.default_rng([seed, 0]).permutation(len(first))
        self.ids: Indices = first[order].astype(np.int64)
        # The inverse of the permutation, as positions are asked for by sentence.
        ranks = np.empty(len(first), dtype=np.int64)
        ranks[order] = np.arange(len(first))
        self.positions: Indices = ranks[inverse]
        self._least = min_words
        self._most = max_words
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
        """Return the positions of sentences with ``min_words`` to ``max_words`` words, in their order."""
        lengths = np.array([self._terms(int(position))[1] for position in positions], dtype=np.int64)
        return positions[(lengths >= self._least) & (lengths <= self._most)]

    def _read_terms(self, position: int) -> tuple[Keys, int]:
        text = self.text(position)
        return counted([text], unigrams=True)[0], len(words(text))


class RandomUnits:
    """Units of random sentences; no two units share more than one sentence.

    The sentences, in random order, fill a table of p columns, column by column, with p prime. Unit (r, g) takes from
    each row a the column (g + r a) mod p. Two sentences of different rows are in one unit for exactly one r, as p is
    prime; two of the same row never are. Every r is a partition, so that all sentences occur equally often; and as the
    order is random, every pair of sentences is equally likely.

    Source: transversal designs, e.g. Stinson 2004, "Combinatorial Designs", section 6.
    """

    def __init__(self, population: Population, size: int) -> None:
        self._population = population
        self._rows = max(2, min(size, math.isqrt(len(population))))
        # At least as many columns as rows, or two rows would be alike modulo p.
        self._columns = _prime_from(max(self._rows, -(-len(population) // self._rows)))

    def __len__(self) -> int:
        return self._columns**2

    def members(self, unit: int) -> Indices:
        """Return the positions of the sentences of a unit."""
        turn, column = divmod(unit, self._columns)
        rows = np.arange(self._rows, dtype=np.int64)
        candidates = (column + turn * rows) % self._columns * self._rows + rows
        # The table has more cells than there are sentences.
        return self._population.fitting(candidates[candidates < len(self._population)])


class SectionUnits:
    """Units of sentences of one section; longer sections are split into units."""

    def __init__(self, population: Population, size: int, seed: int) -> None:
        self._population = population
        sections = population.sections(np.arange(len(population), dtype=np.int64))
        # Stable, so that the sentences of a section keep their random order.
        self._order: Indices = np.argsort(sections, kind="stable")
        lengths = np.unique(sections, return_counts=True)[1]
        self.single = len(lengths) == 1
        cuts = -(-lengths // size)
        pieces = np.repeat(np.cumsum(lengths) - lengths, cuts)
        numbers = spans(np.zeros_like(cuts), cuts)  # of the units within their section
        starts = pieces + numbers * np.repeat(lengths, cuts) // np.repeat(cuts, cuts)
        ends = np.append(starts[1:], len(population))
        drawn = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(ends - starts > 1))
        self._starts = starts[drawn]
        self._ends = ends[drawn]

    def __len__(self) -> int:
        return len(self._starts)

    def pairs(self) -> int:
        """Return the number of pairs in all units, including too short and too long sentences."""
        lengths = self._ends - self._starts
        return int((lengths * (lengths - 1) // 2).sum())

    def members(self, unit: int) -> Indices:
        """Return the positions of the sentences of a unit."""
        return self._population.fitting(self._order[self._starts[unit] : self._ends[unit]])


class Neighbours:
    """Groups near sentences by leaders.

    Spacings too wide for the population are left out, except for the first.

    Every D-th sentence of the random order is a leader. Each sentence follows the leader that is nearest among its own
    neighbours: the sentences of screened chunks, ordered by the share of words and word pairs in common, ties by
    position. Two sentences are neighbours if they follow the same leader. About D sentences follow a leader, so that a
    small D gives close pairs and a large one distant pairs. Each sweep has other leaders.

    A round is a sweep of one spacing. A pair belongs to the first round in which it has the same leader, so that it
    occurs once.
    """

    def __init__(self, population: Population, tfidf: Tfidf, spacings: Sequence[int]) -> None:
        self._population = population
        self._screening = tfidf
        used = [D for D in spacings if len(population) >= SENTENCES_PER_LEADER * D] or list(spacings[:1])
        self.spacings = tuple(used)
        # Leaders of a sweep are those of one remainder, so a spacing of D has at most D sweeps.
        self.rounds = [(D, sweep) for sweep in range(min(SWEEPS, used[0])) for D in used]
        self._depth = DEPTH * used[-1]
        self.near = lru_cache(maxsize=KNOWN_NEIGHBOURS)(self._near)
        self.leaders = lru_cache(maxsize=KNOWN_LEADERS)(self._leaders)

    def first_round(self, first: int, second: int) -> int:
        """Return the first round in which two sentences follow the same leader, -1 if there is none."""
        first_leaders = self.leaders(first)
        same = np.flatnonzero((first_leaders == self.leaders(second)) & (first_leaders >= 0))
        if len(same) == 0:
            return -1
        return int(same[0])

    def _near(self, position: int) -> Indices:
        """Return the nearest sentences of a sentence, best first."""
        corpus = self._population.corpus
        chunks = -(-2 * self._depth // corpus.shape.chunk)  # twice the depth, as some sentences are copies or too short
        screened = self._screening.chunks(self._population.text(position), chunks)[0]
        # Copies share a position, which is needed once.
        candidates = np.unique(self._population.positions[spans(*corpus.chunk_bounds(screened))])
        candidates = self._population.fitting(candidates[candidates != position])
        terms = self._population.terms(position)
        overlaps = _overlaps(terms, [self._population.terms(int(candidate)) for candidate in candidates])
        return candidates[top_k(overlaps, self._depth)]

    def _leaders(self, position: int) -> Indices:
        """Return the leader of a sentence in each round, -1 where none of its neighbours is a leader."""
        near = np.append(position, self.near(position))  # a leader follows itself
        leaders = np.full(len(self.rounds), -1, dtype=np.int64)
        for number, (spacing, sweep) in enumerate(self.rounds):
            hits = near[near % spacing == sweep]
            if len(hits):
                leaders[number] = hits[0]
        return leaders


class NeighbourUnits:
    """Units of a leader and its followers, for one spacing.

    If there are more followers than ``size``, they are taken at even steps in nearness.
    """

    def __init__(self, population: Population, neighbours: Neighbours, spacing: int, size: int) -> None:
        self._population = population
        self._neighbours = neighbours
        self._size = size
        self._rounds = [number for number, (D, _) in enumerate(neighbours.rounds) if spacing == D]
        self._leaders = -(-len(population) // spacing)

    def __len__(self) -> int:
        return self._leaders * len(self._rounds)

    def round(self, unit: int) -> int:
        """Return the round of a unit."""
        return self._rounds[unit // self._leaders]

    def members(self, unit: int) -> Indices:
        """Return the positions of a leader and its followers; none if the unit has no leader."""
        number = self.round(unit)
        spacing, sweep = self._neighbours.rounds[number]
        leader = sweep + spacing * (unit % self._leaders)
        if leader >= len(self._population) or not len(self._population.fitting(np.array([leader]))):
            return np.zeros(0, dtype=np.int64)
        # Twice as many as needed, since some neighbours follow another leader.
        near = _evenly(self._neighbours.near(leader)[: DEPTH * spacing], 2 * self._size)
        followers = [int(row) for row in near if self._neighbours.leaders(int(row))[number] == leader]
        return np.append(leader, _evenly(np.array(followers, dtype=np.int64), self._size - 1))


def _evenly(values: Indices, most: int) -> Indices:
    """Return at most ``most`` of the values, at even steps from the first."""
    if len(values) <= most:
        return values
    return values[np.arange(most) * len(values) // most]


def _overlaps(query: Keys, candidates: Sequence[Keys]) -> Floats:
    """Return the cosine of a set of terms with each candidate set, all sorted, ``(candidates,)``."""
    lengths = np.array([len(candidate) for candidate in candidates], dtype=np.int64)
    if not len(query) or not lengths.sum():
        return np.zeros(len(candidates))
    terms = np.concatenate(candidates)
    # A term beyond the last of the query is compared with the last, which it is not.
    hits = query[np.minimum(np.searchsorted(query, terms), len(query) - 1)] == terms
    shared = np.bincount(np.repeat(np.arange(len(candidates)), lengths), hits, minlength=len(candidates))
    cosines: Floats = shared / np.sqrt(len(query) * np.maximum(lengths, 1))
    return cosines


def _prime_from(number: int) -> int:
    """Return the smallest prime that is not below ``number``."""
    while any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    return number
