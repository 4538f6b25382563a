"""Rows of TSV and CSV files, with or without a header line and quotes."""

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

from samesense.data.rows.columns import KNOWN_NAMES, listed, normalize_name
from samesense.data.rows.labels import is_number, is_quantity
from samesense.data.rows.text import (
    CARRIAGE_RETURNS,
    DELIMITERS,
    FIELD_OPTIONS,
    LONGEST_ROW,
    Line,
    TableOptions,
    current_options,
)
from samesense.errors import DataError
from samesense.failures import excerpt

logger = logging.getLogger(__name__)

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_QUOTING = (
    "A text with a comma, a quote or a line break stands in double quotes, which are closed, and a quote inside it is "
    "doubled; where quotes are characters like any other: `quoting` none."
)

_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
# Excel writes semicolons where the comma is the decimal mark.
_OF_ENDING = {".tsv": ("\t", ",", ";"), ".csv": (",", ";", "\t", "|")}
"""Possible delimiters by file ending, the usual one first."""

# A line of its own before the header, which Excel understands.
_DECLARED_MARK = re.compile(r"sep=([;,|\t])")

Rules = Literal["csv", "tsv", "none"]
"""How quotes are read: as in CSV, row by row as in TSV written by a program, or as ordinary characters."""

Record = tuple[int, list[str]]
"""The line on which a row starts, and its fields."""

MOST_LINES = 1000
"""Most lines of a row whose quoted fields contain line breaks."""

BYTE_ORDER_MARK = "\ufeff"

_IMPORT_IDS = re.compile(r'\{"ImportId": ?".*\}')
"""A cell of the third line of a table of Qualtrics."""

MOST_KEY_WORDS = 2
"""Most words of a key in the index of a frame, which is written as a column without a name."""

_RULE = re.compile(r"[\s+:=-]*--[\s+:=-]*")
"""A cell of the line below the header of a table for the eye, as of psql or Markdown."""

_DOUBLED = re.compile(r'(?:^|\s)""|""(?:\s|$)')
"""A doubled quote beside whitespace or an end; ``"one""two"`` could also be two quoted phrases of a text."""

_FIELD = re.compile(r'(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[^\t]*))(?P<end>\t|$)')


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


def open_table(suffix: str, path: str | Path, lines: Iterable[Line]) -> OpenTable:
    """Open a ``.tsv`` or ``.csv`` file and detect its dialect from the first lines; see :func:`delimited_rows`."""
    return _detect_dialect(suffix, str(path), lines)


