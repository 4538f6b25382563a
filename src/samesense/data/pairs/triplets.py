"""Anchors with positives and negatives out of labelled pairs, always the same ones from the same pairs.

In NLI data and triples the first sentence of a pair is the anchor; in binary data either of them may be. A partner that
is given to an anchor both as positive and as negative is neither, and a sentence is no negative of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.data.mapped import BLOCK, columns_of, rows_of, taken
from samesense.data.pairs.data import PairData, numbers
from samesense.data.pairs.keys import Groups, same, text_keys
from samesense.types import Indices

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Formed:
    """What was formed.

    Attributes:
        columns: ``anchor``, ``positive``, and ``negative`` if there are any. If only some rows have a negative of their
            own, the others repeat their positive there, and a column ``label`` says 1 where the negative counts.
        unused: pairs that stand in none.
        negatives: rows with a negative of their own.
    """

    columns: dict[str, Sequence[Any]]
    unused: int
    negatives: int

    def __len__(self) -> int:
        return len(self.columns["anchor"])


def triplets(data: PairData) -> Formed:
    """Return an anchor, a positive and a negative a row.

    An anchor with p positives and n negatives gives max(p, n) triplets: the shorter list starts again, so that every
    partner is used and none more often than needed.
    """
    stated = _Stated.of(data)
    near, far = _Lists.of(stated, stated.positive), _Lists.of(stated, ~stated.positive)
    both = (near.sizes > 0) & (far.sizes > 0)
    counts = np.where(both, np.maximum(near.sizes, far.sizes), 0)
    anchors = np.repeat(np.arange(len(counts)), counts)
    turn = np.arange(len(anchors)) - np.repeat(np.cumsum(counts) - counts, counts)
    one, other = near.at(anchors, turn), far.at(anchors, turn)
    found = zip(stated.anchors(data, one), stated.partners(data, one), stated.partners(data, other), strict=True)
    columns = dict(zip(_TRIPLET, columns_of(found, _TRIPLET), strict=True))
    used = np.unique(stated.rows[both[stated.anchor] & stated.counts])
    return Formed(columns, len(data) - len(used), len(anchors))


def positives(data: PairData, *, above: float, hard_negatives: bool) -> Formed:
    """Return the positive pairs in their order, the first sentence as anchor, with a hard negative where there is one.

    Labels above ``above`` are positive. An anchor gets its negative partners in turn (contradictions in NLI data).
    Scored pairs have none: a low score is no statement that two sentences must be apart.
    """
    rows = np.flatnonzero(np.asarray(data.labels, dtype=np.float64) > above)
    first, second = rows_of([data.sentences1, data.sentences2], rows)
    columns: dict[str, Sequence[Any]] = {"anchor": first, "positive": second}
    if not hard_negatives or data.kind == "scored":
        return Formed(columns, len(data) - len(rows), 0)
    stated = _Stated.of(data, rows)
    anchors = stated.of_rows
    far = _Lists.of(stated, ~stated.positive)
    has = far.sizes[anchors] > 0
    count = int(has.sum())
    if not count:
        return Formed(columns, len(data) - len(rows), 0)
    chosen = far.at(anchors[has], _turns(anchors)[has])
    found = zip(first, second, _filled(has, stated.partners(data, chosen), second), strict=True)
    columns = dict(zip(_TRIPLET, columns_of(found, _TRIPLET), strict=True))
    if count < len(rows):
        columns["label"] = numbers(map(int, has), beside=columns["anchor"], whole=True)
    taken_up = np.isin(stated.pair, stated.pair[chosen])
    used = np.union1d(rows, stated.rows[taken_up])
    return Formed(columns, len(data) - len(used), count)


_TRIPLET = ("anchor", "positive", "negative")


def _filled(has: Flags, own: Iterator[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the next of ``own`` where a row has one, and what stands there in ``others`` where it has not."""
    for of_its_own, other in zip(has, others, strict=True):
        yield next(own) if of_its_own else other


@dataclass(frozen=True)
class _Stated:
    """What pairs state of an anchor and a partner, in order; memory need not hold the texts."""

    rows: Indices
    swapped: Flags  # whether the anchor is the second sentence
    positive: Flags  # whether the two belong together; else they must be apart
    anchor: Groups  # number of the anchor, in the order of their first statements
    pair: Groups  # number of anchor and partner
    counts: Flags  # whether the two are not also given the other way
    of_rows: Groups  # number of the anchor of some rows that were asked for

    @classmethod
    def of(cls, data: PairData, asked: Indices | None = None) -> _Stated:
        """Return what the pairs state; NLI's neutral pairs state nothing, and no sentence is a partner of itself."""
        first, second = text_keys(data.sentences1), text_keys(data.sentences2)
        labels, highest = np.asarray(data.labels, dtype=np.float64), 2.0 if data.kind == "nli" else 1.0
        rows = np.flatnonzero(((labels == 0) | (labels == highest)) & (first != second))
        ways = 2 if data.kind == "binary" else 1
        swapped = np.tile(np.arange(ways) == 1, len(rows))
        rows = np.repeat(rows, ways)
        anchors = np.where(swapped, second[rows], first[rows])
        partners = np.where(swapped, first[rows], second[rows])
        positive = labels[rows] == highest
        pair = same(anchors * _ODD + partners)
        both = np.isin(pair, np.intersect1d(pair[positive], pair[~positive]))
        group = same(np.concatenate([anchors, first[[] if asked is None else asked]]))
        return cls(rows, swapped, positive, group[: len(rows)], pair, ~both, group[len(rows) :])

    def anchors(self, data: PairData, chosen: Indices) -> Iterator[str]:
        """Yield the anchors of these statements."""
        return _texts(data, self.rows[chosen], self.swapped[chosen])

    def partners(self, data: PairData, chosen: Indices) -> Iterator[str]:
        """Yield the partners of these statements."""
        return _texts(data, self.rows[chosen], ~self.swapped[chosen])


_ODD = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class _Lists:
    """The partners on one side of every anchor, each once and in order of appearance."""

    chosen: Indices  # statements, by anchor
    sizes: Indices  # of the list of each anchor

    @classmethod
    def of(cls, stated: _Stated, side: Flags) -> _Lists:
        """Return the partners of statements that count and are on this side."""
        own = np.flatnonzero(stated.counts & side)
        own = own[np.sort(np.unique(stated.pair[own], return_index=True)[1])]
        groups = stated.anchor[own]
        anchors = 1 + max(stated.anchor.max(initial=-1), stated.of_rows.max(initial=-1))
        return cls(own[np.argsort(groups, kind="stable")], np.bincount(groups, minlength=anchors))

    def at(self, anchors: Groups, turns: Indices) -> Indices:
        """Return the statement that an anchor has at its turn; after the last comes the first."""
        starts = np.cumsum(self.sizes) - self.sizes
        return self.chosen[starts[anchors] + turns % self.sizes[anchors]]


def _turns(groups: Groups) -> Indices:
    """Return how often the group of each row came before."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    turns = np.empty(len(groups), np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return turns


def _texts(data: PairData, rows: Indices, second: Flags) -> Iterator[str]:
    """Yield the first or the second sentences of rows, read block by block."""
    for start in range(0, len(rows), BLOCK):
        own, from_second = rows[start : start + BLOCK], second[start : start + BLOCK]
        found = np.empty(len(own), object)
        found[~from_second] = taken(data.sentences1, own[~from_second])
        found[from_second] = taken(data.sentences2, own[from_second])
        yield from found
