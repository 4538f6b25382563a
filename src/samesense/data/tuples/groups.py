"""Statements about anchors put together anchor by anchor, in order of first appearance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["positive", "neutral", "negative"]


class Statement(NamedTuple):
    """What one row says of an anchor and a partner; statements of one group are put together."""

    group: str
    anchor: str
    partner: str
    side: Side


@dataclass(frozen=True)
class Group:
    """An anchor with its partners, each once and in order of appearance."""

    anchor: str  # the text
    positives: list[str]  # texts that say the same, or follow from it
    negatives: list[str]  # texts that contradict it
    neutrals: list[str]  # texts that do neither
    contradictory: int = 0  # partners given both as positive and as negative; they are neither, and left out
    repeated: int = 0  # statements left out because they stood there before
    itself: int = 0  # statements left out because the partner is the anchor's own text


def grouped(statements: Iterable[Statement]) -> Iterator[Group]:
    """Yield the groups in the order in which they first appear; statements of a group need not stand together."""
    found: dict[str, tuple[str, list[Statement]]] = {}
    for row in statements:
        found.setdefault(row.group, (row.anchor, []))[1].append(row)
    yield from (_group(anchor, own) for anchor, own in found.values())


def _group(anchor: str, rows: list[Statement]) -> Group:
    sides: dict[Side, dict[str, None]] = {"positive": {}, "negative": {}, "neutral": {}}
    itself = 0
    for row in rows:
        if row.partner == anchor:
            itself += 1
        else:
            sides[row.side][row.partner] = None
    both = sides["positive"].keys() & sides["negative"].keys()
    return Group(
        anchor,
        [text for text in sides["positive"] if text not in both],
        [text for text in sides["negative"] if text not in both],
        list(sides["neutral"]),
        contradictory=len(both),
        repeated=len(rows) - itself - sum(map(len, sides.values())),
        itself=itself,
    )
