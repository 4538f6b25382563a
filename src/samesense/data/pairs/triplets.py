"""Anchors with positives and negatives out of labelled pairs, always the same ones from the same pairs.

In NLI data and triples the first sentence of a pair is the anchor; in binary data either of them may be. A partner that
is given to an anchor both as positive and as negative is neither, and a sentence is no negative of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from samesense.data.pairs.data import PairData

Partners = dict[str, list[int]]
"""Partner of an anchor, in order of appearance, to the rows in which the two stand."""


@dataclass(frozen=True)
class Formed:
    """What was formed.

    Attributes:
        columns: ``anchor``, ``positive``, and ``negative`` if there are any. If only some rows have a negative of their
            own, the others repeat their positive there, and a column ``label`` says 1 where the negative counts.
        unused: pairs that stand in none.
        negatives: rows with a negative of their own.
    """

    columns: dict[str, list[Any]]
    unused: int
    negatives: int

    def __len__(self) -> int:
        return len(self.columns["anchor"])


def triplets(data: PairData) -> Formed:
    """Return an anchor, a positive and a negative a row.

    An anchor with p positives and n negatives gives max(p, n) triplets: the shorter list starts again, so that every
    partner is used and none more often than needed.
    """
    anchors: list[str] = []
    near: list[str] = []
    far: list[str] = []
    used: set[int] = set()
    for anchor, (own, other) in _partners(data).items():
        if not own or not other:
            continue
        count = max(len(own), len(other))
        anchors += [anchor] * count
        near += islice(cycle(own), count)
        far += islice(cycle(other), count)
        used.update(row for side in (own, other) for rows in side.values() for row in rows)
    return Formed({"anchor": anchors, "positive": near, "negative": far}, len(data) - len(used), len(anchors))


def positives(data: PairData, *, above: float, hard_negatives: bool) -> Formed:
    """Return the positive pairs in their order, the first sentence as anchor, with a hard negative where there is one.

    Labels above ``above`` are positive. An anchor gets its negative partners in turn (contradictions in NLI data).
    Scored pairs have none: a low score is no statement that two sentences must be apart.
    """
    rows = [row for row, label in enumerate(data.labels) if label > above]
    partners = _partners(data) if hard_negatives and data.kind != "scored" else {}
    in_turn = {anchor: cycle(other) for anchor, (_, other) in partners.items() if other}
    anchors = [data.sentences1[row] for row in rows]
    far = [next(in_turn[anchor]) if anchor in in_turn else None for anchor in anchors]
    used = set(rows)
    for anchor, negative in zip(anchors, far, strict=True):
        used.update(partners[anchor][1][negative] if negative is not None else ())
    columns: dict[str, list[Any]] = {"anchor": anchors, "positive": [data.sentences2[row] for row in rows]}
    count = sum(negative is not None for negative in far)
    if count:
        columns["negative"] = [negative or near for negative, near in zip(far, columns["positive"], strict=True)]
    if 0 < count < len(rows):
        columns["label"] = [int(negative is not None) for negative in far]
    return Formed(columns, len(data) - len(used), count)


def _partners(data: PairData) -> dict[str, tuple[Partners, Partners]]:
    """Return positive and negative partners of every anchor, in order of appearance."""
    found: dict[str, tuple[Partners, Partners]] = {}
    for row, anchor, partner, positive in _stated(data):
        sides = found.setdefault(anchor, ({}, {}))
        sides[0 if positive else 1].setdefault(partner, []).append(row)
    for own, other in found.values():
        for partner in own.keys() & other.keys():
            del own[partner], other[partner]
    return found


def _stated(data: PairData) -> Iterator[tuple[int, str, str, bool]]:
    """Yield row, anchor, partner, and whether they belong together; NLI's neutral pairs say neither."""
    highest = 2.0 if data.kind == "nli" else 1.0
    for row, ((first, second), label) in enumerate(zip(data.pairs(), data.labels, strict=True)):
        if label not in (0.0, highest) or first == second:
            continue
        yield row, first, second, label == highest
        if data.kind == "binary":
            yield row, second, first, label == highest
