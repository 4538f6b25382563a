"""Parses single label cells: numbers in any notation, and the class names of published data sets."""

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
"""The value of each NLI class; higher means more similar."""

_SYNONYMS = {
    "non_entailment": "not_entailment",
    "contradicts": "contradiction",
    "contradictory": "contradiction",
    "entails": "entailment",
    "entailed": "entailment",
}
INITIALS = {"c": 0.0, "n": 1.0, "e": 2.0}
"""The value of each NLI class by its first letter."""

# a plain number; ASCII only, because float() also accepts digits of other scripts
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# a decimal comma: 0,5
_COMMA = re.compile(r"^([+-]?\d+),(\d+)$", re.ASCII)
# ambiguous: 1,000 and 1.000 may be a thousand or one
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?P<mark>[,.])\d{3}", re.ASCII)
# three digits after a comma, as in 0,125
_THREE_DECIMALS = re.compile(r"[+-]?\d+,\d{3}", re.ASCII)
# certainly thousands: 1,000,000 and 1 000 and 1'000
_MANY_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?:(?:,\d{3}){2,}|(?:\.\d{3}){2,}|(?:[' \u00a0\u2009\u202f]\d{3})+)", re.ASCII
)
# thousands with decimals: 1,000.5 and 1.000,5
_GROUPED_DECIMAL = re.compile(r"[+-]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+)", re.ASCII)
_PERCENT = re.compile(r"([+-]?[\d.,]+)\s*[%％]")
# a number with a sign, a unit or a maximum: ~5, $5, 59 %, 3/5, 4 out of 5, 4 stars
_QUANTITY = re.compile(
    r"[~≈<>≤≥]?\s*[$€£¥]?\s*[+-]?\d[\d.,'\u00a0\u2009\u202f]*\s*"
    r"(?:[%％‰°$€£¥]|(?:/|von|of|out of|aus|sur|de|out-of)\s*\d[\d.,]*|(?P<unit>[^\W\d_]{1,14})\.?)?"
)
# a rating by symbols: ★★★☆
_RATING = re.compile(r"[★☆⭐✩✭*+●○■□\s]+")
MOST_UNITS = 3
"""Most different units after numbers; a column with more holds texts that begin with a number."""
_ALIKE = ("equivalent", "duplicate", "paraphrase", "match", "relevant", "similar")
WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "same", *_ALIKE), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "different", "dissimilar", "irrelevant", "unrelated"), 0.0),
    **{f"{no}_{word}": 0.0 for no in ("not", "no", "non") for word in _ALIKE},
}
"""Values of labels of two classes, as normalized by :func:`word_of`."""


def word_of(text: str) -> str:
    """Return the normalized name of a class: ``not_duplicate`` for ``Not a duplicate``."""
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    word = re.sub(r"[\s_-]+", "_", plain).replace("_a_", "_")
    return _SYNONYMS.get(word, word)


