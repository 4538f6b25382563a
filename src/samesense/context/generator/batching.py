"""Which cells are computed together: those that share what is read, or those of like length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from samesense.types import Indices


def groups_of(keys: Indices) -> list[Indices]:
    """Return the members of each group of equal keys, groups in ascending order of key, members in theirs."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(order, edges)


def batches_of(lengths: Sequence[int] | Indices, budget: int) -> Iterator[Indices]:
    """Yield the members of each batch: sorted by length, so that padded to its longest it keeps within ``budget``.

    Args:
        lengths: tokens of each member; any number.
        budget: most tokens of a batch, padding included; one member alone may exceed it.
    """
    order = np.argsort(np.asarray(lengths), kind="stable")[::-1]
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = start + max(1, budget // longest)
        yield order[start:end]
        start = end
