"""Lines out of text: UTF-8, of bounded length, each ended by a line feed; what is something else is said to be that."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BufferedIOBase
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from samesense.data.formats.encodings import CHUNK, COMMON, ICONV, encoding_of, in_utf8, wide_encoding
from samesense.data.formats.endings import PACKERS, broken, opened, split_suffix
from samesense.data.formats.options import current_options
from samesense.errors import DataError
from samesense.urls import is_url, open_file

Line = tuple[int, str]
"""Line number from 1, and the line with its line end."""

LONGEST_ROW = 16 * 2**20
"""Bytes of the longest line: what is longer is no row of texts, and a small gzip file can hold gigabytes of it."""

CARRIAGE_RETURNS = (
    "Only a line feed ends a line; if carriage returns do, convert the file: tr '\\r' '\\n'; strays can go: tr -d '\\r'"
)
"""What to do about carriage returns in the midst of lines."""

_SHORTEN = "Put each text on a line of its own."
_SAMPLE = 4096
_TO_TWO_BYTES = "\x1b$"
WORKBOOKS = (".xlsx", ".xlsm", ".ods")
"""Ends of the names of workbooks."""

_OFFICE = 'save the sheet as "CSV UTF-8"'
_ARCHIVE = b"PK\x03\x04"
_OTHER_FORMATS = {
    b"\x1f\x8b": ("compressed by gzip", "end its name in .gz"),
    _ARCHIVE: ("a ZIP archive", "unpack it; the name of an archive of one text file may end in .zip"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"ARROW1": ("an Arrow file", "write it as Parquet"),
    b"\xff\xff\xff\xff": ("an Arrow stream, as in a folder of datasets", "name that folder"),
    b"\x80\x04\x95": ("a pickle", "write it as Parquet"),
    b"\x80\x05\x95": ("a pickle", "write it as Parquet"),
    b"\xd0\xcf\x11\xe0": ("a file of an old Office, such as .xls", _OFFICE),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it: zstd -d"),
    b"\xfd7zXZ": ("compressed by xz", "end its name in .xz"),
    b"BZh": ("compressed by bzip2", "end its name in .bz2"),
    b"%PDF": ("a PDF", "take the text out of it first"),
    b"SQLite format 3": ("an SQLite database", "write the table as CSV"),
}
"""First bytes of files that are no text: what they are, and what to do."""


def read_lines(path: str | Path, *, bounded: bool = True, carriage_returns: bool = False) -> Iterator[Line]:
    """Yield the lines of a file, also of one that is compressed by its name; see :func:`numbered_lines`.

    Bytes are decoded by the option ``encoding``, see :func:`~samesense.data.formats.options.table_options`.
    """
    number, packing = 0, split_suffix(str(path))[1]
    try:
        with opened(path) as handle:
            stream = _recoded(handle, str(path))
            for number, line in numbered_lines(stream, str(path), bounded=bounded, carriage_returns=carriage_returns):
                yield number, line
    except broken(packing) as error:
        kind = f"{PACKERS[packing].name} file that can be read to its end" if packing else "readable file"
        raise DataError(
            f"{path}: this must be a {kind}; after {number} lines: {error}. "
            + (
                f"Download it again, or take {packing} off the name if it is not compressed."
                if packing
                else "Check access."
            )
        ) from error


def numbered_lines(
    stream: IO[bytes] | BufferedIOBase, source: str, *, bounded: bool = True, carriage_returns: bool = False
) -> Iterator[Line]:
    """Yield line numbers from 1 and lines, the byte order mark taken off; only a line feed ends a line.

    Args:
        stream: bytes.
        source: what messages call it.
        bounded: refuse a line of more than :data:`LONGEST_ROW` bytes, before it is held.
        carriage_returns: take a carriage return in the midst of a line, which in lines of texts was meant to end one.

    Raises:
        DataError: for what is refused, bytes that are not UTF-8, and a NUL.
    """
    start, beyond_ascii = b"", False
    longest = LONGEST_ROW + 1 if bounded else -1
    for number, raw in enumerate(iter(partial(stream.readline, longest), b""), 1):
        start = start or raw[:_SAMPLE]
        place = f"{source}, row {number}"
        if bounded and len(raw) > LONGEST_ROW:
            raise DataError(f"{place}: a row has at most {LONGEST_ROW // 2**20} MB, and this one goes on. {_SHORTEN}")
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            why = f"byte 0x{raw[error.start]:02x} at position {error.start} of the line is not"
            other = _other_format(start, source) or (_mixed(place, why) if beyond_ascii else None)
            encoding = wide_encoding(start) or encoding_of(raw + stream.read(CHUNK))
            raise other or _not_utf8(encoding, source, place, why) from error
        if "\0" in line:
            raise _other_format(start, source) or _with_nul(raw + stream.read(_SAMPLE), source, place)
        if _TO_TWO_BYTES in line:  # all of it is ASCII, and none of it is the text
            raise _not_utf8("iso2022_jp", source, place, "an escape for characters of two bytes is not")
        beyond_ascii = beyond_ascii or not line.isascii()
        if not carriage_returns and "\r" in line and "\r" in line.rstrip("\r\n"):
            raise DataError(f"{place}: a carriage return stands in the midst of the line. {CARRIAGE_RETURNS}")
        yield number, line


def _recoded(stream: IO[bytes] | BufferedIOBase, source: str) -> IO[bytes] | BufferedIOBase:
    """Return a stream in UTF-8, of a file in the encoding of the options."""
    encoding = current_options("encoding").encoding
    return stream if encoding is None else in_utf8(stream, encoding, source)


def without_blank_end(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines but for blank ones at the end, which editors leave; a blank one before a text is a line feed."""
    done = 0
    for number, line in lines:
        if line.strip():
            yield from ((blank, "\n") for blank in range(done + 1, number))
            yield number, line
            done = number


