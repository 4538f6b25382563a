"""Numbers out of label cells, and the range they were given on."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

Scale = tuple[float, float]

KNOWN_SCALES: tuple[Scale, ...] = ((0, 1), (-1, 1), (0, 5), (0, 10), (0, 100))
"""Ranges that similarity is given on, the narrowest first; 1 to 5 counts as 0 to 5."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WORDS = {
    "true": 1.0,
    "false": 0.0,
    "equivalent": 1.0,
    "not_equivalent": 0.0,
    "duplicate": 1.0,
    "not_duplicate": 0.0,
    "paraphrase": 1.0,
    "not_paraphrase": 0.0,
}


def to_number(value: object) -> float | None:
    """Return a label cell as a finite number, or ``None`` where it is not one.

    Numbers, ``true`` and ``false``, and the class names of the published paraphrase sets are understood.
    """
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return _WORDS.get(text.casefold())


def infer_scale(numbers: Sequence[float]) -> Scale | None:
    """Return the smallest known range that holds the labels, or ``None`` if none does.

    From 100 labels on, one in a hundred may lie outside; from 20 on, a single one; below that, none.
    """
    count = len(numbers)
    allowed = count // 100 if count >= 100 else int(count >= 20)
    for low, high in KNOWN_SCALES:
        if sum(not low <= number <= high for number in numbers) <= allowed:
            return low, high
    return None


def number_text(number: float) -> str:
    """Write a number as short as it goes: ``5``, ``3.75``."""
    return f"{number:.6g}"


def share_text(part: int, whole: int) -> str:
    """Write a share in percent, never rounded up to 100 while something is left over."""
    percent = 100 * part / whole
    digits = 1
    while part < whole and f"{percent:.{digits}f}".startswith("100") and digits < 6:
        digits += 1
    return f"{percent:.{digits}f} %"
