"""Numbered lines of a text file, plain or gzipped, with every failure named by its line."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

from samesense.errors import DataError

Line = tuple[int, str]
"""Line number from 1, and the line with its line end."""


def read_lines(path: Path, zipped: bool) -> Iterator[Line]:
    """Read a UTF-8 file line by line; only a line feed ends a line.

    Args:
        path: an existing file.
        zipped: whether it is gzipped.

    Yields:
        Line numbers from 1 and lines, the byte order mark taken off the first.

    Raises:
        DataError: if the bytes are not UTF-8, or not whole gzip.
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
