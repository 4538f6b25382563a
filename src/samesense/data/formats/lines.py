"""Reads lines of UTF-8 text with bounded length, and explains what a file is if it is not such text."""

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
from samesense.data.formats.endings import PACKERS, open_decompressed, read_errors, split_suffix
from samesense.data.formats.options import current_options
from samesense.errors import DataError
from samesense.urls import is_url, open_file

Line = tuple[int, str]
"""Line number from 1, and the line with its line end."""

LONGEST_ROW = 16 * 2**20
"""Most bytes of a line; a longer one is not a row of texts, and a small gzip file can expand to gigabytes of it."""

CARRIAGE_RETURNS = (
    "Only a line feed ends a line; if carriage returns do, convert the file: tr '\\r' '\\n'; strays can go: tr -d '\\r'"
)
"""Advice for carriage returns within lines."""

_SHORTEN = "Put each text on a line of its own."
_SAMPLE = 4096
_TO_TWO_BYTES = "\x1b$"
WORKBOOKS = (".xlsx", ".xlsm", ".ods")
"""File endings of spreadsheets."""

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
"""Magic bytes of files that are not text, with their format and the advice for it."""


def read_lines(path: str | Path, *, bounded: bool = True, carriage_returns: bool = False) -> Iterator[Line]:
    """Yield the lines of a file, decompressed if its ending says so; see :func:`numbered_lines`.

    Bytes are decoded by the option ``encoding``, see :func:`~samesense.data.formats.options.table_options`.
    """
    number = 0
    packing = split_suffix(str(path))[1]
    try:
        with open_decompressed(path) as handle:
            stream = _recode(handle, str(path))
            for number, line in numbered_lines(stream, str(path), bounded=bounded, carriage_returns=carriage_returns):
                yield number, line
    except read_errors(packing) as error:
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
    """Yield line numbers from 1 and lines, without a byte order mark; only a line feed ends a line.

    Args:
        stream: bytes.
        source: name of the source in messages.
        bounded: refuse a line of more than :data:`LONGEST_ROW` bytes, before it is read into memory.
        carriage_returns: accept a carriage return within a line, which in a text file is usually meant to end it.

    Raises:
        DataError: for a refused line, bytes that are not UTF-8, and a NUL.
    """
    start = b""
    beyond_ascii = False
    longest = LONGEST_ROW + 1 if bounded else -1
    for number, raw in enumerate(iter(partial(stream.readline, longest), b""), 1):
        # The first bytes identify other file formats, no matter which line fails later.
        start = start or raw[:_SAMPLE]
        location = f"{source}, row {number}"
        if bounded and len(raw) > LONGEST_ROW:
            raise DataError(
                f"{location}: a row has at most {LONGEST_ROW // 2**20} MB, and this one goes on. {_SHORTEN}"
            )
        try:
            # Only the first line may begin with a byte order mark.
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            reason = f"byte 0x{raw[error.start]:02x} at position {error.start} of the line is not"
            # If an earlier line with non-ASCII characters was valid UTF-8, only this row is damaged.
            known_error = _format_error(start, source) or (
                _mixed_encoding_error(location, reason) if beyond_ascii else None
            )
            encoding = wide_encoding(start) or encoding_of(raw + stream.read(CHUNK))
            raise known_error or _encoding_error(encoding, source, location, reason) from error
        if "\0" in line:
            raise _format_error(start, source) or _nul_error(raw + stream.read(_SAMPLE), source, location)
        if _TO_TWO_BYTES in line:  # ISO-2022-JP consists of ASCII bytes, so it decodes without an error
            raise _encoding_error("iso2022_jp", source, location, "an escape for characters of two bytes is not")
        beyond_ascii = beyond_ascii or not line.isascii()
        if not carriage_returns and "\r" in line and "\r" in line.rstrip("\r\n"):
            raise DataError(f"{location}: there is a carriage return within the line. {CARRIAGE_RETURNS}")
        yield number, line