def with_points(cells: Sequence[object]) -> Sequence[object]:
    """Return labels with decimal points if all decimals have commas, as many spreadsheets write them."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    has_points = any("." in text for text in texts) or any(isinstance(cell, float) for cell in cells)
    if has_points or not any(map(_COMMA.match, texts)):
        return cells
    return [_COMMA.sub(r"\1.\2", cell.strip()) if isinstance(cell, str) else cell for cell in cells]


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
    """Return whether a text is a number, perhaps with a decimal comma or a unit sign: ``0,5``, ``59 %``, ``3/5``.

    >>> is_quantity("59 %"), is_quantity("0,5"), is_quantity("7 dwarfs")
    (True, True, False)
    """
    quantity = _QUANTITY.fullmatch(text.strip())
    return quantity is not None and not quantity["unit"]


def plain_numbers(raw: Sequence[object], location: str, *, shares: bool = True) -> Sequence[object]:
    """Return labels with percentages divided by 100 and decimal commas replaced, if all labels are written that way.

    Args:
        raw: the cells of a column of labels.
        location: name of the column in messages.
        shares: whether percentages may be divided by 100; ``False`` if a given scale goes beyond 1.

    Raises:
        DataError: for ambiguous cells, such as ``1,000``, or percentages among plain numbers.
    """
    _refuse_thousands(raw, location)
    non_empty = [cell for cell in raw if isinstance(cell, str) and cell.strip() not in ("", "-")]
    percents = [cell for cell in non_empty if _PERCENT.fullmatch(cell.strip())]
    if not percents:
        return with_points(raw)
    plain_cells = [
        cell for cell in raw if cell not in (None, "") and not _is_percent(cell) and to_number(cell) is not None
    ]
    if plain_cells:
        raise DataError(
            f"{location} holds percentages beside plain numbers, as in {percents[0]!r} and {plain_cells[0]!r}. Write "
            "all labels in one way."
        )
    if not shares:
        raise DataError(
            f"{location} holds percentages, as in {percents[0]!r}, which are read as numbers from 0 to 1, and "
            "`label_range` goes further. Write the numbers without %, or give `label_range` 0 1."
        )
    without_sign = [_PERCENT.sub(r"\1", cell.strip()) if _is_percent(cell) else cell for cell in raw]  # type: ignore[attr-defined]
    numbers = [to_number(cell) for cell in with_points(without_sign)]
    pairs = zip(raw, numbers, strict=True)
    return [number / 100 if number is not None and _is_percent(cell) else cell for cell, number in pairs]


def _is_percent(cell: object) -> bool:
    return isinstance(cell, str) and _PERCENT.fullmatch(cell.strip()) is not None


def _refuse_thousands(raw: Sequence[object], location: str) -> None:
    """Raise DataError if a mark may separate thousands or decimals, and no other number of the column settles it."""
    texts = [_PERCENT.sub(r"\1", cell.strip()) for cell in raw if isinstance(cell, str)]
    grouped = next(
        (text for text in texts if _MANY_THOUSANDS.fullmatch(text) or _GROUPED_DECIMAL.fullmatch(text)), None
    )
    if grouped is not None:
        raise DataError(f"{location} has marks between thousands, as in {grouped!r}. Write the numbers without them.")
    ambiguous = next((text for text in texts if _may_be_thousands(text, texts)), None)
    if ambiguous is not None:
        whole = re.sub(r"[,.]", "", ambiguous)
        decimal = ambiguous.replace(",", ".")
        raise DataError(
            f"{location} holds {ambiguous!r}, which may be {whole} or {float(decimal):g}. Write the numbers without "
            "marks between thousands, and decimals with a point."
        )


def _may_be_thousands(text: str, texts: Sequence[str]) -> bool:
    """Return whether the mark of a number may separate thousands, judged by all numbers of the column.

    A comma certainly separates decimals if another number has three digits after it and cannot have thousands, such
    as 0,125. A point separates decimals unless all numbers with a point have three digits after it and the column also
    has whole numbers of 100 and more.
    """
    number = _THOUSANDS.fullmatch(text)
    if number is None:
        return False
    # Whether the mark separates thousands depends on the other numbers with this mark.
    mark = number["mark"]
    marked = [candidate for candidate in texts if mark in candidate]
    if mark == ",":
        is_decimal = any(
            _THREE_DECIMALS.fullmatch(candidate) and not _THOUSANDS.fullmatch(candidate) for candidate in marked
        )
        return not is_decimal or any("." in candidate for candidate in texts)
    if any(_THOUSANDS.fullmatch(candidate) is None for candidate in marked):
        return False
    return any(candidate.lstrip("+-").isdecimal() and len(candidate.lstrip("+-0")) >= 3 for candidate in texts)


def is_number(text: str) -> bool:
    """Return whether a text is a number in digits."""
    return _NUMBER.fullmatch(text.strip()) is not None


def to_number(value: object) -> float | None:
    """Return a label cell as a finite number, or ``None`` if it is not one.

    Numbers, ``true`` and ``false``, ``yes`` and ``no``, and the class names of published paraphrase data are parsed in
    any case.
    """
    # Decimals, and scalars of NumPy and torch.
    if not isinstance(value, str | int | float) and (isinstance(value, Decimal) or hasattr(value, "item")):
        value = float(value) if isinstance(value, Decimal) else _item(value)
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        # An integer can be too large for a float.
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
    """Return a NumPy or torch scalar as a Python number; ``None`` for an array of several."""
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):
        return None


MOST_WORDS = 12
"""Most different words that a column of labels may have; a column with more holds something else."""

SHOWN = 5
"""Labels that a message shows, the most frequent first."""


def describe_words(cells: Sequence[object]) -> str:
    """Return the labels with their counts and a fix, for a message, if all labels are words; else ``""``."""
    words = Counter(cell.strip() for cell in cells if isinstance(cell, str) and cell.strip())
    # Other cells are not strings, so the column is something else.
    if not words or sum(words.values()) < len(cells):
        return ""
    listed = ", ".join(f"{word[:40]!r} ({count})" for word, count in words.most_common(SHOWN))
    ending = f" and {len(words) - SHOWN} others" if len(words) > SHOWN else ""
    if are_quantities(list(words)):
        fix = "Write plain numbers, without a unit: 3/5 as 0.6, 4 stars as 4."
    elif len(words) > MOST_WORDS:
        fix = "If it is not the column of labels, name the columns: `columns` first,second,label."
    elif len(words) == 2:
        fix = "Replace them by 1 for a pair that belongs together, and 0 for one that does not."
    else:
        fix = "Replace them by numbers: the higher, the closer the two texts."
    return f"{listed}{ending}. {fix}"
