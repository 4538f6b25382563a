"""Which columns of a table hold texts, where their names do not say it: to take the only one, or to name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from samesense.data.formats.columns import (
    CLASS_NAMES,
    LABEL_NAMES,
    SINGLE_NAMES,
    SUBSET_NAMES,
    TEXT_PAIRS,
    first_of,
    first_pair_of,
    identifies,
    plain,
    spelled_names,
)
from samesense.data.formats.files import Row
from samesense.data.formats.label_values import is_number, to_number, with_points
from samesense.errors import ConfigError, DataError

SNIFFED_ROWS = 1000
"""Rows of a table by which its columns are told."""

MOST_WORDS = 4
"""Words of the name of a column; of more it is a text, in a table without a header line, and of as many if those that
follow it are no longer."""

_ENDS = (".", "?", "!", "。", "？", "！")
_NO_TEXTS = {*LABEL_NAMES, *SUBSET_NAMES, "class"}
_TITLES = ("title", "headline", "heading", "subject")
_TITLED = ("text", "sentence", "body", "content", "article", "document", "description", "message", "review", "abstract")
"""Names of columns of which the first say what the second are about."""

_CODES = re.compile(r"https?://\S+|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ][\d:.+Z-]+)?|[0-9a-f-]{16,}", re.IGNORECASE)
"""Addresses, dates and keys, which are written like texts and are none."""


def names_in(rows: Iterable[Row]) -> list[str]:
    """Return the names of the columns, in the order in which rows have them."""
    return list(dict.fromkeys(name for _, cells in rows for name in cells))


def holding_texts(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold texts: not numbers, nor labels, identifiers or parts by their names."""
    seen = rows[:SNIFFED_ROWS]
    return [
        name
        for name in names_in(seen)
        if plain(name) not in _NO_TEXTS and not identifies(name) and _are_texts([cells.get(name) for _, cells in seen])
    ]


def _are_texts(values: Iterable[object]) -> bool:
    filled = [value for value in values if value not in (None, "")]
    texts = [value.strip() for value in filled if isinstance(value, str)]
    codes = [is_number(str(text)) or _CODES.fullmatch(str(text)) is not None for text in with_points(texts)]
    words = any(not code and to_number(text) is None for code, text in zip(codes, texts, strict=True))
    return len(texts) == len(filled) and words and 2 * sum(codes) <= len(texts)


def text_column(rows: Sequence[Row], columns: str | None, source: str) -> str:
    """Return the column of which every row gives one text: the one that is named, or else the only one with texts.

    A column with the name of a single text, such as ``text``, goes before others. DataError if there is none or
    several, or not the one that is named; ConfigError if several are named.
    """
    names = names_in(rows)
    spelled = spelled_names(names)
    if columns is not None:
        return named_column(names, columns, source)
    named = [spelled[name] for name in SINGLE_NAMES if name in spelled]
    found = named if named and not first_pair_of(TEXT_PAIRS, spelled) else holding_texts(rows)
    if len(names) == 1 and any(isinstance(cells.get(names[0]), str) for _, cells in rows):
        found = names  # also numbers, and a name that is a label's
    if len(found) == 1:
        refuse_text(found[0], source, rows, "; or, of one text a line, end the name of the file in .txt")
        return found[0]
    shown = ", ".join(names) or "none"
    what = f"several columns hold texts ({', '.join(found)})" if found else "no column of texts could be found"
    raise DataError(
        f"{source}: {what}. Its columns: {shown}. Name the one to read: `columns` {found[0] if found else 'NAME'}"
    )


