"""Rows of TSV and CSV files, with or without a header line and quotes."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from samesense.data.conventions.column_names import KNOWN_NAMES, normalize_name, number_repeated
from samesense.data.conventions.named_columns import listed
from samesense.data.conventions.numbers import is_number, is_quantity
from samesense.data.rows.delimiters import (
    DELIMITERS_OF,
    MARKS,
    declared_delimiter,
    find_delimiter,
    refuse_other_delimiter,
)
from samesense.data.rows.table_options import FIELD_OPTIONS, TableOptions, current_options
from samesense.data.rows.text import CARRIAGE_RETURNS, LONGEST_ROW, Line
from samesense.data.rows.tsv import MOST_LINES, Record, log_quoted, split_quoted, tsv_records
from samesense.errors import DataError
from samesense.failures import excerpt

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_QUOTING = (
    "A text with a comma, a quote or a line break stands in double quotes, which are closed, and a quote inside it is "
    "doubled; where quotes are characters like any other: `quoting` none."
)

_BACKSLASHES = (
    "A quote in a quoted text is doubled, and here backslashes stand before quotes, as databases and Spark write them. "
    "Write the file again; in pandas: pandas.read_csv(path, escapechar='\\\\').to_csv(path, index=False)."
)

Rules = Literal["csv", "tsv", "none"]
"""How quotes are read: as in CSV, row by row as in TSV written by a program, or as ordinary characters."""

BYTE_ORDER_MARK = "\ufeff"

_OPEN_ENDED = "Open-Ended Response"
_IMPORT_IDS = re.compile(r'\{"ImportId": ?".*\}')
"""A cell of the third line of a table of Qualtrics."""

RULE = re.compile(r"[\s+:=-]*--[\s+:=-]*")
"""A cell of the line below the header of a table for the eye, as of psql or Markdown."""

WRITE_CSV = "Write CSV instead; of psql: psql --csv."
"""What is done about a table for the eye."""


@dataclass(frozen=True)
class Form:
    """The dialect of a table, so that a block of its rows can be read without the lines before it.

    Attributes:
        delimiter: the character between fields.
        rules: how quotes are read; see :data:`Rules`.
        names: names of the columns.
        width: number of fields of the first row, which may end in empty fields without a name.
        spaced: whether a space after the delimiter belongs to the delimiter.
        encoding: encoding of the file, if it is not UTF-8.
    """

    delimiter: str = ""
    rules: Rules = "none"
    names: tuple[str, ...] = field(default=())
    width: int = 0
    spaced: bool = False
    encoding: str | None = None

    def to_json(self) -> str:
        """Return the dialect as JSON, for :meth:`from_json`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Form:
        """Return the dialect that :meth:`to_json` wrote; the default for an empty string."""
        values = json.loads(text) if text else {}
        # JSON has no tuples.
        return cls(**{**values, "names": tuple(values.get("names", ()))})


class OpenTable(NamedTuple):
    """A table whose first lines were read to detect its dialect.

    Attributes:
        form: how its rows are read.
        before: number of lines before the header, such as ``sep=;``.
        header: line number of the header, ``None`` if there is none.
        rows: line numbers and cells by column name.
    """

    form: Form
    before: int
    header: int | None
    rows: Iterator[tuple[int, dict[str, object]]]


