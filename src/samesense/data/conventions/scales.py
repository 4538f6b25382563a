"""Scales of labels: the known ones, and the one that some numbers are on."""

from __future__ import annotations

import math
from collections.abc import Sequence

Scale = tuple[float, float]
"""Lowest and highest value."""

KNOWN_SCALES: tuple[Scale, ...] = ((0, 1), (-1, 1), (0, 5), (0, 10), (0, 100))
"""Common ranges of similarity scores, the narrowest first."""


_ROUNDING = 1e-6
"""Share of a scale by which a label may lie beyond an end, as cosines of 32 bits do: 1.0000001."""


def on_scale(number: float, scale: Scale) -> float:
    """Return a label, or the end of the scale where it lies beyond it by an error of rounding only."""
    low, high = scale
    nearest = min(max(number, low), high)
    if abs(number - nearest) <= _ROUNDING * (high - low):
        return nearest
    return number


def infer_scale(numbers: Sequence[float]) -> Scale | None:
    """Return the scale of labels: the narrowest known range that holds them, or their own ends as whole numbers.

    One label in a hundred may lie outside, from 20 labels on a single one; with fewer labels, none. ``None`` if no
    known range holds them.

    In 0 to 1 and -1 to 1 labels need not reach the ends, because they are usually similarities. In wider ranges they
    are ratings: labels from 1 to 7 are not on the scale 0 to 10. Labels from 1 to 5 count as 0 to 5, as in STS data.
    """
    count = len(numbers)
    if not count:
        return None
    # Few labels outside a range are probably typing errors, so they do not widen the scale.
    allowed = count // 100 if count >= 100 else int(count >= 20)
    for low, high in KNOWN_SCALES:
        slack = _ROUNDING * (high - low)
        in_range = [number for number in numbers if low - slack <= number <= high + slack]
        if count - len(in_range) <= allowed:
            # Ratings must reach both ends of a known range; a single value says nothing about the ends.
            ends = math.floor(min(in_range) + slack), math.ceil(max(in_range) - slack)
            fits = high <= 1 or ends in ((low, high), (1, 5)) or len(set(in_range)) == 1
            if not fits:
                return ends
            return low, high
    return None
