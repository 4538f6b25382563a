"""Rows of tab-separated values: quotes are taken off where the row proves that a program wrote them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from samesense.data.rows.text import LONGEST_ROW, Line

logger = logging.getLogger(__name__)

Record = tuple[int, list[str]]
"""The line on which a row starts, and its fields."""

MOST_LINES = 1000
"""Most lines of a row whose quoted fields contain line breaks."""

_DOUBLED = re.compile(r'(?:^|\s)""|""(?:\s|$)')
"""A doubled quote beside whitespace or an end; ``"one""two"`` could also be two quoted phrases of a text."""

_FIELD = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^\t]*))(?P<end>\t|$)')


def tsv_records(path: str, lines: Iterable[Line], width: int | None = None, *, warn: bool = True) -> Iterator[Record]:
    """Yield the rows of TSV that are not empty.

    The quotes of a row were written by a program if the row proves it: a quoted field has a doubled quote beside a
    space or at an end of the text, or a quoted tab or line break without which the row does not have as many fields as
    the table has columns. Then all quoted fields of the row are unquoted. Quotes of other rows are ordinary characters;
    if a whole field is quoted, a warning is logged once, with the option that settles it.

    Args:
        path: name of the file in messages.
        lines: lines with their line ends.
        width: number of columns; by default that of the first row.
        warn: whether to warn of doubtful quotes; ``False`` where a block of a file is read again.
    """
    remaining = _Lines(lines, warned=not warn)
    for number, line in remaining:
        text = line.rstrip("\r\n")
        fields = text.split("\t")
        if '"' in text and any(field[:1] == '"' for field in fields):
            # Until a row is read, its own fields are the best guess of the width.
            expected = len(fields) if width is None else width
            fields = _unquote(path, number, line, fields, expected, remaining)
        if any(fields):
            if width is None:
                width = len(fields)
            yield number, fields


class _Lines(Iterator[Line]):
    """An iterator over lines that lets lines be put back."""

    def __init__(self, lines: Iterable[Line], *, warned: bool) -> None:
        self._lines = iter(lines)
        self._back: list[Line] = []
        self.warned = warned

    def __next__(self) -> Line:
        if self._back:
            return self._back.pop()
        return next(self._lines)

    def put_back(self, lines: list[Line]) -> None:
        """Put these lines back, so that they come next."""
        self._back.extend(reversed(lines))


def _unquote(path: str, number: int, line: str, fields: list[str], width: int, remaining: _Lines) -> list[str]:
    """Return the fields of a row with quotes; if it has more lines, they are taken from ``remaining``."""
    fits = len(fields) == width
    quoted = split_quoted(line.rstrip("\r\n"))
    # Proof that a program quoted the row: its fields fit only without quotes, or it has a doubled quote.
    if quoted is not None and len(quoted) == width and (not fits or _has_doubled(fields)):
        log_quoted(path)
        return quoted
    # Without proof the quotes stay; a field that is quoted as a whole is worth a warning.
    quoted_field = next(filter(_is_quoted, fields), None) if fits else None
    if line.count('"') % 2:  # a quote is open at the end of the line
        continuation = _read_continuation(line, width, remaining, fits=fits)
        joined = split_quoted("".join([line, *(text for _, text in continuation.lines)]).rstrip("\r\n"))
        if continuation.is_certain and joined is not None:
            log_quoted(path)
            return joined
        remaining.put_back(continuation.lines)
        if continuation.lines:
            quoted_field = next(field for field in fields if field[:1] == '"')
    if quoted_field is not None and not remaining.warned:
        remaining.warned = True
        _warn_of_quotes(path, number, quoted_field)
    return fields


class _Continuation(NamedTuple):
    """The lines that complete a line with an open quote to a row of CSV.

    Attributes:
        lines: the lines; none if there is no such row.
        is_certain: whether the lines cannot be rows by themselves.
    """

    lines: list[Line]
    is_certain: bool


def _read_continuation(line: str, width: int, remaining: _Lines, *, fits: bool) -> _Continuation:
    """Read the lines that complete a line with an open quote; ``fits`` if the line fits the table alone."""
    row = line
    continuation: list[Line] = []
    is_certain = True
    # The bounds keep an unclosed quote from reading the whole file.
    while row.count('"') % 2 and len(continuation) < MOST_LINES and len(row) <= LONGEST_ROW:
        following = next(remaining, None)
        if following is None:
            break
        continuation.append(following)
        # If both lines are rows by themselves, the quotes may belong to the texts.
        is_certain = is_certain and not (fits and following[1].count("\t") + 1 == width)
        row += following[1]
    fields = split_quoted(row.rstrip("\r\n"))
    if row.count('"') % 2 == 0 and fields is not None and len(fields) == width:
        return _Continuation(continuation, is_certain)
    remaining.put_back(continuation)
    return _Continuation([], is_certain=False)


def split_quoted(row: str) -> list[str] | None:
    """Return the fields of a row by the rules of CSV, without quotes; ``None`` if it breaks them."""
    fields: list[str] = []
    position = 0
    while True:
        field = _FIELD.match(row, position)
        # An unclosed quote, or text after a closing one.
        if field is None or (field["bare"] or "").startswith('"'):
            return None
        if field["quoted"] is None:
            fields.append(field["bare"])
        else:
            fields.append(field["quoted"].replace('""', '"'))
        position = field.end()
        if not field["end"]:
            return fields


def quote_fields(fields: list[str]) -> list[str]:
    """Return the fields of a row as written to TSV, so that :func:`tsv_records` reads them back unchanged.

    Fields are quoted only if one of them is in quotes, which would be removed otherwise.
    """
    if not any(_is_quoted(field) for field in fields):
        return fields
    return ['"' + field.replace('"', '""') + '"' if field[:1] == '"' else field for field in fields]


def unquote_fields(line: str) -> list[str]:
    """Return the fields of a row that :func:`quote_fields` wrote, without its quotes."""
    fields = line.split("\t")
    if _has_doubled(fields):
        return split_quoted(line) or fields
    return fields


def _has_doubled(fields: Iterable[str]) -> bool:
    """Return whether a quoted field has a doubled quote that only a program writes."""
    return any(_is_quoted(field) and _DOUBLED.search(field[1:-1]) is not None for field in fields)


def _is_quoted(field: str) -> bool:
    """Return whether a field is in quotes and all quotes inside it are doubled."""
    return len(field) > 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', "")


_LOGGED = set[tuple[str, str]]()
"""Messages about the quotes of a file that were logged, so that each is logged once."""


def log_quoted(path: str) -> None:
    """Log, once for each file, that its quotes are removed because a program wrote them."""
    if (path, "quoted") not in _LOGGED:
        _LOGGED.add((path, "quoted"))
        logger.info(
            f"{path}: fields stand in double quotes, with quotes in them doubled, which are taken off; to keep all "
            "quotes: `quoting` none"
        )


def _warn_of_quotes(path: str, number: int, field: str) -> None:
    if (path, field) in _LOGGED:
        return
    _LOGGED.add((path, field))
    shortened = field if len(field) <= 60 else f"{field[:60]}..."
    logger.warning(
        f"{path}, row {number}: {shortened} is read with its quotes, as nothing in the row says that a program wrote "
        "them; other rows are read alike. Where a program wrote them: `quoting` csv; where they belong to the texts: "
        "`quoting` none."
    )
