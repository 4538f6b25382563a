"""Rows of TSV and CSV files, with or without a header line."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from samesense.data.formats.columns import KNOWN_NAMES
from samesense.data.formats.lines import CARRIAGE_RETURNS, LONGEST_ROW, Line
from samesense.errors import DataError

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_QUOTING = (
    "A text with a comma, a quote or a line break stands in double quotes, which are closed, and a quote inside it is "
    "doubled."
)

_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}

Record = tuple[int, list[str]]


def tsv_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read tab-separated rows; a quote is a character like any other."""
    records = ((number, line.removesuffix("\n").removesuffix("\r").split("\t")) for number, line in lines)
    filled = (record for record in records if record[1] != [""])
    return _with_header(path, filled, "Write a tab inside a text as a space; name a comma-separated file .csv.")


def csv_rows(path: str | Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read comma-separated rows with standard quoting; a row is numbered by the line it starts on."""
    return _with_header(path, _csv_records(path, lines), "A text with a comma in it must stand in double quotes.")


def _csv_records(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    if csv.field_size_limit() < LONGEST_ROW:  # of the process; a quote that is never closed takes in what follows
        csv.field_size_limit(LONGEST_ROW)
    reader = csv.reader((line for _, line in lines), strict=True)
    start = 1
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
        if cells:
            yield start, cells
        start = reader.line_num + 1


def _with_header(path: str | Path, records: Iterator[Record], hint: str) -> Iterator[tuple[int, dict[str, object]]]:
    first = next(records, None)
    if first is None:
        return
    if is_headerless(first[1]):
        header, records = HEADERLESS, chain([first], records)
    else:
        header = first[1]
        refuse_repeated(f"{path}, row {first[0]}", header)
        second = next(records, None)
        _refuse_other_mark(path, header, second)
        records = chain([] if second is None else [second], records)
    for number, cells in records:
        if len(cells) != len(header):
            raise DataError(
                f"{path}, row {number}: every row must have the {len(header)} fields of the header "
                f"({', '.join(header)}); this one has {len(cells)}. {hint}"
            )
        yield number, dict(zip(header, cells, strict=True))


def _refuse_other_mark(path: str | Path, header: list[str], second: Record | None) -> None:
    """Raise where the only column seems to be several with another mark between, such as the semicolons of Excel."""
    if len(header) > 1:
        return
    for mark, name in _MARKS.items():
        parts = [part.strip().strip('"').casefold() for part in header[0].split(mark)]
        alike = mark != "," and second is not None and second[1][0].count(mark) == len(parts) - 1
        if len(parts) > 1 and (alike or KNOWN_NAMES.intersection(parts)):
            raise DataError(
                f"{path}: there is one column, {header[0]!r}, which {name} seem to part into {len(parts)}. Save the "
                "file with commas as .csv, or with tabs as .tsv."
            )


def is_headerless(cells: list[str]) -> bool:
    """Tell whether a first line is already data: two texts and a number, none of them a known column name."""
    if len(cells) != 3 or any(cell.strip().casefold() in KNOWN_NAMES for cell in cells):
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
            "Rename the columns."
        )
