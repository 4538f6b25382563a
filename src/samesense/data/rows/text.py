"""Text files: opened, decompressed, decoded and split into numbered lines, by the options for reading."""

from __future__ import annotations

import codecs
import gzip
import logging
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import partial, wraps
from io import BufferedIOBase
from pathlib import Path
from shlex import quote
from typing import IO, Any, Literal, NamedTuple, ParamSpec, TypeVar, get_args
from zipfile import BadZipFile, ZipFile, ZipInfo

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
from samesense.errors import ConfigError, DataError
from samesense.failures import broken_link
from samesense.urls import is_url, open_file

logger = logging.getLogger(__name__)

Quoting = Literal["csv", "none"]
"""``csv``: fields may be in double quotes, with quotes inside doubled. ``none``: a quote is an ordinary character."""

Header = Literal["yes", "no"]
"""Whether the first line of a table has the names of its columns."""

DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " ", "\\t": "\t"}
"""Names of delimiters that are hard to write in a shell."""

STANDARD_INPUT = "-"
"""Name of standard input as a source."""

SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
"""Supported file endings; all except Parquet may be followed by one of :data:`PACKED`."""

PACKED = (".gz", ".bz2", ".xz", ".zip")
"""Endings of compressed files that can be read."""

LIKE_THEM = f"or one of these with {', '.join(PACKED)}"
"""The part of a message that follows :data:`SUFFIXES` and covers compressed files."""

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
"""First bytes of a file by which its format is told."""

_TO_TWO_BYTES = "\x1b$"
"""Escape by which ISO-2022-JP changes to characters of two bytes."""

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

_TEXT_FORMATS = {
    "version https://git-lfs.github.com/spec/": ("a pointer of Git LFS to the file", "fetch the file: git lfs pull"),
    "{\\rtf": ("a document in RTF", "save it as plain text"),
    "<!doctype html": ("a web page, perhaps of an error", "download the file again; a page itself ends in .html"),
    "<html": ("a web page, perhaps of an error", "download the file again; a page itself ends in .html"),
    "<?xml": ("XML", "write the texts one a line, or as JSON lines"),
}
"""Beginnings, in lower case, of files of text that hold no lines of texts, with their format and the advice for it."""


@dataclass(frozen=True)
class TableOptions:
    """Options for reading text files and tables; ``None`` means detection by the rules of docs/data.md.

    Attributes:
        quoting: whether fields of ``.tsv`` and ``.csv`` files may be in double quotes; see :data:`Quoting`.
        delimiter: the character between their fields, or its name in :data:`DELIMITERS`.
        header: whether their first line has the column names; without them a single column is called ``text``, and
            several are called ``column1``, ``column2`` and so on.
        encoding: encoding of text files and tables except Parquet by its Python name, such as ``"cp1252"``.

    Raises:
        ConfigError: if an option has another value.
    """

    quoting: Quoting | None = None
    delimiter: str | None = None
    header: Header | bool | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.quoting is not None and self.quoting not in get_args(Quoting):
            raise ConfigError(f"`quoting` is one of {', '.join(get_args(Quoting))}; received {self.quoting!r}.")
        if self.header not in (None, True, False, *get_args(Header)):
            raise ConfigError(f"`header` is one of {', '.join(get_args(Header))}; received {self.header!r}.")
        if isinstance(self.header, bool):
            object.__setattr__(self, "header", "yes" if self.header else "no")
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _delimiter(self.delimiter))
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _encoding(self.encoding))  # None for UTF-8


_NO_TEXT_FILES = ("unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined", "utf-7")
"""Python encodings that are never used for text files."""


def _delimiter(name: str) -> str:
    character = DELIMITERS.get(name, name)
    if not isinstance(character, str) or len(character) != 1 or character in '"\r\n\0':
        raise ConfigError(
            f"`delimiter` is one character, or one of {', '.join(DELIMITERS)}; received {name!r}. Example: "
            "`delimiter` semicolon"
        )
    return character


