"""Whether the fields of a TSV file stand in quotes as a program writes them: told by all of its rows."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from samesense.data.formats.lines import LONGEST_ROW, Line, read_lines
from samesense.errors import DataError
from samesense.urls import state

logger = logging.getLogger(__name__)

LOOKED_AT = 10_000
"""Lines of a file without a quote after which none is expected."""

_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^"\t]*))(?:\t|$)')


def is_quoted(path: str | Path) -> bool:
    """Return whether the fields of a TSV file are quoted by the rules of CSV, and say so where they are.

    Then every quote of the file opens or closes a whole field or is doubled within one, and all rows have the same
    number of fields. Quotes that a text has of its own rarely stand so: a field is quoted because it holds a quote, a
    tab, a line break or a comma, as programs write it, or a whole column is; and more than one row has quotes, unless
    there is a tab or a line break within them. A file that breaks off is not quoted.
    """
    try:
        return _is_quoted(str(path), state(str(path)))
    except (OSError, DataError):  # which reading the file says in its place
        return False


@lru_cache(maxsize=64)
def _is_quoted(path: str, _: tuple[int, str]) -> bool:
    lines = iter(read_lines(path))
    first = list(islice(lines, LOOKED_AT))
    if not any('"' in line for _, line in first):
        return False
    quoted = _Quotes().hold(chain(first, lines))
    if quoted:
        logger.info(f"{path}: fields stand in double quotes, with quotes in them doubled; it is read by these rules")
    return quoted


class _Quotes:
    """What the rows that were seen say of quotes."""

    def __init__(self) -> None:
        self._fields = 0
        self._quoted = 0  # rows with a quoted field; of one alone the quotes may be the text's own
        self._broken = False  # whether without quoting a row would have more fields, or fewer
        self._bare = set[int]()  # columns with a field without quotes
        self._needless = set[int]()  # columns with a field whose quotes no program had to write

    def hold(self, lines: Iterable[Line]) -> bool:
        """Return whether all lines keep the rules, and their quotes are those of a program."""
        row = ""
        for number, line in lines:
            row += line
            if len(row) > LONGEST_ROW:
                return False
            if row.count('"') % 2:  # a line break within a field
                continue
            if row.strip("\r\n") and not self._add(row.rstrip("\r\n"), header=number == 1):
                return False
            row = ""
        return not row and (self._broken or self._quoted > 1)

    def _add(self, row: str, *, header: bool) -> bool:
        fields, end = list[re.Match[str]](), 0
        while (field := _FIELD.match(row, end)) is not None:
            fields.append(field)
            end = field.end()
            if not field[0].endswith("\t"):
                break
        if field is None or len(fields) != (self._fields or len(fields)):
            return False
        self._fields = len(fields)
        for column, field in enumerate(() if header else fields):
            if field[1] is None:
                self._bare.add(column)
            elif "\t" in field[1] or "\n" in field[1]:
                self._broken = True
            elif '"' not in field[1] and "," not in field[1]:  # spreadsheets quote fields with commas
                self._needless.add(column)
        self._quoted += not header and '"' in row
        return not self._bare & self._needless
