"""Quotes in a row of TSV: those of a program, which are taken off, and those of a text, which stay.

Each row is judged by itself and the number of columns, so that it reads the same whatever other rows a file has.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator

from samesense.data.formats.lines import LONGEST_ROW, Line

logger = logging.getLogger(__name__)

Record = tuple[int, list[str]]
"""The line on which a row starts, and its fields."""

MOST_LINES = 1000
"""Lines of a row whose fields have line breaks in quotes."""

_DOUBLED = re.compile(r'(?:^|\s)""|""(?:\s|$)')
"""A doubled quote beside a space or an end: ``"one""two"`` may be two phrases of a text, each in its own quotes."""

_FIELD = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^\t]*))(?P<end>\t|$)')


def tsv_records(path: str, lines: Iterable[Line], width: int | None = None, *, warn: bool = True) -> Iterator[Record]:
    """Yield the rows of TSV that are not empty.

    A field in quotes is one that a program has quoted where the row shows it: by a doubled quote in a quoted field that
    stands beside a space or at an end of the text, or by a tab or a line break in quotes without which the row has not
    as many fields as the table has columns. Then all fields of the row that stand in quotes are. Quotes of all other
    rows are characters; of a field that stands in quotes as a whole, this is logged once as a warning, with the option
    that settles it.

    Args:
        path: what messages call the file.
        lines: with their ends.
        width: the number of columns; by default that of the first row.
        warn: whether doubtful quotes are warned of; not where a part of a file is read again.
    """
    rest = _Lines(lines, warned=not warn)
    for number, line in rest:
        text = line.rstrip("\r\n")
        fields = text.split("\t")
        if '"' in text and any(field[:1] == '"' for field in fields):
            fields = _judged(path, number, line, fields, len(fields) if width is None else width, rest)
        if any(fields):
            width = len(fields) if width is None else width
            yield number, fields


class _Lines(Iterator[Line]):
    """Lines, of which some can be put back."""

    def __init__(self, lines: Iterable[Line], *, warned: bool) -> None:
        self._lines, self._back = iter(lines), list[Line]()
        self.warned = warned

    def __next__(self) -> Line:
        return self._back.pop() if self._back else next(self._lines)

    def put_back(self, lines: list[Line]) -> None:
        """Have these lines come next."""
        self._back.extend(reversed(lines))


def _judged(path: str, number: int, line: str, fields: list[str], width: int, rest: _Lines) -> list[str]:
    """Return the fields of a row with quotes; its further lines are taken from the rest."""
    fits = len(fields) == width
    quoted = split_quoted(line.rstrip("\r\n"))
    if quoted is not None and len(quoted) == width and (not fits or _has_doubled(fields)):
        say_quoted(path)
        return quoted
    doubtful = next(filter(_quoted, fields), None) if fits else None
    if line.count('"') % 2:
        further, certain = _further_lines(line, width, rest, fits=fits)
        joined = split_quoted("".join([line, *(text for _, text in further)]).rstrip("\r\n"))
        if certain and joined is not None:
            say_quoted(path)
            return joined
        rest.put_back(further)
        if further:
            doubtful = next(field for field in fields if field[:1] == '"')
    if doubtful is not None and not rest.warned:
        rest.warned = True
        _warn_of_quotes(path, number, doubtful)
    return fields


def _further_lines(line: str, width: int, rest: _Lines, *, fits: bool) -> tuple[list[Line], bool]:
    """Return the lines after one that make a row of CSV with it, as its quotes are open, none if there is no such row.

    And whether that is certain: not where both the line and one of them fit the table by themselves.
    """
    row, further, certain = line, list[Line](), True
    while row.count('"') % 2 and len(further) < MOST_LINES and len(row) <= LONGEST_ROW:
        following = next(rest, None)
        if following is None:
            break
        further.append(following)
        certain = certain and not (fits and following[1].count("\t") + 1 == width)
        row += following[1]
    fields = split_quoted(row.rstrip("\r\n"))
    if row.count('"') % 2 == 0 and fields is not None and len(fields) == width:
        return further, certain
    rest.put_back(further)
    return [], False


def split_quoted(row: str) -> list[str] | None:
    """Return the fields of a row by the rules of CSV, quotes taken off; ``None`` if it breaks them."""
    fields, position = list[str](), 0
    while True:
        field = _FIELD.match(row, position)
        if field is None or (field["bare"] or "").startswith('"'):
            return None
        fields.append(field["bare"] if field["quoted"] is None else field["quoted"].replace('""', '"'))
        position = field.end()
        if not field["end"]:
            return fields


def quote_fields(fields: list[str]) -> list[str]:
    """Return the fields of a row of TSV as they are written, so that :func:`tsv_records` reads them as they are.

    Fields are quoted only where one of them stands in quotes, which would be taken off.
    """
    if not any(_quoted(field) for field in fields):
        return fields
    return ['"' + field.replace('"', '""') + '"' if field[:1] == '"' else field for field in fields]


def _has_doubled(fields: Iterable[str]) -> bool:
    """Return whether a field stands in quotes and has a doubled quote in it that only a program writes."""
    return any(_quoted(field) and _DOUBLED.search(field[1:-1]) is not None for field in fields)


def _quoted(field: str) -> bool:
    """Return whether a field stands in quotes, and quotes in it are doubled: those of a program, or of a text."""
    return len(field) > 2 and field[0] == field[-1] == '"' and '"' not in field[1:-1].replace('""', "")


_SAID = set[tuple[str, str]]()
"""What was said of the quotes of a file: once for each, however often it is read."""


def say_quoted(path: str) -> None:
    """Log once for a file that its quotes are read as those of a program."""
    if (path, "quoted") not in _SAID:
        _SAID.add((path, "quoted"))
        logger.info(
            f"{path}: fields stand in double quotes, with quotes in them doubled, which are taken off; to keep all "
            "quotes: `quoting` none"
        )


def _warn_of_quotes(path: str, number: int, field: str) -> None:
    if (path, field) in _SAID:
        return
    _SAID.add((path, field))
    shown = field if len(field) <= 60 else f"{field[:60]}..."
    logger.warning(
        f"{path}, row {number}: {shown} is read with its quotes, as nothing in the row says that a program wrote them; "
        "other rows are read alike. Where a program wrote them: `quoting` csv; where they belong to the texts: "
        "`quoting` none."
    )