def delimited_rows(suffix: str, path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the rows of a ``.tsv`` or ``.csv`` file; a row is numbered by the line it starts on.

    Delimiter, quoting and header are those of the options, see
    :func:`~samesense.data.rows.text.table_options`, or else are detected where the first lines leave no doubt.
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


def _detect_dialect(suffix: str, path: str, lines: Iterable[Line]) -> OpenTable:
    """Detect the dialect of a file and return its rows."""
    options = current_options(*FIELD_OPTIONS)
    first, lines = _peek(lines)
    declared = ""
    if suffix == ".csv":  # only Excel declares a delimiter, and only there
        declared = _declared_mark(first)
    before = 0
    if declared:
        before = 1
        next(lines)
        first = first[1:]
    header, *following = [line for _, line in first] or [""]
    # What the user says comes first, then what the file says of itself.
    delimiter = options.delimiter or declared or _delimiter_of(path, header, following, _OF_ENDING[suffix])
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
        _refuse_other_mark(path, names[0])
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
    texts = (line for _, line in lines)
    # Strict, because an unclosed quote would silently swallow the rows after it.
    reader = csv.reader(texts, strict=True, delimiter=form.delimiter, skipinitialspace=form.spaced)
    start = before + 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fix = CARRIAGE_RETURNS if "new-line character" in str(error) else _QUOTING
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


def _declared_mark(first: Sequence[Line]) -> str:
    """Return the delimiter that the first line declares, as Excel's ``sep=;`` does; ``""`` for none."""
    declaration = None
    if first:
        declaration = _DECLARED_MARK.fullmatch(first[0][1].strip("\r\n ").strip('"'))
    if declaration is None:
        return ""
    return declaration[1]


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


def _delimiter_of(path: str, header: str, following: Sequence[str], marks: Sequence[str]) -> str:
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
    marks = " and by ".join(_MARKS[mark] for mark in (usual, *rivals))
    choices = ", or ".join(f"`delimiter` {_named_mark(mark)}" for mark in (usual, *rivals))
    raise DataError(
        f"{path}: the first line and the row after it have as many fields as each other by {marks}. Say what is "
        f"between the fields: {choices}."
    )


def _uncertain_mark_error(path: str, header: str, following: Sequence[str], mark: str, usual: str) -> DataError:
    return DataError(
        f"{path}: {_MARKS[mark]} stand in the first line, and no {_MARKS[usual]}; by them, the first line "
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


def _column_names(path: str, top: Record, header: str | bool | None) -> list[str] | None:
    """Return the column names in the first row, ``None`` if it is data."""
    if header == "no" or (header is None and is_headerless(top[1])):
        return None
    names = _without_empty_end(top[1])
    refuse_repeated(f"{path}, row {top[0]}", names)
    return names


def _refuse_other_mark(path: str, name: str) -> None:
    """Raise DataError if the only name of a header is several known names, between which an unusual mark stands."""
    words = re.split(r"([^\w\s-]|[\x01-\x1f])", name.strip())
    known = [word for word in words[::2] if normalize_name(word.strip("'\" ")) in KNOWN_NAMES]
    marks = set(words[1::2])
    if len(known) > 1 and len(marks - {'"', "'"}) == 1:
        (mark,) = marks - {'"', "'"}
        raise DataError(
            f"{path}: the first line, {excerpt(name)}, has the names of several columns, and {mark!r} stands "
            f"between them. Say that it is between the fields: `delimiter` {_shell(mark)}."
        )


def _shell(mark: str) -> str:
    """Return a delimiter as it is written in a shell."""
    return f"'{mark}'" if mark.isprintable() else f"$'\\x{ord(mark):02x}'"


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
    # Empty names at the end are not among those of the form; a single name may be a title above the others.
    if width > 1:
        unnamed += range(width, form.width)
    for position, (number, cells) in enumerate(records):
        if len(cells) > width and not any(cells[width:]):
            del cells[width:]  # trailing empty columns, as spreadsheets leave them
        if unnamed:
            _refuse_unnamed_texts(f"{path}, row {number}", cells, unnamed)
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
        if width > 1 and _repeats_names(cells, form.names):
            raise DataError(
                f"{path}, row {number}: the row repeats the names of the columns ({listed(form.names)}), as where "
                "files were put together. Delete the row, or give the files one by one."
            )
        yield number, dict(zip(form.names, cells, strict=True))


def _refuse_unnamed_texts(location: str, cells: Sequence[str], unnamed: Sequence[int]) -> None:
    """Raise DataError if a column without a name holds a text, as below a merged cell; the index of a frame is none."""
    for index in unnamed:
        cell = cells[index].strip() if index < len(cells) else ""
        # The first column may be an index, whose keys are short.
        is_key = index == 0 and len(cell.split()) <= MOST_KEY_WORDS
        if cell and not is_key and not is_number(cell) and not is_quantity(cell):
            raise DataError(
                f"{location}: a column of texts needs a name, and column {index + 1}, which holds {excerpt(cell, 40)} "
                "here, has none. Write one into the first line; where names stand in two lines, as below merged cells, "
                "write them in one."
            )


def _repeats_names(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the cells of a row are the names of the columns; a file in the middle may begin with its mark."""
    return cells[-1] == names[-1] and [cells[0].removeprefix(BYTE_ORDER_MARK), *cells[1:]] == list(names)


def _field_count_fix(form: Form, suffix: str, cells: Sequence[str], *, starts: bool) -> str:
    """Return the fix for a row with too many or too few fields; ``starts`` if it is the first below the header."""
    too_many = len(cells) > len(form.names)
    if starts and any(cells) and all(_RULE.fullmatch(cell) for cell in cells if cell):
        return (
            "The line seems to be a rule below the header, as psql and Markdown draw it. Write CSV instead; of psql: "
            "psql --csv."
        )
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
        name = _MARKS.get(form.delimiter, repr(form.delimiter))
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