def delimited_rows(suffix: str, path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the rows of a ``.tsv`` or ``.csv`` file; a row is numbered by the line it starts on.

    Delimiter, quoting and header are those of the options, see
    :func:`~samesense.data.rows.table_options.table_options`, or else are detected where the first lines leave no doubt.
    """
    yield from open_table(suffix, path, lines).rows


def form_of(suffix: str, path: str | Path, lines: Iterable[Line]) -> Form:
    """Return how the rows of a file are read, detected from its first lines."""
    return open_table(suffix, path, lines).form


def rows_in_form(path: str | Path, form: Form, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read a block of rows from the middle of a file, in the form that :func:`form_of` detected."""
    yield from _named_rows(str(path), form, _records(str(path), lines, form, warn=False), ".csv")


def read_fields(path: str, lines: Iterable[Line], width: int) -> Iterator[Record]:
    """Yield the rows of tab-separated lines without a header, read like ``.tsv`` and by the options."""
    options = current_options(*FIELD_OPTIONS)
    delimiter = options.delimiter or "\t"
    form = Form(delimiter, options.quoting or ("tsv" if delimiter == "\t" else "csv"), width=width)
    records = _records(path, lines, form)
    if options.header == "yes":
        next(records, None)
    return records


def open_table(suffix: str, path: str | Path, lines: Iterable[Line]) -> OpenTable:
    """Open a ``.tsv`` or ``.csv`` file and detect its dialect from the first lines; see :func:`delimited_rows`."""
    path = str(path)
    options = current_options(*FIELD_OPTIONS)
    first, lines = _peek(lines)
    declared = ""
    if suffix == ".csv":  # only Excel declares a delimiter, and only there
        declared = declared_delimiter(first)
    before = 0
    if declared:
        before = 1
        next(lines)
        first = first[1:]
    header, *following = [line for _, line in first] or [""]
    # What the user says comes first, then what the file says of itself.
    delimiter = options.delimiter or declared or find_delimiter(path, header, following, DELIMITERS_OF[suffix])
    rules = _rules_of(suffix, header, delimiter, options)
    if rules == "csv" and suffix == ".tsv" and options.quoting is None and delimiter == "\t":
        log_quoted(path)
    # Only if every delimiter is followed by a space; otherwise such a space belongs to the text.
    spaced = rules == "csv" and 0 < header.count(delimiter) == header.count(f"{delimiter} ")
    form = Form(delimiter, rules, spaced=spaced, encoding=options.encoding)
    records = _records(path, lines, form, before)
    top = next(records, None)
    if top is None:
        return OpenTable(form, before, None, iter(()))
    form = replace(form, width=len(top[1]))
    names = _column_names(path, top, options.header)
    if names is not None and len(names) == 1 and options.delimiter is None:
        refuse_other_delimiter(path, names[0], [line for line in following if line.strip()])
    if names is None:
        form = replace(form, names=_names_without_header(top[1]))
        return OpenTable(form, before, None, _named_rows(path, form, chain([top], records), suffix))
    form = replace(form, names=tuple(names))
    return OpenTable(form, before, top[0], _named_rows(path, form, records, suffix))


def _records(path: str, lines: Iterable[Line], form: Form, before: int = 0, *, warn: bool = True) -> Iterator[Record]:
    """Yield the rows that are not empty; ``before`` is the number of lines that precede ``lines`` in the file."""
    if form.rules == "csv":
        return _csv_records(path, lines, form, before)
    if form.rules == "tsv":
        return tsv_records(path, lines, form.width or None, warn=warn)
    # A line of nothing but delimiters, as spreadsheets leave at the end, is no row.
    records = ((number, line.rstrip("\r\n").split(form.delimiter)) for number, line in lines)
    return (record for record in records if any(record[1]))


def _csv_records(path: str, lines: Iterable[Line], form: Form, before: int) -> Iterator[Record]:
    if csv.field_size_limit() < LONGEST_ROW:  # set for the process; an unclosed quote swallows the lines after it
        csv.field_size_limit(LONGEST_ROW)
    last_line = ""

    def read_lines() -> Iterator[str]:
        nonlocal last_line
        for _, line in lines:
            last_line = line
            yield line

    # Strict, because an unclosed quote would silently swallow the rows after it.
    reader = csv.reader(read_lines(), strict=True, delimiter=form.delimiter, skipinitialspace=form.spaced)
    start = before + 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "new-line character" in str(error):
                fix = CARRIAGE_RETURNS
            else:
                fix = _BACKSLASHES if '\\"' in last_line else _QUOTING
            reason = str(error).partition(" - ")[0]  # the rest is advice to callers of the csv module
            raise DataError(
                f"{path}, row {start}: the row breaks the quoting rules of CSV ({reason}). {fix}"
            ) from error
        # The csv module returns no cells for a blank line; a single empty cell is a quoted empty text.
        if any(cells) or len(cells) == 1:
            yield start, cells
        start = before + reader.line_num + 1


def _rules_of(suffix: str, header: str, delimiter: str, options: TableOptions) -> Rules:
    """Return how quotes are read; a TSV file whose header is quoted, as programs write it, is read like CSV."""
    if options.quoting is not None:
        return options.quoting
    if suffix == ".csv" or delimiter != "\t":
        return "csv"
    if options.header != "no" and _is_quoted_header(header):
        return "csv"
    return "tsv"


def _is_quoted_header(header: str) -> bool:
    """Return whether the column names are quoted: all of them, or a known one."""
    names = header.rstrip("\r\n").split("\t")
    quoted = [name[1:-1] for name in names if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]]
    if any(normalize_name(name) in KNOWN_NAMES for name in quoted):
        return True
    bare = split_quoted(header.rstrip("\r\n"))
    return len(quoted) == len(names) and bare is not None and not is_headerless(bare)