def _other_format(start: bytes, source: str) -> DataError | None:
    if start.startswith(_ARCHIVE) and _is_workbook(source, start):
        return workbook_error(source)
    for magic, (what, fix) in _OTHER_FORMATS.items():
        if start.startswith(magic):
            return DataError(f"{source}: this is no text, but {what}. To read it, {fix}.")
    return None


def workbook_error(source: str) -> DataError:
    """Build the error for a workbook of Excel, or of a program like it."""
    return DataError(
        f"{source}: this is no text, but a workbook, as Excel has them. To read it, {_OFFICE}; or in Python: "
        f'samesense.read(pandas.read_excel("{source}"))'
    )


def _is_workbook(source: str, start: bytes) -> bool:
    """Return whether a ZIP archive is a workbook, by its name, or by what is in it."""
    if source.lower().endswith(WORKBOOKS) or b"opendocument.spreadsheet" in start:
        return True
    with suppress(OSError, BadZipFile), open_file(source) as stream:  # it may be standard input
        return "xl/workbook.xml" in ZipFile(stream).namelist()
    return False


def _not_utf8(encoding: str, source: str, place: str, why: str) -> DataError:
    """Build the error for text that is not UTF-8; ``encoding`` is what it is for certain, or ``""``."""
    excel = ' (in Excel, save as "CSV UTF-8")' if Path(source).suffix.lower() == ".csv" else ""
    if not encoding:
        return DataError(
            f"{place}: text must be UTF-8; {why}. The bytes do not prove in which encoding it is: name the one that it "
            f"was written in by `encoding`, such as {COMMON}, or re-save as UTF-8{excel}."
        )
    name = Path(source)
    files = ""
    if name.suffix and not split_suffix(source)[1] and not is_url(source):
        files = f" {quote(source)} > {quote(str(name.with_suffix(f'.utf8{name.suffix}')))}"
    return DataError(
        f"{place}: text must be UTF-8; {why}. It is {ICONV[encoding]}: give `encoding` {encoding}, or re-save as UTF-8"
        f"{excel}, for example: iconv -f {ICONV[encoding]} -t UTF-8{files}"
    )


def _mixed(place: str, why: str) -> DataError:
    return DataError(
        f"{place}: text must be UTF-8; {why}, and rows before it are. The row is damaged, or comes from a file in "
        "another encoding: correct it."
    )


def _with_nul(sample: bytes, source: str, place: str) -> DataError:
    encoding = wide_encoding(sample)
    if encoding:
        return _not_utf8(encoding, source, place, "it holds NUL characters")
    return DataError(f"{place}: a text holds no NUL character, and this line does. Take it out: tr -d '\\000'")


def standard_input() -> Iterator[Line]:
    """Yield the lines of standard input; DataError if it is closed."""
    if sys.stdin is None:
        raise DataError("Standard input is read here, and it is closed. Give a file, or let it be open: < FILE")
    return numbered_lines(_recoded(sys.stdin.buffer, "standard input"), "standard input")


def without_breaks(text: str) -> str:
    """Return a text with spaces for tabs and ends of lines, which would part a row of TSV or a line of text."""
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)


def json_line(value: object) -> str:
    """Return a value as one line of JSON; a number that is not finite, which JSON has not, is null."""
    encode = partial(json.dumps, ensure_ascii=False, default=str, allow_nan=False)
    try:
        return encode(value)
    except ValueError:
        return encode(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
