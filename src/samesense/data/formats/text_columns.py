"""Which columns of a table hold texts, where their names do not say it: to take the only one, or to name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from samesense.data.formats.columns import (
    CLASS_NAMES,
    LABEL_NAMES,
    SINGLE_NAMES,
    SUBSET_NAMES,
    TEXT_PAIRS,
    first_of,
    first_pair_of,
    spelled_names,
)
from samesense.data.formats.files import Row
from samesense.data.formats.labels import to_number
from samesense.errors import ConfigError, DataError

SEEN = 100
"""Rows of a table by which its columns are told."""

MOST_WORDS = 4
"""Words of the name of a column; of more it is a text, in a table without a header line."""

_ENDS = (".", "?", "!", "。", "？", "！")
IDENTIFIERS = ("id", "idx", "index", "split")
"""Names of columns that say nothing of a row's texts."""

_NO_TEXTS = {*LABEL_NAMES, *SUBSET_NAMES, *IDENTIFIERS, "class"}


def names_in(rows: Iterable[Row]) -> list[str]:
    """Return the names of the columns, in the order in which rows have them."""
    return list(dict.fromkeys(name for _, cells in rows for name in cells))


def holding_texts(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold texts: not numbers, nor labels, identifiers or parts by their names."""
    seen = rows[:SEEN]
    return [
        name
        for name in names_in(seen)
        if name.strip().casefold() not in _NO_TEXTS and _are_texts([cells.get(name) for _, cells in seen])
    ]


def _are_texts(values: Iterable[object]) -> bool:
    filled = [value for value in values if value not in (None, "")]
    return all(isinstance(value, str) for value in filled) and any(to_number(value) is None for value in filled)


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
        return _as_name(found[0], source)
    shown = ", ".join(names) or "none"
    what = f"several columns hold texts ({', '.join(found)})" if found else "no column of texts could be found"
    raise DataError(
        f"{source}: {what}. Its columns: {shown}. Name the one to read: `columns` {found[0] if found else 'NAME'}"
    )


def _as_name(name: str, source: str) -> str:
    if name.strip().endswith(_ENDS) or len(name.split()) > MOST_WORDS:
        raise DataError(
            f"{source}: the first line of a table names its columns, and {name!r} seems to be a text. Add a header "
            "line; or, of one text a line, end the name of the file in .txt."
        )
    return name


def named_column(names: Sequence[str], columns: str, source: str) -> str:
    """Return the column that ``columns`` names, as the source spells it; DataError if it has none of this name."""
    found = columns if columns in names else first_of((columns.strip().casefold(),), spelled_names(names))
    if found is not None:
        return found
    if "," in columns:
        raise ConfigError(f"{source}: one text a row is read here, so that `columns` takes one name; got {columns!r}.")
    raise DataError(
        f"{source}: `columns` names {columns!r}, which this source does not have. Its columns: {', '.join(names)}. "
        "Name one."
    )


def example(rows: Sequence[Row]) -> str:
    """Return a guess at ``columns`` for labelled pairs, first,second,label, for an error; empty if there is none."""
    names, texts = names_in(rows[:SEEN]), holding_texts(rows)
    if any(to_number(name) is not None for name in names):
        return ""  # the header is a row of data
    spelled = spelled_names(names)
    known = first_pair_of(TEXT_PAIRS, spelled)
    pair = [spelled[name] for name in known] if known else texts
    others = [name for name in names if name not in pair[:2] and name.strip().casefold() not in ("id", "idx", "index")]
    label = first_of((*CLASS_NAMES, *LABEL_NAMES), spelled_names(others)) or next(
        (name for name in others if name not in texts), others[-1] if others else None
    )
    return ",".join([*pair[:2], label]) if len(pair) >= 2 and label is not None else ""
