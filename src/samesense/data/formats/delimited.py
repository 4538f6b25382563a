"""Rows of TSV and CSV files, with or without a header line."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from samesense.data.formats.columns import KNOWN_NAMES
from samesense.errors import DataError

HEADERLESS = ["text1", "text2", "label"]
"""Column names given to a file of two texts and a number without a header line."""

_FIELD_LIMIT = 2**31 - 1

Record = tuple[int, list[str]]


def tsv_rows(path: Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read tab-separated rows; a quote is a character like any other."""
    records = ((number, line.removesuffix("\n").removesuffix("\r").split("\t")) for number, line in lines)
    filled = (record for record in records if record[1] != [""])
    return _with_header(path, filled, "Write a tab inside a text as a space; name a comma-separated file .csv.")


def csv_rows(path: Path, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, object]]]:
    """Read comma-separated rows with standard quoting; a row is numbered by the line it starts on."""
    return _with_header(path, _csv_records(path, lines), "A text with a comma in it must stand in double quotes.")


def _csv_records(path: Path, lines: Iterable[Line]) -> Iterator[Record]:
    if csv.field_size_limit() < _FIELD_LIMIT:
        csv.field_size_limit(_FIELD_LIMIT)
    reader = csv.reader((line for _, line in lines), strict=True)
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{path}, row {start}: the row breaks the quoting rules of CSV ({error}). A text with a comma, a quote "
                "or a line break stands in double quotes, and a quote inside it is doubled."
            ) from error
        if cells:
            yield start, cells
        start = reader.line_num + 1


def _with_header(path: Path, records: Iterator[Record], hint: str) -> Iterator[tuple[int, dict[str, object]]]:
    first = next(records, None)
    if first is None:
        return
    if is_headerless(first[1]):
        header, records = HEADERLESS, chain([first], records)
    else:
        header = first[1]
        refuse_repeated(f"{path}, row {first[0]}", header)
    for number, cells in records:
        if len(cells) != len(header):
            raise DataError(
                f"{path}, row {number}: every row must have the {len(header)} fields of the header "
                f"({', '.join(header)}); this one has {len(cells)}. {hint}"
            )
        yield number, dict(zip(header, cells, strict=True))


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


Line = tuple[int, str]
"""Line number from 1, and the line with its line end."""


def read_lines(path: Path, zipped: bool) -> Iterator[Line]:
    """Yield line numbers from 1 and lines of a UTF-8 file, the byte order mark taken off; only a line feed ends a line.

    DataError if the bytes are not UTF-8, or not whole gzip.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as handle:
            for number, raw in enumerate(handle, 1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        likely = "UTF-16" if number == 1 and error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "LATIN1"
        raise DataError(
            f"{path}, row {number}: text must be UTF-8; byte 0x{error.object[error.start]:02x} at position "
            f"{error.start} of the line is not. Re-save as UTF-8, for example: iconv -f {likely} -t UTF-8"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        kind = "gzip file that can be read to its end" if zipped else "readable file"
        raise DataError(
            f"{path}: this must be a {kind}; after {number} lines: {error}. "
            + ("Download it again, or take .gz off the name if it is not compressed." if zipped else "Check access.")
        ) from error
