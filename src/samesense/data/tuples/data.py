"""Anchors with any number of positives and negatives each: the shape of data that SupMPN is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from samesense.data.tuples.counts import counts_table
from samesense.data.tuples.groups import Group
from samesense.files import rows_hash


@dataclass(frozen=True, kw_only=True)
class TupleData:
    """Anchors of one or several sources, in order of first appearance.

    Attributes:
        anchors: the texts.
        positives: of each anchor, also none.
        negatives: of each anchor, also none.
        neutrals: of each anchor: what neither follows nor contradicts, where the source says so (NLI).
        source: the files or names as the user gave them.
        name: short name for people.
        sha256: fingerprint of the content in order; equal for equal content from any file.
        left_out: how much of the sources was left out, by reason.
    """

    anchors: list[str]
    positives: list[list[str]]
    negatives: list[list[str]]
    neutrals: list[list[str]]
    source: str
    name: str
    sha256: str
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.anchors)

    def take(self, indices: Iterable[int]) -> TupleData:
        """Return the anchors at these positions, in the order given."""
        rows = [int(index) for index in indices]
        anchors = [self.anchors[row] for row in rows]
        positives, negatives, neutrals = (
            [side[row] for row in rows] for side in (self.positives, self.negatives, self.neutrals)
        )
        return replace(
            self, anchors=anchors, positives=positives, negatives=negatives, neutrals=neutrals,
            sha256=fingerprint(anchors, positives, negatives, neutrals),
        )  # fmt: skip

    def account(self) -> list[str]:
        """Return lines for people: how many anchors have how much, and what was left out."""
        count = sum(map(len, self.positives)), sum(map(len, self.negatives))
        lines = [f"{len(self):,} anchors with {count[0]:,} positives and {count[1]:,} negatives"]
        lines += counts_table(self.positives, self.negatives)
        reasons = [f"{number:,} {reason}" for reason, number in self.left_out.items() if number]
        return lines + ([f"left out: {', '.join(reasons)}"] if reasons else [])


def tuple_data(groups: Iterable[Group], *, source: str, name: str, left_out: dict[str, int] | None = None) -> TupleData:
    """Collect groups.

    Args:
        groups: see :func:`samesense.data.tuples.groups.grouped`.
        source: where they come from.
        name: short name for people.
        left_out: what was left out before, by reason; read once the groups have all come.
    """
    anchors: list[str] = []
    sides: tuple[list[list[str]], ...] = ([], [], [])
    counts = {"partners given both ways": 0, "repeated rows": 0, "partners that are their anchor": 0}
    for group in groups:
        anchors.append(group.anchor)
        for side, texts in zip(sides, (group.positives, group.negatives, group.neutrals), strict=True):
            side.append(texts)
        for reason, count in zip(counts, (group.contradictory, group.repeated, group.itself), strict=True):
            counts[reason] += count
    positives, negatives, neutrals = sides
    return TupleData(
        anchors=anchors, positives=positives, negatives=negatives, neutrals=neutrals, source=source, name=name,
        sha256=fingerprint(anchors, positives, negatives, neutrals), left_out={**(left_out or {}), **counts},
    )  # fmt: skip


def fingerprint(
    anchors: Sequence[str],
    positives: Sequence[Sequence[str]],
    negatives: Sequence[Sequence[str]],
    neutrals: Sequence[Sequence[str]],
) -> str:
    """Return the SHA-256 of the content in order."""
    return rows_hash(zip(anchors, positives, negatives, neutrals, strict=True), b"tuples\n")
