"""Rows of TSV and CSV files, with or without a header line."""

from __future__ import annotations

import csv
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from samesense.data.formats.columns import KNOWN_NAMES, listed, plain
from samesense.data.formats.label_values import is_number, is_quantity
from samesense.data.formats.lines import CARRIAGE_RETURNS, LONGEST_ROW, Line
from samesense.data.formats.options import DELIMITERS, FIELD_OPTIONS, TableOptions, current_options
from samesense.data.formats.quoting import MOST_LINES, Record, say_quoted, split_quoted, tsv_records
from samesense.errors import DataError

logger = logging.getLogger(__name__)

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_QUOTING = (
    "A text with a comma, a quote or a line break stands in double quotes, which are closed, and a quote inside it is "
    "doubled; where quotes are characters like any other: `quoting` none."
)

_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_OF_ENDING = {".tsv": ("\t", ",", ";"), ".csv": (",", ";", "\t", "|")}
"""Marks that may stand between the fields, the usual one first."""

_SAID_MARK = re.compile(r"sep=([;,|\t])")

Rules = Literal["csv", "tsv", "none"]
"""What quotes are: those of CSV, those that each row of TSV says to be a program's, or characters."""


@dataclass(frozen=True)
class Form:
    """How the rows of a table are read, so that a part of them is read as in the whole file.

    Attributes:
        delimiter: the character between fields.
        rules: see :data:`Rules`.
        names: of the columns.
        width: how many fields the first row has; behind the names there may be empty ones.
        spaced: whether a space behind the delimiter belongs to it.
        encoding: of the file, where it is not UTF-8.
    """

    delimiter: str = ""
    rules: Rules = "none"
    names: tuple[str, ...] = field(default=())
    width: int = 0
    spaced: bool = False
    encoding: str | None = None

    def to_json(self) -> str:
        """Return what :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Form:
        """Return the form that was written; that of a file without one for an empty text."""
        values = json.loads(text) if text else {}
        return cls(**{**values, "names": tuple(values.get("names", ()))})


class OpenTable(NamedTuple):
    """A table of which the first lines are read.

    Attributes:
        form: how its rows are read.
        before: lines before the header, which name the delimiter.
        header: the line of the names of the columns, ``None`` if there is none.
        rows: line numbers and cells by the names of the columns.
    """

    form: Form
    before: int
    header: int | None
    rows: Iterator[tuple[int, dict[str, object]]]


def open_table(suffix: str, path: str | Path, lines: Iterable[Line]) -> OpenTable:
    """Read the first lines of a ``.tsv`` or ``.csv`` file, and return what they say; see :func:`delimited_rows`."""
    return _opened(suffix, str(path), lines)


def delimited_rows(suffix: str, path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the rows of a ``.tsv`` or ``.csv`` file; a row is numbered by the line it starts on.

    What is between the fields, whether they stand in quotes, and whether the first line has names are those of the
    options, see :func:`~samesense.data.formats.options.table_options`, or else what the first lines show for certain.
    """
    yield from open_table(suffix, path, lines).rows


def form_of(suffix: str, path: str | Path, lines: Iterable[Line]) -> Form:
    """Return how the rows of a file are read, by its first lines."""
    return open_table(suffix, path, lines).form