def _recode(stream: IO[bytes] | BufferedIOBase, source: str) -> IO[bytes] | BufferedIOBase:
    """Return the stream recoded to UTF-8 from the encoding in the options, if there is one."""
    encoding = current_options("encoding").encoding
    return stream if encoding is None else in_utf8(stream, encoding, source)


def without_blank_end(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines without the blank ones at the end, which editors leave; other blank lines become a line feed."""
    done = 0
    for number, line in lines:
        if line.strip():
            yield from ((blank, "\n") for blank in range(done + 1, number))
            yield number, line
            done = number


def _format_error(start: bytes, source: str) -> DataError | None:
    if start.startswith(_ARCHIVE) and _is_workbook(source, start):
        return workbook_error(source)
    for magic, (description, fix) in _OTHER_FORMATS.items():
        if start.startswith(magic):
            return DataError(f"{source}: this is no text, but {description}. To read it, {fix}.")
    return None


def workbook_error(source: str) -> DataError:
    """Build the error for a workbook of Excel, or of a program like it."""
    return DataError(
        f"{source}: this is no text, but a workbook, as Excel has them. To read it, {_OFFICE}; or in Python: "
        f'samesense.read(pandas.read_excel("{source}"))'
    )


def _is_workbook(source: str, start: bytes) -> bool:
    """Return whether a ZIP archive is a workbook, by its name or its members."""
    if source.lower().endswith(WORKBOOKS) or b"opendocument.spreadsheet" in start:
        return True
    with suppress(OSError, BadZipFile), open_file(source) as stream:  # it may be standard input
        return "xl/workbook.xml" in ZipFile(stream).namelist()
    return False


def _encoding_error(encoding: str, source: str, location: str, reason: str) -> DataError:
    """Build the error for text that is not UTF-8; ``encoding`` is the detected encoding, ``""`` if it is uncertain."""
    excel = ' (in Excel, save as "CSV UTF-8")' if Path(source).suffix.lower() == ".csv" else ""
    if not encoding:
        return DataError(
            f"{location}: text must be UTF-8; {reason}. The bytes do not prove in which encoding it is: name the one "
            f"that it was written in by `encoding`, such as {COMMON}, or re-save as UTF-8{excel}."
        )
    name = Path(source)
    files = ""
    # The example command names the files only if iconv can read them directly.
    if name.suffix and not split_suffix(source)[1] and not is_url(source):
        files = f" {quote(source)} > {quote(str(name.with_suffix(f'.utf8{name.suffix}')))}"
    return DataError(
        f"{location}: text must be UTF-8; {reason}. It is {ICONV[encoding]}: give `encoding` {encoding}, or re-save as "
        f"UTF-8{excel}, for example: iconv -f {ICONV[encoding]} -t UTF-8{files}"
    )


def _mixed_encoding_error(location: str, reason: str) -> DataError:
    return DataError(
        f"{location}: text must be UTF-8; {reason}, and rows before it are. The row is damaged, or comes from a file "
        "in another encoding: correct it."
    )


def _nul_error(sample: bytes, source: str, location: str) -> DataError:
    encoding = wide_encoding(sample)
    if encoding:
        return _encoding_error(encoding, source, location, "it holds NUL characters")
    return DataError(f"{location}: a text holds no NUL character, and this line does. Take it out: tr -d '\\000'")


def standard_input() -> Iterator[Line]:
    """Yield the lines of standard input; DataError if it is closed."""
    # Python sets it to None if the process was started without standard input.
    if sys.stdin is None:
        raise DataError("Standard input is read here, and it is closed. Give a file, or let it be open: < FILE")
    return numbered_lines(_recode(sys.stdin.buffer, "standard input"), "standard input")


def without_breaks(text: str) -> str:
    """Return a text with tabs and line breaks replaced by spaces, so that it fits a TSV field or a line."""
    # All characters at which str.splitlines() splits, and tabs.
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)


def json_line(value: object) -> str:
    """Return a value as one line of JSON; NaN and infinities, which JSON lacks, become null."""
    encode = partial(json.dumps, ensure_ascii=False, default=str, allow_nan=False)
    try:
        return encode(value)
    except ValueError:
        return encode(_replace_non_finite(value))


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value