def refuse_text(name: str, source: str, rows: Sequence[Row], otherwise: str = "") -> None:
    """Raise DataError if the name of a column seems to be a text, which stands in a file without a header line."""
    lengths = sorted(len(str(cells.get(name)).split()) for _, cells in rows[:SNIFFED_ROWS])
    words = len(name.split())
    if _seems_text(name) or (lengths and words == MOST_WORDS >= lengths[len(lengths) // 2]):
        raise DataError(
            f"{source}: the first line of a table names its columns, and {name!r} seems to be a text. Add a header "
            f"line{otherwise}."
        )


def _seems_text(name: str) -> bool:
    return name.strip().endswith(_ENDS) or len(name.split()) > MOST_WORDS


def named_column(names: Sequence[str], columns: str, source: str) -> str:
    """Return the column that ``columns`` names, as the source spells it; DataError if it has none of this name."""
    found = columns if columns in names else first_of((plain(columns),), spelled_names(names))
    if found is not None:
        return found
    if "," in columns:
        raise ConfigError(f"{source}: one text a row is read here, so that `columns` takes one name; got {columns!r}.")
    raise DataError(
        f"{source}: `columns` names {columns!r}, which this source does not have. Its columns: {', '.join(names)}. "
        "Name one."
    )


def example(rows: Sequence[Row]) -> str:
    """Return a guess at ``columns`` for an error, first,second,label, or two texts if nothing may be a label."""
    names, texts = names_in(rows[:SNIFFED_ROWS]), holding_texts(rows)
    if any(is_number(name) or _seems_text(name) for name in names):
        return ""  # the header is a row of data
    spelled = spelled_names(names)
    known = first_pair_of(TEXT_PAIRS, spelled)
    pair = [spelled[name] for name in known] if known else texts[:2]
    label = _label_column(rows, pair, texts)
    return ",".join([*pair, *([] if label is None else [label])]) if len(pair) == 2 else ""


def guessed_pairs(rows: Sequence[Row]) -> str | None:
    """Return ``columns`` of labelled pairs by what they hold: two of texts, and one of labels; ``None`` if unknown.

    The label has a known name, or the texts have and nothing else is there.
    """
    names, texts = names_in(rows), holding_texts(rows)
    spelled = spelled_names(names)
    if len(texts) != 2 or {"premise", "hypothesis"} <= spelled.keys() or titled_text(rows):
        return None
    known = first_of(LABEL_NAMES, spelled)
    if known is None and first_pair_of(TEXT_PAIRS, spelled) and len(saying(names, texts)) == 1:
        known = _label_column(rows, texts, texts)
    return None if known is None else ",".join([*texts, known])


def titled_text(rows: Sequence[Row]) -> tuple[str, str, str] | None:
    """Return title, text and class of a table with these columns, as of news or mails; ``None`` for other tables.

    A title and its text are no pair to be compared, unless their labels are decimals, as similarities are.
    """
    texts = holding_texts(rows)
    spelled = spelled_names(texts)
    title, text = first_of(_TITLES, spelled), first_of(_TITLED, spelled)
    label = first_of(("label", "labels", "class"), spelled_names(names_in(rows[:SNIFFED_ROWS])))
    if len(texts) != 2 or title is None or text is None or label is None:
        return None
    numbers = (to_number(cells.get(label)) for _, cells in rows[:SNIFFED_ROWS])
    return None if any(number is not None and not number.is_integer() for number in numbers) else (title, text, label)


def saying(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the names of columns beside those of texts, but for subsets and identifiers."""
    return [name for name in names if name not in texts and plain(name) not in SUBSET_NAMES and not identifies(name)]


def _label_column(rows: Sequence[Row], pair: Sequence[str], texts: Sequence[str]) -> str | None:
    """Return the column beside a pair that may be a label: by its name, or the first that varies and holds no texts."""
    others = saying(names_in(rows[:SNIFFED_ROWS]), pair)
    named = first_of((*CLASS_NAMES, *LABEL_NAMES), spelled_names(others))
    return named or next((name for name in others if name not in texts and _vary(rows, name)), None)


def _vary(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column holds values, and no integers that number the rows."""
    values = [cells.get(name) for _, cells in rows[:SNIFFED_ROWS] if cells.get(name) not in (None, "")]
    numbers = [to_number(value) for value in values]
    whole = all(number is not None and number.is_integer() for number in numbers)
    return bool(values) and not (whole and len(numbers) > 3 and len(set(numbers)) == len(numbers))