def _peek(lines: Iterable[Line]) -> tuple[list[Line], Iterator[Line]]:
    """Return the first non-empty lines, up to the end of the second row after the header, and all lines again."""
    remaining = iter(lines)
    read: list[Line] = []
    non_empty = 0
    quotes = 0
    size = 0
    for line in remaining:
        read.append(line)
        size += len(line[1])
        quotes += line[1].count('"')
        non_empty += bool(line[1].strip())
        # An odd number of quotes means that a quoted text goes on in the next line.
        if (non_empty >= 3 and quotes % 2 == 0) or len(read) > MOST_LINES or size > LONGEST_ROW:
            break
    return [line for line in read if line[1].strip()], chain(read, remaining)


def _column_names(path: str, top: Record, header: str | bool | None) -> list[str] | None:
    """Return the column names in the first row, ``None`` if it is data."""
    if header == "no" or (header is None and is_headerless(top[1])):
        return None
    names = _without_empty_end(top[1])
    numbered_names = number_repeated(names)
    # Without a name of its own, or with a number or a sentence for one, the line is rather data.
    if not set(numbered_names).intersection(filter(None, names)) or _look_like_data(names):
        refuse_repeated(f"{path}, row {top[0]}", names)
    return numbered_names


def _names_without_header(cells: list[str]) -> tuple[str, ...]:
    if is_headerless(cells):
        return tuple(HEADERLESS)
    if len(cells) == 1:
        return ("text",)
    return tuple(f"column{number}" for number in range(1, len(cells) + 1))


