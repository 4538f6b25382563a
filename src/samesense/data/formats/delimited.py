"""Rows of TSV and CSV files, with or without a header line."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from samesense.data.formats.columns import KNOWN_NAMES, plain
from samesense.data.formats.label_values import is_number
from samesense.data.formats.lines import CARRIAGE_RETURNS, LONGEST_ROW, Line
from samesense.data.formats.quoting import is_quoted
from samesense.errors import DataError

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_QUOTING = (
    "A text with a comma, a quote or a line break stands in double quotes, which are closed, and a quote inside it is "
    "doubled."
)

_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_OF_ENDING = {".tsv": ("\t", ",", ";"), ".csv": (",", ";", "\t", "|")}
"""Marks that may stand between the fields, the usual one first."""

_SAID_MARK = re.compile(r"sep=([;,|\t])")

Record = tuple[int, list[str]]


def tsv_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read tab-separated rows; a quote is a character like any other, unless all of the file is quoted as CSV is."""
    first, lines = _peeked(lines)
    mark = _mark_of(first, _OF_ENDING[".tsv"])
    if mark != "\t" or is_quoted(path):
        return _with_header(path, _csv_records(path, lines, mark, first), _hints(mark))
    records = ((number, line.removesuffix("\n").removesuffix("\r").split("\t")) for number, line in lines)
    hints = (
        "Write a line break inside a text as a space; where texts stand in quotes, name the file .csv.",
        "Write a tab inside a text as a space; name a comma-separated file .csv.",
    )
    return _with_header(path, (record for record in records if any(record[1])), hints)


def csv_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read rows with standard quoting between commas, or the semicolons, tabs or bars that their first lines have.

    A row is numbered by the line it starts on.
    """
    first, lines = _peeked(lines)
    said = _said_mark(first)
    if said:
        next(lines)
        return _with_header(path, _csv_records(path, lines, said, first[1:], before=1), _hints(said))
    mark = _mark_of(first, _OF_ENDING[".csv"])
    return _with_header(path, _csv_records(path, lines, mark, first), _hints(mark))


def first_line_of(suffix: str, lines: Iterable[Line], header: str) -> str:
    """Return what is to stand before a part of a table's rows, so that they are read as in the whole file.

    Args:
        suffix: ``.tsv`` or ``.csv``.
        lines: those of the file.
        header: its line of names, with what stands before it; ``""`` if it has none.
    """
    first, _ = _peeked(lines)
    said = _said_mark(first)
    mark = said or _mark_of(first, _OF_ENDING[suffix])
    header = header or f"{mark.join(HEADERLESS)}\n"
    return header if said or suffix == ".tsv" else f"sep={mark}\n{header}"


def _said_mark(first: Sequence[Line]) -> str:
    """Return the mark that a first line of its own names, as Excel has it; ``""`` for none."""
    said = _SAID_MARK.fullmatch(first[0][1].strip().strip('"')) if first else None
    return "" if said is None else said[1]


def _hints(mark: str) -> tuple[str, str]:
    name = _MARKS[mark]
    return (
        f"Between fields stand {name}, also around an empty one; a text with a line break stands in double quotes.",
        f"A text with {name} in it must stand in double quotes.",
    )


def _peeked(lines: Iterable[Line]) -> tuple[list[Line], Iterator[Line]]:
    """Return the first two lines that are not empty, and all lines."""
    rest, read = iter(lines), list[Line]()
    for line in rest:
        read.append(line)
        if sum(bool(text.strip()) for _, text in read) == 2:
            break
    return [line for line in read if line[1].strip()], chain(read, rest)


def _mark_of(first: Sequence[Line], marks: Sequence[str]) -> str:
    """Return the mark between the fields: the first of ``marks``, unless the header has another and not this one.

    The second line has to have as many of the other, or the header must name columns that are known.
    """
    if not first or marks[0] in first[0][1]:
        return marks[0]
    header = first[0][1].strip()
    for mark in marks[1:]:
        parts = [plain(part.strip('" ')) for part in header.split(mark)]
        alike = mark != "," and len(first) > 1 and _fields(first[1][1], mark) == len(parts)
        if len(parts) > 1 and (alike or KNOWN_NAMES.intersection(parts)):
            return mark
    return marks[0]


def _fields(line: str, mark: str) -> int:
    """Return how many fields a line has; a mark between quotes is one of the text."""
    try:
        return len(next(csv.reader([line], delimiter=mark), ()))
    except csv.Error:  # longer than a field may be
        return 0


def _csv_records(
    path: str | Path, lines: Iterable[Line], mark: str, first: Sequence[Line], before: int = 0
) -> Iterator[Record]:
    """Yield the rows that are not empty; ``first`` is the header, and ``before`` lines are not among ``lines``."""
    header = first[0][1] if first else ""
    spaced = 0 < header.count(mark) == header.count(f"{mark} ")  # else a space before a text is the text's own
    if csv.field_size_limit() < LONGEST_ROW:  # of the process; a quote that is never closed takes in what follows
        csv.field_size_limit(LONGEST_ROW)
    reader = csv.reader((line for _, line in lines), strict=True, delimiter=mark, skipinitialspace=spaced)
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


def _with_header(
    path: str | Path, records: Iterator[Record], hints: tuple[str, str]
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows by the names in the first; ``hints`` are for a row of too few fields, and for one of too many."""
    first = next(records, None)
    if first is None:
        return
    if is_headerless(first[1]):
        header, records = HEADERLESS, chain([first], records)
    else:
        header = _without_empty_end(first[1])
        refuse_repeated(f"{path}, row {first[0]}", header)
    for number, cells in records:
        if len(cells) > len(header) and not any(cells[len(header) :]):
            del cells[len(header) :]  # empty columns behind the last, as spreadsheets leave them
        if len(cells) != len(header):
            raise DataError(
                f"{path}, row {number}: every row must have the {len(header)} fields of the header "
                f"({', '.join(header)}); this one has {len(cells)}. {hints[len(cells) > len(header)]}"
            )
        yield number, dict(zip(header, cells, strict=True))


def _without_empty_end(header: list[str]) -> list[str]:
    filled = [at for at, name in enumerate(header) if name.strip()]
    return header[: filled[-1] + 1] if filled else header


def is_headerless(cells: list[str]) -> bool:
    """Tell whether a first line is already data: two texts and a number, none of them a known column name."""
    if len(cells) != 3 or any(plain(cell) in KNOWN_NAMES for cell in cells):
        return False
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
            f"{place}: column names must differ; {', '.join(map(repr, repeated))} stands more than once. "
            + ("The first line seems to be data: add a header line." if _hold_data(header) else "Rename the columns.")
        )


def _hold_data(header: list[str]) -> bool:
    """Return whether names of columns seem to be a row of data: a number is among them, or a sentence."""
    return any(is_number(name) or name.strip().endswith((".", "!", "。")) for name in header)
