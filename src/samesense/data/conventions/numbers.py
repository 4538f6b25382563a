"""Numbers as programs and people write them: decimal marks, percentages, thousands and units."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from samesense.data.conventions.class_names import WORDS, word_of
from samesense.data.conventions.scales import Scale
from samesense.errors import DataError

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


_MARKS = str.maketrans({"−": "-", "－": "-", "＋": "+", "٫": ".", "．": ".", "，": ",", "％": "%", "٪": "%"})
# a number in ASCII, perhaps a percentage
_ASCII_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?\s*%?", re.ASCII)


def with_ascii_digits(cells: Sequence[object]) -> Sequence[object]:
    """Return labels with numbers in ASCII that are written in other digits or with the minus of typography.

    >>> with_ascii_digits(["٣٫٥", "−1", "３", 2, "three"])
    ['3.5', '-1', '3', 2, 'three']
    """
    if all(not isinstance(cell, str) or cell.isascii() for cell in cells):
        return cells
    return [_in_ascii(cell) if isinstance(cell, str) and not cell.isascii() else cell for cell in cells]


def _in_ascii(text: str) -> str:
    """Return a number in ASCII digits; another text unchanged."""
    digits = (unicodedata.decimal(character, None) for character in text)
    translated = "".join(
        character if digit is None else str(digit) for character, digit in zip(text, digits, strict=True)
    ).translate(_MARKS)
    if _ASCII_NUMBER.fullmatch(translated.strip()):
        return translated
    return text


def with_points(cells: Sequence[object]) -> Sequence[object]:
    """Return labels with decimal points if all decimals have commas, as many spreadsheets write them."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    # One decimal point is enough: commas then separate something else.
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
        if quantity is not None and quantity["unit"]:
            units.add(quantity["unit"].casefold())
    return bool(texts) and len(units) <= MOST_UNITS


def is_quantity(text: str) -> bool:
    """Return whether a text is a number, perhaps with a decimal comma or a unit sign: ``0,5``, ``59 %``, ``3/5``.

    >>> is_quantity("59 %"), is_quantity("0,5"), is_quantity("7 dwarfs")
    (True, True, False)
    """
    quantity = _QUANTITY.fullmatch(text.strip())
    return quantity is not None and not quantity["unit"]


def plain_numbers(raw: Sequence[object], location: str, label_range: Scale | None = None) -> Sequence[object]:
    """Return labels with percentages divided by 100 and decimal commas replaced, if all labels are written that way.

    Args:
        raw: the cells of a column of labels.
        location: name of the column in messages.
        label_range: scale of the labels, if it is given.

    Raises:
        DataError: for ambiguous cells, such as ``1,000``, or percentages among plain numbers.
    """
    _refuse_thousands(raw, location, label_range)
    percents = [cell for cell in raw if _is_percent(cell)]
    if not percents:
        return with_points(raw)
    plain_cells = [cell for cell in raw if not _is_percent(cell) and to_number(cell) is not None]
    if plain_cells:
        raise DataError(
            f"{location} holds percentages beside plain numbers, as in {percents[0]!r} and {plain_cells[0]!r}. Write "
            "all labels in one way."
        )
    # Percentages are read as fractions, so they do not fit a given scale beyond 1.
    if label_range is not None and label_range[1] > 1:
        raise DataError(
            f"{location} holds percentages, as in {percents[0]!r}, which are read as numbers from 0 to 1, and "
            "`label_range` goes further. Write the numbers without %, or give `label_range` 0 1."
        )
    return _as_shares(raw)


def _as_shares(raw: Sequence[object]) -> list[object]:
    """Return labels with percentages divided by 100; other cells unchanged."""
    # The sign goes first, so that decimal commas are judged in all cells together.
    numbers = [to_number(cell) for cell in with_points([_without_sign(cell) for cell in raw])]
    cells = list(raw)
    for position, (cell, number) in enumerate(zip(raw, numbers, strict=True)):
        if number is not None and _is_percent(cell):
            cells[position] = number / 100
    return cells


def _without_sign(cell: object) -> object:
    """Return a percentage without its sign; other cells unchanged."""
    if isinstance(cell, str) and _is_percent(cell):
        return _PERCENT.sub(r"\1", cell.strip())
    return cell


def _is_percent(cell: object) -> bool:
    return isinstance(cell, str) and _PERCENT.fullmatch(cell.strip()) is not None


def _refuse_thousands(raw: Sequence[object], location: str, label_range: Scale | None) -> None:
    """Raise DataError if a mark may separate thousands or decimals, and neither other numbers nor the scale settle it.

    A given scale settles it where it holds the decimal, and not the thousands.
    """
    texts = [_PERCENT.sub(r"\1", cell.strip()) for cell in raw if isinstance(cell, str)]
    grouped = next(
        (text for text in texts if _MANY_THOUSANDS.fullmatch(text) or _GROUPED_DECIMAL.fullmatch(text)), None
    )
    if grouped is not None:
        raise DataError(f"{location} has marks between thousands, as in {grouped!r}. Write the numbers without them.")
    for text in texts:
        if not _may_be_thousands(text, texts):
            continue
        whole = float(re.sub(r"[,.]", "", text))
        decimal = float(text.replace(",", "."))
        if label_range is not None and label_range[0] <= decimal <= label_range[1] < abs(whole):
            continue
        raise DataError(
            f"{location} holds {text!r}, which may be {whole:g} or {decimal:g}. Write the numbers without marks "
            "between thousands, and decimals with a point; or, if they are decimals, give their scale, such as "
            "`label_range` 0 5"
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
    if isinstance(value, Decimal | Fraction):
        value = _rounded(value)
    # Scalars of NumPy and torch.
    elif not isinstance(value, str | int | float) and hasattr(value, "item"):
        value = _item(value)
    if isinstance(value, (bool, int, float)):
        try:
            number = float(value)
        # An integer can be too large for a float.
        except OverflowError:
            return None
        if math.isfinite(number):
            return number
        return None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number):
            return number
        return None
    return WORDS.get(word_of(text))


def _rounded(value: Decimal | Fraction) -> float | None:
    """Return a decimal or a fraction as a float; ``None`` for one that is too large."""
    try:
        return float(value)
    except OverflowError:
        return None


def _item(value: Any) -> object:
    """Return a NumPy or torch scalar as a Python number; ``None`` for an array of several, or a time."""
    # item() gives a time in nanoseconds as a number.
    if getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M"):
        return None
    try:
        return value.item()
    except (TypeError, ValueError, RuntimeError):
        return None


def number_text(number: float) -> str:
    """Return a number as text without trailing zeros: ``5``, ``3.75``."""
    # Six digits hide the rounding of sums such as 0.1 + 0.2.
    return f"{number:.6g}"


def percent_text(count: int, total: int) -> str:
    """Return a fraction as a percentage that is never rounded up to 100 unless ``count`` is ``total``."""
    percent = 100 * count / total
    digits = 1
    while count < total and f"{percent:.{digits}f}".startswith("100") and digits < 6:
        digits += 1
    return f"{percent:.{digits}f} %"
