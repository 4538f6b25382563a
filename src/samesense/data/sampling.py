"""Which of many rows are looked at, drawn or held out."""

from __future__ import annotations

import numpy as np


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


def count_to_hold_out(count: int, *, share: float, most_share: float, enough: int, fewest: int, most: int) -> int:
    """Return how many of some examples are held out; 0 if they are too few to hold out ``fewest``.

    That is a ``share`` of many, at most ``most``; of few a larger one, up to ``most_share``, so that there are
    ``enough``.
    """
    held_out = min(most, max(round(share * count), min(enough, int(most_share * count))))
    return held_out if held_out >= fewest else 0