def rows_in_form(path: str | Path, form: Form, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read rows without the first lines of their file, which :func:`form_of` has read."""
    yield from _rows(str(path), form, _records(str(path), lines, form, warn=False), ".csv")


def read_fields(path: str, lines: Iterable[Line], width: int) -> Iterator[Record]:
    """Yield the rows of tab-separated lines without a header, by the rules of ``.tsv`` and the options."""
    options = current_options(*FIELD_OPTIONS)
    delimiter = options.delimiter or "\t"
    form = Form(delimiter, options.quoting or ("tsv" if delimiter == "\t" else "csv"), width=width)
    records = _records(path, lines, form)
    if options.header == "yes":
        next(records, None)
    return records


def _opened(suffix: str, path: str, lines: Iterable[Line]) -> OpenTable:
    """Return how a file is read and its rows."""
    options = current_options(*FIELD_OPTIONS)
    first, lines = _peeked(lines)
    said = _said_mark(first) if suffix == ".csv" else ""
    before = 1 if said else 0
    if said:
        next(lines)
        first = first[1:]
    header, *following = [line for _, line in first] or [""]
    delimiter = options.delimiter or said or _delimiter_of(path, header, following, _OF_ENDING[suffix])
    rules = _rules_of(suffix, header, delimiter, options)
    if rules == "csv" and suffix == ".tsv" and options.quoting is None and delimiter == "\t":
        say_quoted(path)
    # else a space before a text is the text's own
    spaced = rules == "csv" and 0 < header.count(delimiter) == header.count(f"{delimiter} ")
    form = Form(delimiter, rules, spaced=spaced, encoding=options.encoding)
    records = _records(path, lines, form, before)
    top = next(records, None)
    if top is None:
        return OpenTable(form, before, None, iter(()))
    form = replace(form, width=len(top[1]))
    names = _names_of(path, top, options.header)
    if names is None:
        form = replace(form, names=_names_without_header(top[1]))
        return OpenTable(form, before, None, _rows(path, form, chain([top], records), suffix))
    form = replace(form, names=tuple(names))
    return OpenTable(form, before, top[0], _rows(path, form, records, suffix))


def _records(path: str, lines: Iterable[Line], form: Form, before: int = 0, *, warn: bool = True) -> Iterator[Record]:
    """Yield the rows that are not empty; ``before`` lines are not among ``lines``."""
    if form.rules == "csv":
        return _csv_records(path, lines, form, before)
    if form.rules == "tsv":
        return tsv_records(path, lines, form.width or None, warn=warn)
    records = ((number, line.rstrip("\r\n").split(form.delimiter)) for number, line in lines)
    return (record for record in records if any(record[1]))


def _csv_records(path: str, lines: Iterable[Line], form: Form, before: int) -> Iterator[Record]:
    if csv.field_size_limit() < LONGEST_ROW:  # of the process; a quote that is never closed takes in what follows
        csv.field_size_limit(LONGEST_ROW)
    texts = (line for _, line in lines)
    reader = csv.reader(texts, strict=True, delimiter=form.delimiter, skipinitialspace=form.spaced)
    start = before + 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fix = CARRIAGE_RETURNS if "new-line character" in str(error) else _QUOTING
            reason = str(error).partition(" - ")[0]  # the rest is advice for callers of the module
            raise DataError(
                f"{path}, row {start}: the row breaks the quoting rules of CSV ({reason}). {fix}"
            ) from error
        if any(cells) or len(cells) == 1:
            yield start, cells
        start = before + reader.line_num + 1


def _rules_of(suffix: str, header: str, delimiter: str, options: TableOptions) -> Rules:
    """Return what quotes are; of TSV those of CSV where the names of the columns stand in quotes, as programs write."""
    if options.quoting is not None:
        return options.quoting
    if suffix == ".csv" or delimiter != "\t":
        return "csv"
    return "csv" if options.header != "no" and _is_quoted_header(header) else "tsv"


def _is_quoted_header(header: str) -> bool:
    """Return whether the names of columns stand in quotes: all of them, or one that is known."""
    names = header.rstrip("\r\n").split("\t")
    quoted = [name[1:-1] for name in names if len(name) > 2 and name[0] == name[-1] == '"' and '"' not in name[1:-1]]
    if any(plain(name) in KNOWN_NAMES for name in quoted):
        return True
    bare = split_quoted(header.rstrip("\r\n"))
    return len(quoted) == len(names) and bare is not None and not is_headerless(bare)


def _said_mark(first: Sequence[Line]) -> str:
    """Return the mark that a first line of its own names, as Excel has it; ``""`` for none."""
    said = _SAID_MARK.fullmatch(first[0][1].strip().strip('"')) if first else None
    return "" if said is None else said[1]


def _peeked(lines: Iterable[Line]) -> tuple[list[Line], Iterator[Line]]:
    """Return the first lines that are not empty, to the end of the second row with all its quotes, and all lines."""
    rest, read = iter(lines), list[Line]()
    filled, quotes, size = 0, 0, 0
    for line in rest:
        read.append(line)
        size += len(line[1])
        quotes += line[1].count('"')
        filled += bool(line[1].strip())
        if (filled >= 3 and quotes % 2 == 0) or len(read) > MOST_LINES or size > LONGEST_ROW:
            break
    return [line for line in read if line[1].strip()], chain(read, rest)


def _delimiter_of(path: str, header: str, following: Sequence[str], marks: Sequence[str]) -> str:
    """Return the mark between the fields: the usual one of ``marks``, or another that the first two rows show.

    The usual one needs no second row. Another must give the second row as many fields as the header, or columns that
    are known by their names. DataError where the header has another mark and neither is so.
    """
    fields = {mark: _fields([header], mark) for mark in marks}
    agree = [mark for mark in marks if fields[mark] > 1 and _fields(following, mark) == fields[mark]]
    if fields[marks[0]] > 1:
        others = [mark for mark in agree if mark != marks[0]]
        only = bool(following) and marks[0] not in agree and len(others) == 1 and _are_names(header, others[0])
        return others[0] if only else marks[0]
    known = [mark for mark in marks[1:] if fields[mark] > 1 and _has_known_names(header, mark)]
    if known:
        return known[0]
    others = [mark for mark in marks[1:] if fields[mark] > 1 and mark != ","]
    for mark in others:
        if mark in agree:
            return mark
    if others and following:
        raise DataError(
            f"{path}: {_MARKS[others[0]]} stand in the first line, and no {_MARKS[marks[0]]}; by them, the first line "
            f"has {fields[others[0]]} fields and the row after it {_fields(following, others[0])}. Say what is between "
            f"the fields: `delimiter` {_named_mark(others[0])}, or `delimiter` {_named_mark(marks[0])}."
        )
    return marks[0]


def _named_mark(mark: str) -> str:
    return next(name for name, character in DELIMITERS.items() if character == mark)


def _names_in(header: str, mark: str) -> list[str]:
    return [plain(part.strip('" ')) for part in header.strip().split(mark)]


def _has_known_names(header: str, mark: str) -> bool:
    return bool(KNOWN_NAMES.intersection(_names_in(header, mark)))


def _are_names(header: str, mark: str) -> bool:
    """Return whether the parts of a header are all filled and short, as names are."""
    return all(0 < len(part) <= 40 for part in _names_in(header, mark))


def _fields(lines: Sequence[str], mark: str) -> int:
    """Return how many fields the first row of some lines has; a mark or a line break between quotes is the text's."""
    try:
        return len(next(csv.reader(lines, delimiter=mark), ()))
    except csv.Error:  # longer than a field may be
        return 0


def _names_of(path: str, top: Record, header: str | bool | None) -> list[str] | None:
    """Return the names in the first row, ``None`` if it is data."""
    if header == "no" or (header is None and is_headerless(top[1])):
        return None
    names = _without_empty_end(top[1])
    refuse_repeated(f"{path}, row {top[0]}", names)
    return names


def _names_without_header(cells: list[str]) -> tuple[str, ...]:
    if is_headerless(cells):
        return tuple(HEADERLESS)
    return ("text",) if len(cells) == 1 else tuple(f"column{number}" for number in range(1, len(cells) + 1))


def _rows(path: str, form: Form, records: Iterator[Record], suffix: str) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows by the names of their columns."""
    width = len(form.names)
    for number, cells in records:
        if len(cells) > width and not any(cells[width:]):
            del cells[width:]  # empty columns behind the last, as spreadsheets leave them
        if len(cells) != width:
            hint = _hint(form, suffix, too_many=len(cells) > width)
            raise DataError(
                f"{path}, row {number}: every row must have the {width} fields of the header "
                f"({listed(form.names)}); this one has {len(cells)}. {hint}"
            )
        yield number, dict(zip(form.names, cells, strict=True))


def _hint(form: Form, suffix: str, *, too_many: bool) -> str:
    """Return the fix for a row of too many or too few fields."""
    if form.rules == "csv":
        name = _MARKS.get(form.delimiter, repr(form.delimiter))
        if too_many:
            return f"A text with {name} in it must stand in double quotes."
        return (
            f"Between fields stand {name}, also around an empty one; a text with a line break stands in double quotes."
        )
    if too_many:
        return "Write a tab inside a text as a space; name a comma-separated file .csv."
    return "Write a line break inside a text as a space; where texts stand in quotes: `quoting` csv."


def _without_empty_end(header: list[str]) -> list[str]:
    filled = [at for at, name in enumerate(header) if name.strip()]
    return header[: filled[-1] + 1] if filled else header


def is_headerless(cells: list[str]) -> bool:
    """Tell whether a first line is already data: two texts and a number, none of them a known column name.

    The number may have a decimal comma, or a unit such as ``%``.
    """
    if len(cells) != 3 or any(plain(cell) in KNOWN_NAMES for cell in cells):
        return False
    if is_quantity(cells[2]):
        return True
    try:
        return math.isfinite(float(cells[2]))
    except ValueError:
        return False


def refuse_repeated(place: str, header: list[str]) -> None:
    """Raise :class:`DataError` if two columns have one name, whatever its case; ``place`` says where."""
    counts = Counter(name.strip().casefold() for name in header)
    repeated = [name for name in dict.fromkeys(header) if counts[name.strip().casefold()] > 1]
    if repeated:
        raise DataError(
            f"{place}: column names must differ; {listed([repr(name) for name in repeated])} stands more than once. "
            + ("The first line seems to be data: add a header line." if _hold_data(header) else "Rename the columns.")
        )


def _hold_data(header: list[str]) -> bool:
    """Return whether names of columns seem to be a row of data: a number is among them, or a sentence."""
    return any(is_number(name) or name.strip().endswith((".", "!", "。")) for name in header)
