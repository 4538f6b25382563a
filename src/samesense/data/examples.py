"""What every kind of data has in common, whatever stands in a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from samesense.types import Floats


@dataclass(frozen=True)
class Conflict:
    """Rows that say different things of the same texts."""

    rows: list[int]  # as their source counts them
    texts: list[str]  # the text, or the two of a pair
    labels: list[str]  # what each row says


MOST_CONFLICTS = 5
"""Conflicts that are shown unless all are asked for."""


def conflict_lines(conflicts: list[Conflict], *, all_rows: bool) -> list[str]:
    """Return lines for people that name the rows of conflicts: the first few of them, or all."""
    shown = conflicts if all_rows else conflicts[:MOST_CONFLICTS]
    lines = [
        f"    rows {', '.join(map(str, one.rows))} say {', '.join(one.labels)} of: {' | '.join(one.texts)}"
        for one in shown
    ]
    return [*lines, f"    and {len(conflicts) - len(shown)} more"] if len(shown) < len(conflicts) else lines


def spread_over(length: int, count: int) -> list[int]:
    """Return at most so many places that are spread over all, so that what is sorted is met from end to end."""
    return [at * length // count for at in range(count)] if length > count else list(range(length))


def drawn_from(length: int, count: int, seed: int) -> list[int]:
    """Return at most so many places that are drawn at random, in order; all if there are no more."""
    if length <= count:
        return list(range(length))
    return sorted(np.random.default_rng(seed).choice(length, count, replace=False).tolist())


class Examples(Protocol):
    """Training data of one source: rows that can be counted, taken, and told from others by a fingerprint."""

    @property
    def source(self) -> str:
        """The file or name as the user gave it."""

    @property
    def name(self) -> str:
        """Short name for people."""

    @property
    def sha256(self) -> str:
        """Fingerprint of the content in order."""

    def __len__(self) -> int: ...

    def take(self, indices: Iterable[int]) -> Self:
        """Return the rows at these positions, in the order given."""


def label_aware_examples(labels: Sequence[float] | Floats, batch_size: int) -> int:
    """Return how many examples an epoch in batches of two labels at least takes."""
    size, counts = min(batch_size, len(labels)), np.unique(labels, return_counts=True)[1]
    return size * min(len(labels) // size, len(labels) - int(counts.max()))
