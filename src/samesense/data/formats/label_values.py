"""What the cell of a label is worth: numbers however they are written, and the classes of published sets by name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

NLI_VALUES = {"contradiction": 0.0, "not_entailment": 0.0, "neutral": 1.0, "entailment": 2.0}
"""What each class of natural language inference is worth: more means closer."""

_OTHERWISE = {
    "non_entailment": "not_entailment", "contradicts": "contradiction", "contradictory": "contradiction",
    "entails": "entailment", "entailed": "entailment",
}  # fmt: skip
INITIALS = {"c": 0.0, "n": 1.0, "e": 2.0}
"""Classes of natural language inference by their first letters."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"^([+-]?\d+),(\d+)$", re.ASCII)
_ALIKE = ("equivalent", "duplicate", "paraphrase", "match", "relevant", "similar")
WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "same", *_ALIKE), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "different", "dissimilar", "irrelevant", "unrelated"), 0.0),
    **{f"{no}_{word}": 0.0 for no in ("not", "no", "non") for word in _ALIKE},
}
"""Labels of two classes, as :func:`word_of` writes them."""


def word_of(text: str) -> str:
    """Return a class as it is known: ``Not a duplicate`` is ``not_duplicate``."""
    word = re.sub(r"[\s_-]+", "_", text.strip().casefold()).replace("_a_", "_")
    return _OTHERWISE.get(word, word)


def with_points(raw: Sequence[object]) -> Sequence[object]:
    """Return labels with decimal points where all decimals have commas, as many spreadsheets write them."""
    texts = [cell.strip() for cell in raw if isinstance(cell, str)]
    pointed = any("." in text for text in texts) or any(isinstance(cell, float) for cell in raw)
    if pointed or not any(map(_COMMA.match, texts)):
        return raw
    return [_COMMA.sub(r"\1.\2", cell.strip()) if isinstance(cell, str) else cell for cell in raw]


def is_number(text: str) -> bool:
    """Return whether a text is a number, and no word for one."""
    return _NUMBER.fullmatch(text.strip()) is not None


def to_number(value: object) -> float | None:
    """Return a label cell as a finite number, or ``None`` where it is not one.

    Numbers, ``true`` and ``false``, ``yes`` and ``no``, and the class names of the published paraphrase sets are
    understood, whatever their case.
    """
    if not isinstance(value, str | int | float) and (isinstance(value, Decimal) or hasattr(value, "item")):
        value = float(value) if isinstance(value, Decimal) else _item(value)
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
    return WORDS.get(word_of(text))


def _item(value: Any) -> object:
    """Return the Python number of a number of NumPy or torch, or ``None`` of what holds several."""
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):
        return None


MOST_WORDS = 12
"""Different words that labels are at most; of more they are something else."""

SHOWN = 5
"""Labels that are shown, the most frequent first."""


def in_words(cells: Sequence[object]) -> str:
    """Return which labels there are, if all are words, how often, and what to write in their place; else ``""``."""
    words = Counter(cell.strip() for cell in cells if isinstance(cell, str) and cell.strip())
    if not words or sum(words.values()) < len(cells):
        return ""
    shown = ", ".join(f"{word[:40]!r} ({count})" for word, count in words.most_common(SHOWN))
    more = f" and {len(words) - SHOWN} others" if len(words) > SHOWN else ""
    if all(to_number(word.removesuffix("%")) is not None for word in words):
        fix = "Write the numbers without %."
    elif len(words) > MOST_WORDS:
        fix = "If it is not the column of labels, name the columns: `columns` first,second,label."
    elif len(words) == 2:
        fix = "Replace them by 1 for a pair that belongs together, and 0 for one that does not."
    else:
        fix = "Replace them by numbers: the higher, the closer the two texts."
    return f"{shown}{more}. {fix}"
