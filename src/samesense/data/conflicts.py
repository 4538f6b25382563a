"""Rows that contradict each other, and how they are listed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conflict:
    """Rows that label the same texts differently."""

    rows: list[int]  # row numbers, as the source counts them
    texts: list[str]  # the text, or the two texts of a pair
    labels: list[str]  # label of each row


MOST_CONFLICTS = 5
"""Conflicts that are shown by default."""


def describe_conflicts(conflicts: list[Conflict], *, all_rows: bool) -> list[str]:
    """Return lines of text with the rows of conflicts: the first few conflicts, or all."""
    listed = conflicts if all_rows else conflicts[:MOST_CONFLICTS]
    lines = []
    for conflict in listed:
        rows = ", ".join(map(str, conflict.rows))
        lines.append(f"    rows {rows} say {', '.join(conflict.labels)} of: {' | '.join(conflict.texts)}")
    if len(listed) < len(conflicts):
        lines.append(f"    and {len(conflicts) - len(listed)} more")
    return lines
