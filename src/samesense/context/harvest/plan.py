"""Chooses the pairs of a harvest by shards; each depends on the corpus, the settings and its number alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from samesense.context.corpus.corpus import Corpus
from samesense.context.harvest.units import Neighbours, NeighbourUnits, Population, RandomUnits, SectionUnits
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import ConfigError
from samesense.execution.settings import Settings, comma_separated
from samesense.types import Indices, Pair

PairKind = Literal["random", "neighbours", "section"]


class Mixture(Settings):
    """Numbers and kinds of a harvest's pairs; ConfigError if the settings contradict each other."""

    pairs: int = Field(10_000, ge=1, description="pairs in all")
    random: float = Field(0.4, ge=0, description="share of pairs of any two sentences; shares are weights, 0 for none")
    neighbours: float = Field(0.4, ge=0, description="share of pairs of near sentences, by TF-IDF or by their vectors")
    section: float = Field(0.2, ge=0, description="share of pairs of two sentences of one section")
    spacings: tuple[int, ...] = Field(
        (4, 16, 64), description="sizes of the groups of neighbours; each size gives as many pairs"
    )
    unit: int = Field(32, ge=2, description="sentences of a set in which all are paired, to share their cost")
    min_words: int = Field(3, ge=1, description="sentences with fewer words are left out")
    max_words: int = Field(64, ge=1, description="sentences with more words are left out")
    shard_size: int = Field(1000, ge=1, description="pairs in a file, and the most that a worker may lose in a kill")
    sentences: int = Field(4000, ge=2, description="words: sentences that take part, each read once")
    seed: int = Field(42, ge=0, description="seed of all random choices")

    _from_one_word = field_validator("spacings", mode="before")(comma_separated)

    @model_validator(mode="after")
    def _consistent(self) -> Mixture:
        if not any((self.random, self.neighbours, self.section)):
            raise ConfigError("Of the shares random, neighbours and section, one at least is above 0; all are 0.")
        if self.max_words < self.min_words:
            raise ConfigError(f"No sentence has {self.min_words} words or more and {self.max_words} or fewer.")
        if not self.spacings or min(self.spacings) < 2 or list(self.spacings) != sorted(set(self.spacings)):
            raise ConfigError(f"Spacings are different numbers from 2 on, ascending; received {self.spacings}.")
        return self


@dataclass(frozen=True)
class Planned:
    """The pairs of one shard, in order; ``requested`` are the counts by kind that the settings ask for."""

    first: Indices
    second: Indices
    kinds: list[PairKind]
    requested: dict[PairKind, int]

    def take(self, rows: Indices) -> Planned:
        """Return some of the pairs, with the same ``requested``."""
        return Planned(self.first[rows], self.second[rows], [self.kinds[int(row)] for row in rows], self.requested)

    def texts(self, corpus: Corpus) -> list[Pair]:
        """Return the sentences of each pair."""
        return list(zip(corpus.sentences(self.first), corpus.sentences(self.second), strict=True))


@dataclass(frozen=True)
class _Stream:
    """A source of pairs: its units, and which pairs of a unit belong to it."""

    kind: PairKind
    weight: float
    units: int
    members: Callable[[int], Indices]
    owns: Callable[[int, int, int], bool]


