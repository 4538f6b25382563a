"""Which of many rows are looked at, drawn or held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def spread_over(length: int, count: int) -> list[int]:
    """Return at most ``count`` evenly spaced positions, so that sorted data are sampled from end to end."""
    if length > count:
        return [step * length // count for step in range(count)]
    return list(range(length))


def draw_positions(length: int, count: int, seed: int) -> list[int]:
    """Return at most ``count`` random positions in ascending order; all positions if there are no more."""
    if length <= count:
        return list(range(length))
    return sorted(np.random.default_rng(seed).choice(length, count, replace=False).tolist())


def shuffle_within_classes(classes: npt.NDArray[Any], seed: int) -> npt.NDArray[np.intp]:
    """Return the positions of classes ``(n,)``, those of one class together and in random order.

    Every k-th of them has its share of each class. The splitters of scikit-learn refuse or warn of classes that have
    fewer rows than there are folds.
    """
    order = np.random.default_rng(seed).permutation(len(classes))
    by_class: npt.NDArray[np.intp] = order[np.argsort(classes[order], kind="stable")]
    return by_class


def count_to_hold_out(count: int, *, share: float, most_share: float, enough: int, fewest: int, most: int) -> int:
    """Return how many of some examples are held out; 0 if they are too few to hold out ``fewest``.

    That is a ``share`` of many, at most ``most``; of few a larger one, up to ``most_share``, so that there are
    ``enough``.
    """
    held_out = min(most, max(round(share * count), min(enough, int(most_share * count))))
    return held_out if held_out >= fewest else 0