def _named_rows(
    path: str, form: Form, records: Iterator[Record], suffix: str
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows as cells by column name."""
    width = len(form.names)
    unnamed = [index for index, name in enumerate(form.names) if not name.strip()]
    are_several = len(unnamed) > 1
    # Empty names at the end are not among those of the form; a single name may be a title above the others.
    if width > 1:
        unnamed += range(width, form.width)
    for position, (number, cells) in enumerate(records):
        if len(cells) > width and not any(cells[width:]):
            del cells[width:]  # trailing empty columns, as spreadsheets leave them
        if unnamed:
            _refuse_unnamed_texts(f"{path}, row {number}", cells, unnamed, are_several=are_several)
        if len(cells) != width:
            hint = _field_count_fix(form, suffix, cells, starts=not position)
            raise DataError(
                f"{path}, row {number}: every row must have the {width} fields of the header "
                f"({listed(form.names)}); this one has {len(cells)}. {hint}"
            )
        if position == 1 and _IMPORT_IDS.fullmatch(cells[-1]):
            raise DataError(
                f"{path}, row {number}: the row holds the identifiers of the questions, as Qualtrics writes them, "
                "below their wording. Delete both rows."
            )
        if not position and _OPEN_ENDED in cells:
            raise DataError(
                f"{path}, row {number}: the row says {_OPEN_ENDED!r}, which SurveyMonkey writes below a question, and "
                "is no answer. Delete the row."
            )
        if width > 1 and _repeats_names(cells, form.names):
            raise DataError(
                f"{path}, row {number}: the row repeats the names of the columns ({listed(form.names)}), as where "
                "files were put together. Delete the row, or give the files one by one."
            )
        yield number, dict(zip(form.names, cells, strict=True))


def _refuse_unnamed_texts(location: str, cells: Sequence[str], unnamed: Sequence[int], *, are_several: bool) -> None:
    """Raise DataError if a column without a name holds a text, as below a merged cell; the index of a frame is none.

    Of several such columns none may hold a number either: the last would stand for all of them.
    """
    for index in unnamed:
        cell = cells[index].strip() if index < len(cells) else ""
        # The first column may be the index of a frame, which pandas and R write without a name.
        if index and cell and (are_several or (not is_number(cell) and not is_quantity(cell))):
            raise DataError(
                f"{location}: a column of data needs a name, and column {index + 1}, which holds {excerpt(cell, 40)} "
                "here, has none. Write one into the first line; where names stand in two lines, as below merged cells, "
                "write them in one."
            )


def _repeats_names(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the cells of a row are the names of the columns; a file in the middle may begin with its mark."""
    if not names[-1].startswith(cells[-1].strip()):
        return False
    return number_repeated([cells[0].removeprefix(BYTE_ORDER_MARK), *cells[1:]]) == list(names)


def _field_count_fix(form: Form, suffix: str, cells: Sequence[str], *, starts: bool) -> str:
    """Return the fix for a row with too many or too few fields; ``starts`` if it is the first below the header."""
    too_many = len(cells) > len(form.names)
    if starts and any(cells) and all(RULE.fullmatch(cell) for cell in cells if cell):
        return f"The line seems to be a rule below the header, as psql and Markdown draw it. {WRITE_CSV}"
    if too_many and len(form.names) == 1 and (starts or form.names[0].lstrip().startswith(("#", "%"))):
        return "If what is above the names of the columns is a title or a comment, delete it."
    if starts and len(cells) == len(form.names) + 1 and is_number(cells[0]):
        return (
            "The header seems to have no name for the row numbers, as R writes it: in R, write.table(..., "
            "row.names = FALSE)."
        )
    if _look_like_data(list(form.names)):
        return "The first line seems to be data: add a header line."
    if form.rules == "csv":
        name = MARKS.get(form.delimiter, repr(form.delimiter))
        if too_many:
            return f"A text with {name} in it must stand in double quotes."
        return (
            f"Between fields stand {name}, also around an empty one; a text with a line break stands in double quotes."
        )
    if too_many:
        fix = "Write a tab inside a text as a space"
        if suffix != ".csv":
            fix += "; name a comma-separated file .csv"
        if form.delimiter == "\t":
            fix += f"; if the last fields are notes, cut them off: cut -f1-{len(form.names)}"
        return f"{fix}."
    return "Write a line break inside a text as a space; where texts stand in quotes: `quoting` csv."


def _without_empty_end(header: list[str]) -> list[str]:
    non_empty = [index for index, name in enumerate(header) if name.strip()]
    if not non_empty:
        return header
    return header[: non_empty[-1] + 1]


def is_headerless(cells: list[str]) -> bool:
    """Return whether a first line is already data: two texts and a number, none of them a known column name.

    The number may have a decimal comma, or a unit such as ``%``.
    """
    if len(cells) != 3 or any(normalize_name(cell) in KNOWN_NAMES for cell in cells):
        return False
    # Two numbers are identifiers, as in triples of ids.
    if is_number(cells[0]) and is_number(cells[1]):
        return False
    if is_quantity(cells[2]):
        return True
    try:
        # float() takes "nan" and "inf" for numbers, which are words here.
        return math.isfinite(float(cells[2]))
    except ValueError:
        return False


def refuse_repeated(location: str, header: list[str]) -> None:
    """Raise :class:`DataError` if two columns have the same name, ignoring case; ``location`` is for the message."""
    # Names are looked up without regard to case, so these would be ambiguous.
    counts = Counter(name.strip().casefold() for name in header)
    repeated = [name for name in dict.fromkeys(header) if counts[name.strip().casefold()] > 1]
    if repeated:
        fix = "Rename the columns."
        if _look_like_data(header):
            fix = "The first line seems to be data: add a header line."
        raise DataError(
            f"{location}: column names must differ; {listed([repr(name) for name in repeated])} stands more than once. "
            f"{fix}"
        )


def _look_like_data(header: list[str]) -> bool:
    """Return whether column names seem to be a row of data, because one is a number or a sentence."""
    return any(is_number(name) or name.strip().endswith((".", "!", "。")) for name in header)
