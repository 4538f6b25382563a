"""Forms triplets of anchor, positive and negative from labelled pairs, deterministically.

In NLI data and triplets the first sentence of a pair is the anchor; in binary data each of the two is. A partner that
is labelled both positive and negative for an anchor is ignored, and a sentence is never its own negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.data.mapped import BLOCK, collect_columns, collect_numbers, take_rows, take_texts
from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Groups, group_equal, text_keys
from samesense.types import Indices

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FormedRows:
    """Triplets or positive pairs formed from labelled pairs.

    Attributes:
        columns: ``anchor``, ``positive``, and ``negative`` if there are any. If only some rows have a negative, the
            others repeat their positive in that column, and a column ``label`` is 1 where the negative counts.
        unused: number of pairs that no row uses.
        negatives: number of rows with a negative.
    """

    columns: dict[str, Sequence[Any]]
    unused: int
    negatives: int

    def __len__(self) -> int:
        return len(self.columns["anchor"])


def form_triplets(data: PairData) -> FormedRows:
    """Return triplets of an anchor, a positive and a negative.

    An anchor with p positives and n negatives gives max(p, n) triplets: the shorter list is cycled, so that every
    partner is used and none more often than needed.
    """
    statements = _Statements.of(data)
    positive_lists = _PartnerLists.of(statements, statements.positive)
    negative_lists = _PartnerLists.of(statements, ~statements.positive)
    has_both = (positive_lists.sizes > 0) & (negative_lists.sizes > 0)
    # Number of triplets of each anchor.
    counts = np.where(has_both, np.maximum(positive_lists.sizes, negative_lists.sizes), 0)
    anchors = np.repeat(np.arange(len(counts)), counts)
    turns = _occurrence_numbers(anchors)
    positive = positive_lists.take(anchors, turns)
    negative = negative_lists.take(anchors, turns)
    texts = zip(
        statements.anchors(data, positive),
        statements.partners(data, positive),
        statements.partners(data, negative),
        strict=True,
    )
    columns = dict(zip(_TRIPLET, collect_columns(texts, _TRIPLET), strict=True))
    used = np.unique(statements.rows[has_both[statements.anchor] & statements.is_consistent])
    return FormedRows(columns, len(data) - len(used), len(anchors))


def form_positive_pairs(data: PairData, *, above: float, hard_negatives: bool) -> FormedRows:
    """Return the positive pairs in their order, the first sentence as anchor, with a hard negative where there is one.

    Labels above ``above`` are positive. The rows of an anchor cycle through its negative partners (contradictions in
    NLI data). Scored pairs have no negatives: a low score does not say that two sentences must be apart.
    """
    rows = np.flatnonzero(np.asarray(data.labels, dtype=np.float64) > above)
    first, second = take_rows([data.sentences1, data.sentences2], rows)
    columns: dict[str, Sequence[Any]] = {"anchor": first, "positive": second}
    if not hard_negatives or data.kind == "scored":
        return FormedRows(columns, len(data) - len(rows), 0)
    statements = _Statements.of(data, rows)
    anchors = statements.requested_anchor
    negative_lists = _PartnerLists.of(statements, ~statements.positive)
    has_negative = negative_lists.sizes[anchors] > 0
    count = int(has_negative.sum())
    if not count:
        return FormedRows(columns, len(data) - len(rows), 0)
    negatives = negative_lists.take(anchors[has_negative], _occurrence_numbers(anchors)[has_negative])
    texts = zip(first, second, _fill_negatives(has_negative, statements.partners(data, negatives), second), strict=True)
    columns = dict(zip(_TRIPLET, collect_columns(texts, _TRIPLET), strict=True))
    # If every row has a negative, no label is needed.
    if count < len(rows):
        columns["label"] = collect_numbers(map(int, has_negative), beside=columns["anchor"], whole=True)
    is_used = np.isin(statements.pair, statements.pair[negatives])
    used = np.union1d(rows, statements.rows[is_used])
    return FormedRows(columns, len(data) - len(used), count)


_TRIPLET = ("anchor", "positive", "negative")


def _fill_negatives(has: Flags, negatives: Iterator[str], fallback: Sequence[str]) -> Iterator[str]:
    """Yield for each row the next of ``negatives`` if it has one, else its text in ``fallback``."""
    for has_negative, text in zip(has, fallback, strict=True):
        yield next(negatives) if has_negative else text


@dataclass(frozen=True)
class _Statements:
    """Statements of the pairs, each an anchor with a positive or negative partner, in order; texts stay on disk."""

    rows: Indices
    swapped: Flags  # whether the anchor is the second sentence
    positive: Flags  # whether the partner is a positive; else it is a negative
    anchor: Groups  # id of the anchor, in the order of first appearance
    pair: Groups  # id of the anchor and partner together
    is_consistent: Flags  # whether the two do not also occur with the opposite label
    requested_anchor: Groups  # id of the anchor of each requested row

    @classmethod
    def of(cls, data: PairData, requested: Indices | None = None) -> _Statements:
        """Return the statements of pairs; neutral NLI pairs and pairs of equal sentences give none."""
        first = text_keys(data.sentences1)
        second = text_keys(data.sentences2)
        labels = np.asarray(data.labels, dtype=np.float64)
        # Entailment, which is 2; neutral pairs, which are 1, say nothing.
        highest = 2.0 if data.kind == "nli" else 1.0
        rows = np.flatnonzero(((labels == 0) | (labels == highest)) & (first != second))
        # In binary data, each of the two sentences is an anchor.
        ways = 2 if data.kind == "binary" else 1
        swapped = np.tile(np.arange(ways) == 1, len(rows))
        rows = np.repeat(rows, ways)
        anchors = np.where(swapped, second[rows], first[rows])
        partners = np.where(swapped, first[rows], second[rows])
        positive = labels[rows] == highest
        pair = group_equal(anchors * _ODD + partners)
        # Pairs that are labelled positive in one row and negative in another.
        contradictory = np.isin(pair, np.intersect1d(pair[positive], pair[~positive]))
        if requested is None:
            requested = np.array([], dtype=np.int64)
        # In one call, so that an anchor has the same id in both.
        group = group_equal(np.concatenate([anchors, first[requested]]))
        return cls(rows, swapped, positive, group[: len(rows)], pair, ~contradictory, group[len(rows) :])

    def anchors(self, data: PairData, indices: Indices) -> Iterator[str]:
        """Yield the anchor texts of these statements."""
        return _texts(data, self.rows[indices], self.swapped[indices])

    def partners(self, data: PairData, indices: Indices) -> Iterator[str]:
        """Yield the partner texts of these statements."""
        return _texts(data, self.rows[indices], ~self.swapped[indices])


# mixes the keys of anchor and partner; unlike a pair key, it distinguishes their order
_ODD = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class _PartnerLists:
    """The positives, or the negatives, of every anchor, each once and in order of appearance."""

    statements: Indices  # indices of statements, those of one anchor after those of another
    sizes: Indices  # length of the list of each anchor

    @classmethod
    def of(cls, statements: _Statements, side: Flags) -> _PartnerLists:
        """Return the partners of the consistent statements of this side."""
        indices = np.flatnonzero(statements.is_consistent & side)
        # Each partner once, at its first statement.
        indices = indices[np.sort(np.unique(statements.pair[indices], return_index=True)[1])]
        groups = statements.anchor[indices]
        # Both numberings, so that lists exist for anchors without a statement.
        anchors = 1 + max(statements.anchor.max(initial=-1), statements.requested_anchor.max(initial=-1))
        return cls(indices[np.argsort(groups, kind="stable")], np.bincount(groups, minlength=anchors))

    def take(self, anchors: Groups, turns: Indices) -> Indices:
        """Return the statement that each anchor uses at its turn, cycling through its list."""
        starts = np.cumsum(self.sizes) - self.sizes
        return self.statements[starts[anchors] + turns % self.sizes[anchors]]


def _occurrence_numbers(groups: Groups) -> Indices:
    """Return for each row how many earlier rows belong to its group."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    turns = np.empty(len(groups), np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return turns


def _texts(data: PairData, rows: Indices, second: Flags) -> Iterator[str]:
    """Yield the first or the second sentence of each row; texts are read in blocks."""
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        from_second = second[start : start + BLOCK]
        texts = np.empty(len(block), object)
        texts[~from_second] = take_texts(data.sentences1, block[~from_second])
        texts[from_second] = take_texts(data.sentences2, block[from_second])
        yield from texts
