"""Text files: opened, decompressed, decoded and split into numbered lines, by the options for reading."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from shlex import quote
from typing import IO

from samesense.data.rows.compression import PACKERS, open_decompressed, read_errors, split_suffix
from samesense.data.rows.encodings import (
    CHUNK,
    COMMON,
    ICONV,
    encoding_of,
    has_many_controls,
    in_utf8,
    is_binary,
    wide_encoding,
)
from samesense.data.rows.other_formats import SAMPLE, format_error, refuse_text_format
from samesense.data.rows.table_options import current_options
from samesense.errors import DataError
from samesense.failures import broken_link
from samesense.urls import is_url

STANDARD_INPUT = "-"
"""Name of standard input as a source."""

Line = tuple[int, str]
"""Line number from 1, and the line with its line end."""

LONGEST_ROW = 16 * 2**20
"""Most bytes of a line; a longer one is not a row of texts, and a small gzip file can expand to gigabytes of it."""

CARRIAGE_RETURNS = (
    "Only a line feed ends a line; if carriage returns do, convert the file: tr '\\r' '\\n'; strays can go: tr -d '\\r'"
)
"""Advice for carriage returns within lines."""

_SHORTEN = "Put each text on a line of its own."

_TO_TWO_BYTES = re.compile(r"\x1b\$[@B(]")
"""Escapes by which ISO-2022-JP changes to characters of two bytes."""


def read_lines(path: str | Path, *, bounded: bool = True, carriage_returns: bool = False) -> Iterator[Line]:
    """Yield the lines of a file, decompressed if its ending says so; see :func:`numbered_lines`.

    Bytes are decoded by the option ``encoding``, see :func:`~samesense.data.rows.table_options.table_options`.
    """
    number = 0
    packing = split_suffix(str(path)).packing
    try:
        with open_decompressed(path) as handle:
            stream = _recode(handle, str(path))
            for number, line in numbered_lines(stream, str(path), bounded=bounded, carriage_returns=carriage_returns):
                yield number, line
    except read_errors(packing) as error:
        if message := broken_link(path):
            raise DataError(message) from error
        kind = "readable file"
        fix = "Check access."
        if packing:
            kind = f"{PACKERS[packing].name} file that can be read to its end"
            fix = f"Download it again, or take {packing} off the name if it is not compressed."
        raise DataError(f"{path}: this must be a {kind}; after {number} lines: {error}. {fix}") from error


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
    encoding = "utf-8-sig"
    beyond_ascii = False
    # One byte more than is allowed shows that the line goes on.
    longest = LONGEST_ROW + 1 if bounded else -1
    # readline ends lines at line feeds alone; str.splitlines also at characters that texts contain.
    for number, raw in enumerate(iter(partial(stream.readline, longest), b""), 1):
        # The first bytes identify other file formats, no matter which line fails later.
        start = start or raw[:SAMPLE]
        location = f"{source}, row {number}"
        if bounded and len(raw) > LONGEST_ROW:  # the rest of the line was not read
            raise DataError(
                f"{location}: a row has at most {LONGEST_ROW // 2**20} MB, and this one goes on. {_SHORTEN}"
            )
        try:
            line = raw.decode(encoding)
        except UnicodeDecodeError as error:
            reason = f"byte 0x{raw[error.start]:02x} at position {error.start} of the line is not"
            # If an earlier line with non-ASCII characters was valid UTF-8, only this row is damaged.
            if beyond_ascii:
                raise format_error(start, source) or _mixed_encoding_error(location, reason) from error
            raise _not_utf8_error(start, raw, stream, source, location, reason) from error
        if "\0" in line:
            raise format_error(start, source) or _nul_error(raw + stream.read(SAMPLE), source, location)
        if _TO_TWO_BYTES.search(line):  # ISO-2022-JP consists of ASCII bytes, so it decodes without an error
            raise _encoding_error("iso2022_jp", source, location, "an escape for characters of two bytes is not")
        if number == 1:
            refuse_text_format(line, source)
        encoding = "utf-8"  # only the first line may begin with a byte order mark
        beyond_ascii = beyond_ascii or not line.isascii()
        if not carriage_returns and _has_inner_return(line):
            raise DataError(f"{location}: there is a carriage return within the line. {CARRIAGE_RETURNS}")
        yield number, line


def _not_utf8_error(
    start: bytes, raw: bytes, stream: IO[bytes] | BufferedIOBase, source: str, location: str, reason: str
) -> DataError:
    """Build the error for a line that is not UTF-8: the file is of another format, or in another encoding."""
    # More bytes are read, because one line rarely proves an encoding.
    sample = raw + stream.read(CHUNK)
    if is_binary(start) or is_binary(sample):
        return format_error(start, source) or _binary_error(location, reason)
    encoding = wide_encoding(start) or encoding_of(sample)
    return format_error(start, source) or _encoding_error(encoding, source, location, reason)


def _binary_error(location: str, reason: str) -> DataError:
    return DataError(
        f"{location}: text must be UTF-8; {reason}. The file holds NUL bytes and looks binary: name a file of text."
    )


def _has_inner_return(line: str) -> bool:
    # Most lines have none at all, which is checked first, as it needs no copy of the line.
    return "\r" in line and "\r" in line.rstrip("\r\n")


def _recode(stream: IO[bytes] | BufferedIOBase, source: str) -> IO[bytes] | BufferedIOBase:
    """Return the stream recoded to UTF-8 from the encoding in the options, if there is one."""
    encoding = current_options("encoding").encoding
    if encoding is None:
        return stream
    return in_utf8(stream, encoding, source)


def without_blank_end(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines without the blank ones at the end, which editors leave; other blank lines become a line feed."""
    done = 0
    for number, line in lines:
        if line.strip():
            yield from ((blank, "\n") for blank in range(done + 1, number))
            yield number, line
            done = number


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
    if name.suffix and not split_suffix(source).packing and not is_url(source):
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
    if has_many_controls(sample.decode(errors="replace").replace("\0", "")):
        return _binary_error(location, "it holds NUL characters")
    return DataError(f"{location}: a text holds no NUL character, and this line does. Take it out: tr -d '\\000'")


def standard_input_bytes() -> IO[bytes]:
    """Return standard input; DataError if it is closed."""
    # Python sets it to None if the process was started without standard input.
    if sys.stdin is None:
        raise DataError("Standard input is read here, and it is closed. Give a file, or let it be open: < FILE")
    return sys.stdin.buffer


def standard_input() -> Iterator[Line]:
    """Yield the lines of standard input; DataError if it is closed."""
    return numbered_lines(_recode(standard_input_bytes(), "standard input"), "standard input")
