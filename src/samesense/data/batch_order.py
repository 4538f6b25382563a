"""The order of examples whose batches have different labels or whole groups, computed without torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from samesense.types import Floats, Indices


def count_label_aware_examples(labels: Sequence[float] | Floats, batch_size: int) -> int:
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
    members = _shuffle_members(groups, batch_size, random)
    turns = random.permutation(len(members)).tolist()
    # Stacks of the groups of one size, whose next one is on top.
    by_size: dict[int, list[int]] = {}
    for group in reversed(turns):
        by_size.setdefault(len(members[group]), []).append(group)
    dealt = np.zeros(len(members), bool)
    order: list[Indices] = []
    room = batch_size  # places left in the batch, at least one
    for group in turns:
        while not dealt[group]:
            chosen = group
            if len(members[group]) > room:
                filler = _largest_group(by_size, room, dealt)
                # If none fits, the group itself is cut.
                chosen = group if filler is None else filler
            dealt[chosen] = True
            order.append(members[chosen])
            # A full batch, or the remainder of a cut group, begins the next one.
            room = (room - len(members[chosen]) - 1) % batch_size + 1
    return np.concatenate(order)


def _shuffle_members(groups: Indices, batch_size: int, random: np.random.Generator) -> list[Indices]:
    """Return the examples of each group in random order; a group larger than a batch is divided into several."""
    shuffled = random.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    whole_groups = np.split(by_group, np.flatnonzero(np.diff(groups[by_group])) + 1)
    return [group[start : start + batch_size] for group in whole_groups for start in range(0, len(group), batch_size)]


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
