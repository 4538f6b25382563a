"""Files that are no lines of text, recognised by their first bytes, each with what its user can do."""

from __future__ import annotations

from contextlib import suppress
from shlex import quote
from zipfile import BadZipFile, ZipFile

from samesense.errors import DataError
from samesense.urls import open_file

SAMPLE = 4096
"""First bytes of a file that identify its format."""

_SAVE_AS_CSV = 'save the sheet as "CSV UTF-8"'

_ZIP_MAGIC = b"PK\x03\x04"

WORKBOOKS = (".xlsx", ".xlsm", ".ods")
"""File endings of spreadsheets."""

_OTHER_FORMATS = {
    b"\x1f\x8b": ("compressed by gzip", "end its name in .gz"),
    _ZIP_MAGIC: ("a ZIP archive", "unpack it; the name of an archive of one text file may end in .zip"),
    b"PAR1": ("a Parquet file", "end its name in .parquet"),
    b"ARROW1": ("an Arrow file", "write it as Parquet"),
    b"\xff\xff\xff\xff": ("an Arrow stream, as in a folder of datasets", "name that folder"),
    b"\x80\x04\x95": ("a pickle", "write it as Parquet"),
    b"\x80\x05\x95": ("a pickle", "write it as Parquet"),
    b"\xd0\xcf\x11\xe0": ("a file of an old Office, such as .xls", _SAVE_AS_CSV),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "unpack it: zstd -d"),
    b"\xfd7zXZ": ("compressed by xz", "end its name in .xz"),
    b"BZh": ("compressed by bzip2", "end its name in .bz2"),
    b"%PDF": ("a PDF", "take the text out of it first"),
    b"SQLite format 3": ("an SQLite database", "write the table as CSV"),
}
"""Magic bytes of files that are not text, with their format and the advice for it."""

_TAR_MARK = slice(257, 262)
"""Where the first file of a tar archive is marked."""

_TEXT_FORMATS = {
    "version https://git-lfs.github.com/spec/": ("a pointer of Git LFS to the file", "fetch the file: git lfs pull"),
    "{\\rtf": ("a document in RTF", "save it as plain text"),
    "<!doctype html": ("a web page, perhaps of an error", "download the file again; a page itself ends in .html"),
    "<html": ("a web page, perhaps of an error", "download the file again; a page itself ends in .html"),
    "<?xml": ("XML", "write the texts one a line, or as JSON lines"),
}
"""Beginnings, in lower case, of files of text that hold no lines of texts, with their format and the advice for it."""


def format_error(start: bytes, source: str) -> DataError | None:
    """Return the error for a file that begins like one of another format; ``None`` for any other file."""
    if start.startswith(_ZIP_MAGIC) and _is_workbook(source, start):
        return workbook_error(source)
    if start[_TAR_MARK.start : _TAR_MARK.stop] == b"ustar":
        return DataError(
            f"{source}: this is no text, but a tar archive. To read it, unpack it: tar -xf {quote(source)}"
        )
    for magic, (description, fix) in _OTHER_FORMATS.items():
        if start.startswith(magic):
            return DataError(f"{source}: this is no text, but {description}. To read it, {fix}.")
    return None


def refuse_text_format(line: str, source: str) -> None:
    """Raise DataError if the first line of a file is that of a web page, or of another format that is no texts."""
    beginning = line[:SAMPLE].lstrip().casefold()
    for start, (description, fix) in _TEXT_FORMATS.items():
        if beginning.startswith(start):
            raise DataError(f"{source}: this is {description}, and holds no rows. To read it, {fix}.")


def workbook_error(source: str) -> DataError:
    """Build the error for a workbook of Excel, or of a program like it."""
    return DataError(
        f"{source}: this is no text, but a workbook, as Excel has them. To read it, {_SAVE_AS_CSV}; or in Python: "
        f'samesense.read(pandas.read_excel("{source}"))'
    )


def _is_workbook(source: str, start: bytes) -> bool:
    """Return whether a ZIP archive is a workbook, by its name or its members."""
    if source.lower().endswith(WORKBOOKS) or b"opendocument.spreadsheet" in start:
        return True
    with suppress(OSError, BadZipFile), open_file(source) as stream:  # it may be standard input
        return "xl/workbook.xml" in ZipFile(stream).namelist()
    return False