class Plan:
    """All pairs of a harvest, generated shard by shard.

    A pair has one kind: section if both sentences are in one section; otherwise neighbours if they are neighbours;
    otherwise random. Within a kind, no pair is in two units, and shard k takes units k, k + shards, k + 2 shards and so
    on until it has its number of pairs, so that no pair occurs twice. Kinds with a share of 0 are left out.

    Source: Sun et al. 2022 (TACL), section 3.4, which does not say how pairs were chosen.
    """

    def __init__(self, corpus: Corpus, tfidf: Tfidf, mixture: Mixture) -> None:
        self.corpus = corpus
        self.mixture = mixture
        self.shards = -(-mixture.pairs // mixture.shard_size)
        self.population = Population(corpus, mixture.seed, mixture.min_words, mixture.max_words)
        self._neighbours = Neighbours(self.population, tfidf, mixture.spacings)
        self._sections = SectionUnits(self.population, mixture.unit, mixture.seed)
        self._streams = [stream for stream in self._all_streams() if stream.weight > 0]
        sums = list(accumulate(stream.weight for stream in self._streams))
        self._edges = [0.0, *(total / sums[-1] for total in sums[:-1]), 1.0]

    def describe(self) -> list[str]:
        """Return a description of the plan, and of requests that certainly cannot be met."""
        total = self._requested(0, self.mixture.pairs)
        counts = ", ".join(f"{kind} {count}" for kind, count in total.items())
        lines = [f"{self.mixture.pairs} pairs in {self.shards} shards: {counts}"]
        lines += [f"{len(self.population)} different sentences of {len(self.corpus)}"]
        if "neighbours" in total:
            left_out = [str(D) for D in self.mixture.spacings if D not in self._neighbours.spacings]
            note = f"; too wide for so few sentences: {', '.join(left_out)}" if left_out else ""
            lines.append(f"neighbours at spacings {', '.join(map(str, self._neighbours.spacings))}{note}")
        if total.get("section", 0) > self._sections.pairs():
            lines.append(f"sections have at most {self._sections.pairs()} pairs; the rest cannot be had")
        if self._only_section() and len(total) > 1:
            lines.append("all sentences are in one section, so that pairs of other kinds cannot be had")
        return lines

    def size(self, shard: int) -> int:
        """Return the number of pairs that a shard should have."""
        start = shard * self.mixture.shard_size
        return min(self.mixture.pairs, start + self.mixture.shard_size) - start

    def shard(self, shard: int) -> Planned:
        """Return the pairs of a shard; fewer than requested where its units are exhausted."""
        start = shard * self.mixture.shard_size
        counts = self._counts(start, start + self.size(shard))
        drawn: list[tuple[int, int]] = []
        kinds: list[PairKind] = []
        for stream, count in zip(self._streams, counts, strict=True):
            pairs = list(self._draw(stream, shard, count))
            drawn += pairs
            kinds += [stream.kind] * len(pairs)
        positions = np.array(drawn, dtype=np.int64).reshape(-1, 2)
        first, second = self.population.ids[positions].T
        return Planned(first, second, kinds, self._requested(start, start + self.size(shard)))

    def _draw(self, stream: _Stream, shard: int, count: int) -> Iterator[tuple[int, int]]:
        """Return the first ``count`` pairs of positions in the units of a shard that belong to a stream."""
        pairs = (
            pair
            for unit in range(shard, stream.units, self.shards)
            for pair in _pairs_within(stream.members(unit))
            if stream.owns(unit, *pair)
        )
        return islice(pairs, count)

    def _counts(self, start: int, end: int) -> list[int]:
        """Return how many of the pairs ``start`` to ``end`` each stream gives; the counts of ranges add up."""
        # differences of rounded cumulative sums: shards add up to the shares, however small they are
        starts = [math.floor(start * edge) for edge in self._edges]
        ends = [math.floor(end * edge) for edge in self._edges]
        cumulative = [b - a for a, b in zip(starts, ends, strict=True)]
        return [b - a for a, b in pairwise(cumulative)]

    def _requested(self, start: int, end: int) -> dict[PairKind, int]:
        counts: Counter[PairKind] = Counter()
        for stream, count in zip(self._streams, self._counts(start, end), strict=True):
            counts[stream.kind] += count
        return dict(counts)

    def _all_streams(self) -> Iterator[_Stream]:
        mixture = self.mixture
        unit = mixture.unit
        # with one section no pair is of another kind: no units, or all of them would be searched in vain
        has_other_kinds = not self._only_section()
        spread = RandomUnits(self.population, unit)
        yield _Stream("random", mixture.random, len(spread) * has_other_kinds, spread.members, self._is_random)
        weight = mixture.neighbours / len(self._neighbours.spacings)
        for spacing in self._neighbours.spacings:
            near = NeighbourUnits(self.population, self._neighbours, spacing, unit)
            units = len(near) * has_other_kinds
            yield _Stream("neighbours", weight, units, near.members, self._neighbour_rule(near))
        sections = self._sections
        yield _Stream("section", mixture.section, len(sections), sections.members, lambda *_: True)

    def _neighbour_rule(self, units: NeighbourUnits) -> Callable[[int, int, int], bool]:
        def owns(unit: int, first: int, second: int) -> bool:
            if self._in_section(first, second):
                return False
            return self._neighbours.first_round(first, second) == units.round(unit)

        return owns

    def _is_random(self, unit: int, first: int, second: int) -> bool:
        if self._in_section(first, second):
            return False
        return not self.mixture.neighbours or self._neighbours.first_round(first, second) < 0

    def _only_section(self) -> bool:
        """Return whether every pair is of the kind section."""
        return self._sections.single and self.mixture.section > 0

    def _in_section(self, first: int, second: int) -> bool:
        """Return whether a pair is of the kind section, if that kind is requested."""
        if not self.mixture.section:
            return False
        sections = self.population.sections(np.array([first, second]))
        return bool(sections[0] == sections[1])


def _pairs_within(members: Indices) -> Iterator[tuple[int, int]]:
    """Yield each position of a unit with those before it, the earlier one first."""
    positions = members.tolist()
    for count, later in enumerate(positions):
        for earlier in positions[:count]:
            yield earlier, later