def _encoding(name: str) -> str | None:
    """Return the Python name of a text encoding, ``None`` for UTF-8; ConfigError if it is unknown."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        codec = None
    # base64 and the like are not text encodings, and unicode-escape would change the characters.
    if codec is None or not codec._is_text_encoding or codec.name in _NO_TEXT_FILES:
        raise ConfigError(
            f"`encoding` is the name of an encoding of text, such as cp1252, gb18030 or shift_jis; received {name!r}."
        )
    if codec.name in ("utf-8", "utf-8-sig"):
        return None
    return codec.name


_BY_THE_RULES = TableOptions()
# context variables, so that concurrent requests of a server do not share options
_OPTIONS: ContextVar[TableOptions] = ContextVar("table_options", default=_BY_THE_RULES)
_APPLIED: ContextVar[frozenset[str]] = ContextVar("applied_options", default=frozenset())

FIELD_OPTIONS = ("quoting", "delimiter", "header")
"""Options that apply to delimited tables only; ``encoding`` applies to all text files."""


def current_options(*applied: str) -> TableOptions:
    """Return the options for reading files of the user; see :func:`table_options`.

    ``applied`` are the names of the options that apply to the current file; an option that never applies is warned of.
    """
    _APPLIED.set(_APPLIED.get().union(applied))
    return _OPTIONS.get()


@contextmanager
def table_options(options: TableOptions | None = None) -> Iterator[None]:
    """Read all files in the ``with`` block by these options; by default by detection only.

    Files of the library itself, such as held-out pairs in a run folder, are read under ``table_options()``. An option
    that applied to no file is warned of.
    """
    options = options or _BY_THE_RULES
    token = _OPTIONS.set(options)
    applied = _APPLIED.set(frozenset())
    try:
        yield
        # Not after an error, which says more.
        _warn_of_unused(options, _APPLIED.get())
    finally:
        _OPTIONS.reset(token)
        _APPLIED.reset(applied)


def _warn_of_unused(options: TableOptions, applied: frozenset[str]) -> None:
    unused = [name for name in OPTIONS if getattr(options, name) is not None and name not in applied]
    if unused:
        names = " and ".join(f"`{name}`" for name in unused)
        kind = "a table of text, such as .csv and .tsv"
        if unused == ["encoding"]:
            kind = "of text"
        logger.warning(f"{names} had no effect: no file that was read is {kind}.")


OPTIONS = tuple(field.name for field in fields(TableOptions))
"""Names of the options."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def reads_tables(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function with the arguments :data:`OPTIONS` so that it reads all files by them, if they are given."""

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
        # Without options, those of an enclosing block stay in force.
        if not options:
            return function(*args, **kwargs)
        with table_options(TableOptions(**options)):  # type: ignore[arg-type]  # TableOptions checks the values
            return function(*args, **kwargs)

    return run


class Packer(NamedTuple):
    """A compression format, and the command that unpacks it."""

    name: str
    unpack: str


PACKERS = {
    ".gz": Packer("gzip", "gunzip"),
    ".bz2": Packer("bzip2", "bunzip2"),
    ".xz": Packer("xz", "unxz"),
    ".zip": Packer("ZIP", "unzip"),
    ".zst": Packer("zstd", "zstd -d"),
    ".lz4": Packer("lz4", "unlz4"),
    ".7z": Packer("7-Zip", "7z x"),
    ".rar": Packer("RAR", "unrar x"),
}
"""Compression formats by file ending."""


class FileEnding(NamedTuple):
    """The end of a file name.

    Attributes:
        suffix: the format, one of :data:`SUFFIXES`; empty for any other.
        packing: the compression, one of :data:`PACKERS`; empty without one.
    """

    suffix: str
    packing: str


def split_suffix(name: str) -> FileEnding:
    """Return the known suffix of a file name, and the compression after it."""
    lowered = name.lower()
    packing = next((ending for ending in PACKERS if lowered.endswith(ending)), "")
    stem = lowered.removesuffix(packing)
    suffix = next((suffix for suffix in SUFFIXES if stem.endswith(suffix)), "")
    return FileEnding(suffix, packing)


def is_text_file(name: str) -> bool:
    """Return whether a file name ends in ``.txt``, compressed or not."""
    return name.lower().removesuffix(split_suffix(name).packing).endswith(".txt")


