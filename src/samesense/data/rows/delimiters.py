"""The delimiter of a table: declared, the usual one, or another that its first rows prove."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from samesense.data.conventions.column_names import KNOWN_NAMES, normalize_name
from samesense.data.rows.table_options import DELIMITERS
from samesense.data.rows.text import Line
from samesense.errors import DataError
from samesense.failures import excerpt

MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
# Excel writes semicolons where the comma is the decimal mark.
DELIMITERS_OF = {".tsv": ("\t", ",", ";"), ".csv": (",", ";", "\t", "|")}
"""Possible delimiters by file ending, the usual one first."""

# A line of its own before the header, which Excel understands.
_DECLARED_MARK = re.compile(r"sep=([;,|\t])")


def declared_delimiter(first: Sequence[Line]) -> str:
    """Return the delimiter that the first line declares, as Excel's ``sep=;`` does; ``""`` for none."""
    declaration = None
    if first:
        declaration = _DECLARED_MARK.fullmatch(first[0][1].strip("\r\n ").strip('"'))
    if declaration is None:
        return ""
    return declaration[1]


def find_delimiter(path: str, header: str, following: Sequence[str], marks: Sequence[str]) -> str:
    """Return the delimiter: the usual one of ``marks``, or another if the first two rows are proof of it.

    The usual one needs no proof. Another must give the second row as many fields as the header, or known column
    names. DataError if the header has only another mark, and there is no such proof, or if two marks fit equally well.
    """
    usual, *others = marks
    fields = {mark: _count_fields([header], mark) for mark in marks}
    agreeing = [mark for mark in marks if 1 < fields[mark] == _count_fields(following, mark)]
    if fields[usual] > 1:
        # Another mark wins only if it is the only one that fits both rows, and splits the header into names.
        if following and len(agreeing) == 1 and _are_names(header, agreeing[0]):
            return agreeing[0]
        if following and usual in agreeing:
            return _mark_of_names(path, header, usual, agreeing)
        return usual
    present = [mark for mark in others if fields[mark] > 1]
    proven = _proven_mark(header, present, agreeing)
    if proven is not None:
        return proven
    alternatives = [mark for mark in present if mark != ","]
    # Without a second row there is nothing to disagree with.
    if alternatives and following:
        raise _uncertain_mark_error(path, header, following, alternatives[0], usual)
    return usual


def _mark_of_names(path: str, header: str, usual: str, agreeing: Sequence[str]) -> str:
    """Return the one mark of several that splits the header into known names; DataError if it is not the only one.

    Commas are common within texts, so that only known names speak for them where another mark is usual.
    """
    known = [mark for mark in agreeing if _has_known_names(header, mark)]
    if len(known) == 1:
        return known[0]
    rivals = [mark for mark in agreeing if mark != usual and (mark != "," or mark in known)]
    if not rivals:
        return usual
    marks = " and by ".join(MARKS[mark] for mark in (usual, *rivals))
    choices = ", or ".join(f"`delimiter` {_named_mark(mark)}" for mark in (usual, *rivals))
    raise DataError(
        f"{path}: the first line and the row after it have as many fields as each other by {marks}. Say what is "
        f"between the fields: {choices}."
    )


def _uncertain_mark_error(path: str, header: str, following: Sequence[str], mark: str, usual: str) -> DataError:
    return DataError(
        f"{path}: {MARKS[mark]} stand in the first line, and no {MARKS[usual]}; by them, the first line "
        f"has {_count_fields([header], mark)} fields and the row after it {_count_fields(following, mark)}. Say what "
        f"is between the fields: `delimiter` {_named_mark(mark)}, or `delimiter` {_named_mark(usual)}."
    )


def _proven_mark(header: str, present: Sequence[str], agreeing: Sequence[str]) -> str | None:
    """Return the mark that splits the header into known names, or gives both rows as many fields; else ``None``."""
    for mark in present:
        if _has_known_names(header, mark):
            return mark
    for mark in present:
        # Commas are common within texts, so that they need known names as proof.
        if mark != "," and mark in agreeing:
            return mark
    return None


def _named_mark(mark: str) -> str:
    return next(name for name, character in DELIMITERS.items() if character == mark)


def _names_in(header: str, mark: str) -> list[str]:
    return [normalize_name(name.strip('" ')) for name in header.strip().split(mark)]


def _has_known_names(header: str, mark: str) -> bool:
    return bool(KNOWN_NAMES.intersection(_names_in(header, mark)))


def _are_names(header: str, mark: str) -> bool:
    """Return whether the fields of a header are all filled and short, as names are."""
    return all(0 < len(name) <= 40 for name in _names_in(header, mark))


def _count_fields(lines: Sequence[str], mark: str) -> int:
    """Return the number of fields of the first row, where quoted marks and line breaks belong to the text."""
    try:
        return len(next(csv.reader(lines, delimiter=mark), ()))
    except csv.Error:  # the field is longer than the csv module allows
        return 0


_RARE_MARKS = frozenset("~^§¦¬#$&=+*@\\|" + "".join(map(chr, range(1, 32))))
"""Marks that no text has as often as the next one."""

_FEWEST_ROWS = 2
"""Rows from which on it is hardly chance that each has a mark as often as the header; no more are looked at."""


def refuse_other_delimiter(path: str, name: str, following: Sequence[str]) -> None:
    """Raise DataError if the only name of a header is several names, between which an unusual mark stands.

    They are known names, or a rare mark stands in each of the ``following`` lines as often as between them.
    """
    words = re.split(r"([^\w\s-]|[\x01-\x1f])", name.strip())
    known = [word for word in words[::2] if normalize_name(word.strip("'\" ")) in KNOWN_NAMES]
    marks = set(words[1::2]) - {'"', "'"}
    if len(marks) != 1:
        return
    (mark,) = marks
    count = name.count(mark)
    is_shared = len(following) >= _FEWEST_ROWS and all(line.count(mark) == count for line in following)
    if len(known) > 1 or (mark in _RARE_MARKS and is_shared and all(words[::2])):
        raise DataError(
            f"{path}: the first line, {excerpt(name)}, has the names of several columns, and {mark!r} stands "
            f"between them. Say that it is between the fields: `delimiter` {_shell(mark)}. If it is the name of one "
            "column: `delimiter` comma."
        )


def _shell(mark: str) -> str:
    """Return a delimiter as it is written in a shell."""
    return f"'{mark}'" if mark.isprintable() else f"$'\\x{ord(mark):02x}'"
