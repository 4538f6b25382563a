"""Parts shared by all kinds of training data: conflicts, sampling, and the protocol of examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from samesense.types import Floats, Indices


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


def count_to_hold_out(count: int, *, share: float, most_share: float, enough: int, fewest: int, most: int) -> int:
    """Return how many of some examples are held out; 0 if they are too few to hold out ``fewest``.

    That is a ``share`` of many, at most ``most``; of few a larger one, up to ``most_share``, so that there are
    ``enough``.
    """
    held_out = min(most, max(round(share * count), min(enough, int(most_share * count))))
    return held_out if held_out >= fewest else 0


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


def deal_groups(groups: Indices, batch_size: int, random: np.random.Generator) -> Indices:
    """Return the examples of an epoch in an order whose consecutive batches hold whole groups as far as possible.

    Groups come at random; those larger than a batch are divided first. Where the next one does not fit into what is
    left of a batch, the largest remaining one that fits takes its place; if none fits, the next one is cut, and its
    remainder begins the next batch.

    Args:
        groups: group number of each example.
        batch_size: examples of a batch.
        random: draws the order of the groups and of the examples in each.

    Returns:
        The positions of all examples.
    """
    shuffled = random.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    whole_groups = np.split(by_group, np.flatnonzero(np.diff(groups[by_group])) + 1)
    members = [
        group[start : start + batch_size] for group in whole_groups for start in range(0, len(group), batch_size)
    ]
    # In random order, which the stacks of groups of one size keep.
    by_size: dict[int, list[int]] = {}
    turns = random.permutation(len(members)).tolist()
    for group in reversed(turns):
        by_size.setdefault(len(members[group]), []).append(group)
    dealt = np.zeros(len(members), bool)
    order: list[Indices] = []
    room = batch_size

    def place(examples: Indices) -> None:
        nonlocal room
        order.append(examples)
        room = (room - len(examples) - 1) % batch_size + 1

    for group in turns:
        while not dealt[group] and len(members[group]) > room:
            filler = _largest_group(by_size, room, dealt)
            if filler is None:
                break
            dealt[filler] = True
            place(members[filler])
        if not dealt[group]:
            dealt[group] = True
            place(members[group])
    return np.concatenate(order)


def _largest_group(by_size: dict[int, list[int]], most: int, dealt: npt.NDArray[np.bool_]) -> int | None:
    """Return the next group of the largest size up to ``most`` that is not dealt yet; ``None`` if there is none."""
    for size in sorted((size for size in by_size if size <= most), reverse=True):
        stack = by_size[size]
        while stack:
            group = stack.pop()
            if not dealt[group]:
                return group
        del by_size[size]
    return None
