"""Parts shared by all kinds of training data: conflicts, sampling, and the protocol of examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from samesense.types import Floats


@dataclass(frozen=True)
class Conflict:
    """Rows that label the same texts differently."""

    rows: list[int]  # row numbers, as the source counts them
    texts: list[str]  # the text, or the two texts of a pair
    labels: list[str]  # label of each row


MOST_CONFLICTS = 5
"""Conflicts that are shown by default."""


def conflict_lines(conflicts: list[Conflict], *, all_rows: bool) -> list[str]:
    """Return lines of text with the rows of conflicts: the first few conflicts, or all."""
    listed = conflicts if all_rows else conflicts[:MOST_CONFLICTS]
    lines = []
    for conflict in listed:
        rows = ", ".join(map(str, conflict.rows))
        lines.append(f"    rows {rows} say {', '.join(conflict.labels)} of: {' | '.join(conflict.texts)}")
    if len(listed) < len(conflicts):
        lines.append(f"    and {len(conflicts) - len(listed)} more")
    return lines


def spread_over(length: int, count: int) -> list[int]:
    """Return at most ``count`` evenly spaced positions, so that sorted data are sampled from end to end."""
    if length > count:
        return [step * length // count for step in range(count)]
    return list(range(length))


def drawn_from(length: int, count: int, seed: int) -> list[int]:
    """Return at most ``count`` random positions in ascending order; all positions if there are no more."""
    if length <= count:
        return list(range(length))
    return sorted(np.random.default_rng(seed).choice(length, count, replace=False).tolist())


class Examples(Protocol):
    """Training data of one source, with a length, a selection of rows, and a fingerprint."""

    @property
    def source(self) -> str:
        """The file or name as the user gave it."""

    @property
    def name(self) -> str:
        """Short name for display."""

    @property
    def sha256(self) -> str:
        """Fingerprint of the content in order."""

    def __len__(self) -> int: ...

    def take(self, indices: Iterable[int]) -> Self:
        """Return the rows at these positions, in the order given."""


def label_aware_examples(labels: Sequence[float] | Floats, batch_size: int) -> int:
    """Return the number of examples in an epoch whose batches all have at least two different labels."""
    size = min(batch_size, len(labels))
    counts = np.unique(labels, return_counts=True)[1]
    return size * min(len(labels) // size, len(labels) - int(counts.max()))