@contextmanager
def open_decompressed(name: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed according to its name; DataError for an unsupported compression."""
    packing = split_suffix(str(name)).packing
    # Known by name only, so that the message can say how to unpack it.
    if packing and packing not in PACKED:
        raise DataError(
            f"{name}: a data file may be compressed by gzip, bzip2 or xz, or be a ZIP archive of one file; by its "
            f"name, this is one of {PACKERS[packing].name}. Unpack it: {PACKERS[packing].unpack} {name}"
        )
    with open_file(name) as file, _decompress(file, packing, name) as stream:
        yield stream


def read_errors(packing: str) -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a damaged file of this compression may raise."""
    # lzma and bz2 are loaded for their files alone: not every Python was built with them.
    if packing == ".xz":
        from lzma import LZMAError

        return OSError, EOFError, LZMAError
    if packing == ".zip":
        return OSError, EOFError, zlib.error, BadZipFile, NotImplementedError
    return OSError, EOFError, zlib.error


def _decompress(file: IO[bytes], packing: str, name: str | Path) -> Any:
    if packing == ".gz":
        return gzip.open(file)
    if packing == ".bz2":
        import bz2

        return bz2.open(file)
    if packing == ".xz":
        import lzma

        return lzma.open(file)
    if packing == ".zip":
        return _only_member(file, name)
    return file


def _only_member(file: IO[bytes], name: str | Path) -> IO[bytes]:
    """Open the only file of a ZIP archive; DataError if there are several or none, or it has a password."""
    archive = ZipFile(file)
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")  # metadata that macOS adds
    ]
    if len(members) != 1:
        raise DataError(
            f"{name}: a ZIP archive that is read holds exactly one file; this one holds "
            f"{_listed_members(members)}. Unpack it, and name the file that is meant: unzip {name}"
        )
    member_name = members[0].filename
    suffix = split_suffix(member_name).suffix
    if suffix and not split_suffix(str(name)).suffix:
        raise DataError(
            f"{name}: the format is told from the end of the file name, and the file inside is {member_name}. Rename "
            f"the archive to end in {suffix}.zip."
        )
    # Bit 0 of the flags means that the member is encrypted.
    if members[0].flag_bits & 1:
        raise DataError(f"{name}: the file inside, {member_name}, has a password. Unpack it: unzip {name}")
    return archive.open(members[0])


def _listed_members(members: Sequence[ZipInfo]) -> str:
    """Return the number of files of an archive, with the names of the first."""
    if not members:
        return "0"
    names = ", ".join(member.filename for member in members[:5])
    if len(members) > 5:
        names += ", and others"
    return f"{len(members)} ({names})"


def read_lines(path: str | Path, *, bounded: bool = True, carriage_returns: bool = False) -> Iterator[Line]:
    """Yield the lines of a file, decompressed if its ending says so; see :func:`numbered_lines`.

    Bytes are decoded by the option ``encoding``, see :func:`~samesense.data.rows.text.table_options`.
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
        start = start or raw[:_SAMPLE]
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
                raise _format_error(start, source) or _mixed_encoding_error(location, reason) from error
            raise _not_utf8_error(start, raw, stream, source, location, reason) from error
        if "\0" in line:
            raise _format_error(start, source) or _nul_error(raw + stream.read(_SAMPLE), source, location)
        if _TO_TWO_BYTES in line:  # ISO-2022-JP consists of ASCII bytes, so it decodes without an error
            raise _encoding_error("iso2022_jp", source, location, "an escape for characters of two bytes is not")
        if number == 1:
            _refuse_text_format(line, source)
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
        return _format_error(start, source) or _binary_error(location, reason)
    encoding = wide_encoding(start) or encoding_of(sample)
    return _format_error(start, source) or _encoding_error(encoding, source, location, reason)


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


def _format_error(start: bytes, source: str) -> DataError | None:
    if start.startswith(_ZIP_MAGIC) and _is_workbook(source, start):
        return workbook_error(source)
    for magic, (description, fix) in _OTHER_FORMATS.items():
        if start.startswith(magic):
            return DataError(f"{source}: this is no text, but {description}. To read it, {fix}.")
    return None


def _refuse_text_format(line: str, source: str) -> None:
    """Raise DataError if the first line of a file is that of a web page, or of another format that is no texts."""
    beginning = line[:_SAMPLE].lstrip().casefold()
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


def _encoding_error(encoding: str, source: str, location: str, reason: str) -> DataError:
    """Build the error for text that is not UTF-8; ``encoding`` is the detected encoding, ``""`` if it is uncertain."""
    excel = ""
    if Path(source).suffix.lower() == ".csv":
        excel = ' (in Excel, save as "CSV UTF-8")'
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


def standard_input() -> Iterator[Line]:
    """Yield the lines of standard input; DataError if it is closed."""
    # Python sets it to None if the process was started without standard input.
    if sys.stdin is None:
        raise DataError("Standard input is read here, and it is closed. Give a file, or let it be open: < FILE")
    return numbered_lines(_recode(sys.stdin.buffer, "standard input"), "standard input")
