"""What the cell of a label is worth: numbers however they are written, and the classes of published sets by name."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from samesense.errors import DataError

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
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?P<mark>[,.])\d{3}", re.ASCII)
_THREE_DECIMALS = re.compile(r"[+-]?\d+,\d{3}", re.ASCII)
_MANY_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?:(?:,\d{3}){2,}|(?:\.\d{3}){2,}|(?:[' \u00a0\u2009\u202f]\d{3})+)", re.ASCII
)
_GROUPED_DECIMAL = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+)", re.ASCII)
_PERCENT = re.compile(r"([+-]?[\d.,]+)\s*[%％]")
_QUANTITY = re.compile(
    r"[~≈<>≤≥]?\s*[$€£¥]?\s*[+-]?\d[\d.,'\u00a0\u2009\u202f]*\s*"
    r"(?:[%％‰°$€£¥]|(?:/|von|of|out of|aus|sur|de|out-of)\s*\d[\d.,]*|(?P<unit>[^\W\d_]{1,14})\.?)?"
)
_RATING = re.compile(r"[★☆⭐✩✭*+●○■□\s]+")
MOST_UNITS = 3
"""Different words behind numbers that are units; of more they are texts that begin with a number."""
_ALIKE = ("equivalent", "duplicate", "paraphrase", "match", "relevant", "similar")
WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "same", *_ALIKE), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "different", "dissimilar", "irrelevant", "unrelated"), 0.0),
    **{f"{no}_{word}": 0.0 for no in ("not", "no", "non") for word in _ALIKE},
}
"""Labels of two classes, as :func:`word_of` writes them."""


def word_of(text: str) -> str:
    """Return a class as it is known: ``Not a duplicate`` is ``not_duplicate``."""
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    word = re.sub(r"[\s_-]+", "_", plain).replace("_a_", "_")
    return _OTHERWISE.get(word, word)


def with_points(raw: Sequence[object]) -> Sequence[object]:
    """Return labels with decimal points where all decimals have commas, as many spreadsheets write them."""
    texts = [cell.strip() for cell in raw if isinstance(cell, str)]
    pointed = any("." in text for text in texts) or any(isinstance(cell, float) for cell in raw)
    if pointed or not any(map(_COMMA.match, texts)):
        return raw
    return [_COMMA.sub(r"\1.\2", cell.strip()) if isinstance(cell, str) else cell for cell in raw]


def are_quantities(texts: Sequence[str]) -> bool:
    """Return whether all texts are numbers with a unit, such as ``59 %``, ``3/5``, ``4 stars`` or ``★★★``.

    >>> are_quantities(["4 stars", "1 star"]), are_quantities(["7 dwarfs", "2 towers", "3 men", "9 lives"])
    (True, False)
    """
    units = set()
    for text in texts:
        quantity = _QUANTITY.fullmatch(text.strip())
        if quantity is None and _RATING.fullmatch(text) is None:
            return False
        units.add(quantity["unit"].casefold() if quantity is not None and quantity["unit"] else "")
    return bool(texts) and len(units - {""}) <= MOST_UNITS


def is_quantity(text: str) -> bool:
    """Return whether a text is a number, also with a decimal comma or a sign of a unit: ``0,5``, ``59 %``, ``3/5``.

    >>> is_quantity("59 %"), is_quantity("0,5"), is_quantity("7 dwarfs")
    (True, True, False)
    """
    quantity = _QUANTITY.fullmatch(text.strip())
    return quantity is not None and not quantity["unit"]


def plain_numbers(raw: Sequence[object], place: str, *, shares: bool = True) -> Sequence[object]:
    """Return labels as plain numbers where all are percentages, which are divided by 100, or have decimal commas.

    Args:
        raw: the cells of a column of labels.
        place: what messages call it.
        shares: whether percentages may be divided; not where the scale is given and goes beyond 1.

    Raises:
        DataError: for cells that mean one number or another: ``1,000``, percentages among plain numbers.
    """
    _refuse_thousands(raw, place)
    filled = [cell for cell in raw if isinstance(cell, str) and cell.strip() not in ("", "-")]
    percents = [cell for cell in filled if _PERCENT.fullmatch(cell.strip())]
    if not percents:
        return with_points(raw)
    others = [cell for cell in raw if cell not in (None, "") and not _is_percent(cell) and to_number(cell) is not None]
    if others:
        raise DataError(
            f"{place} holds percentages beside plain numbers, as in {percents[0]!r} and {others[0]!r}. Write all "
            "labels in one way."
        )
    if not shares:
        raise DataError(
            f"{place} holds percentages, as in {percents[0]!r}, which are read as numbers from 0 to 1, and "
            "`label_range` goes further. Write the numbers without %, or give `label_range` 0 1."
        )
    without = [_PERCENT.sub(r"\1", cell.strip()) if _is_percent(cell) else cell for cell in raw]  # type: ignore[attr-defined]
    numbers = [to_number(cell) for cell in with_points(without)]
    pairs = zip(raw, numbers, strict=True)
    return [number / 100 if number is not None and _is_percent(cell) else cell for cell, number in pairs]


def _is_percent(cell: object) -> bool:
    return isinstance(cell, str) and _PERCENT.fullmatch(cell.strip()) is not None


def _refuse_thousands(raw: Sequence[object], place: str) -> None:
    """Raise DataError where a mark may be one of thousands or of decimals, and nothing in the column settles it."""
    texts = [_PERCENT.sub(r"\1", cell.strip()) for cell in raw if isinstance(cell, str)]
    certain = next(
        (text for text in texts if _MANY_THOUSANDS.fullmatch(text) or _GROUPED_DECIMAL.fullmatch(text)), None
    )
    if certain is not None:
        raise DataError(f"{place} has marks between thousands, as in {certain!r}. Write the numbers without them.")
    doubtful = next((text for text in texts if _may_be_thousands(text, texts)), None)
    if doubtful is not None:
        whole, decimal = re.sub(r"[,.]", "", doubtful), doubtful.replace(",", ".")
        raise DataError(
            f"{place} holds {doubtful!r}, which may be {whole} or {float(decimal):g}. Write the numbers without marks "
            "between thousands, and decimals with a point."
        )


def _may_be_thousands(text: str, texts: Sequence[str]) -> bool:
    """Return whether the mark of a number may be one of thousands, by all numbers of the column.

    A comma is one of decimals for certain where another number has three digits behind it and cannot have thousands,
    such as 0,125. A point is one of decimals anyway, unless all numbers with a point have three digits and stand among
    whole numbers of hundreds.
    """
    number = _THOUSANDS.fullmatch(text)
    if number is None:
        return False
    mark = number["mark"]
    marked = [other for other in texts if mark in other]
    if mark == ",":
        certain = any(_THREE_DECIMALS.fullmatch(other) and not _THOUSANDS.fullmatch(other) for other in marked)
        return not certain or any("." in other for other in texts)
    if any(_THOUSANDS.fullmatch(other) is None for other in marked):
        return False
    return any(other.lstrip("+-").isdecimal() and len(other.lstrip("+-0")) >= 3 for other in texts)


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
    if are_quantities(list(words)):
        fix = "Write plain numbers, without a unit: 3/5 as 0.6, 4 stars as 4."
    elif len(words) > MOST_WORDS:
        fix = "If it is not the column of labels, name the columns: `columns` first,second,label."
    elif len(words) == 2:
        fix = "Replace them by 1 for a pair that belongs together, and 0 for one that does not."
    else:
        fix = "Replace them by numbers: the higher, the closer the two texts."
    return f"{shown}{more}. {fix}"
