"""Options that settle how text files and tables are read, where their first bytes and lines leave it open."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import wraps
from typing import Literal, ParamSpec, TypeVar, get_args

from samesense.errors import ConfigError

logger = logging.getLogger(__name__)

Quoting = Literal["csv", "none"]
"""``csv``: a field in double quotes is one text, with quotes in it doubled. ``none``: a quote is a character."""

Header = Literal["yes", "no"]
"""Whether the first line of a table has the names of its columns."""

DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " ", "\\t": "\t"}
"""Names of characters that separate fields, which are hard to write in a shell."""


@dataclass(frozen=True)
class TableOptions:
    """How text files and tables are read; ``None`` leaves it to the rules of docs/data.md.

    Attributes:
        quoting: whether fields of ``.tsv`` and ``.csv`` files stand in double quotes; see :data:`Quoting`.
        delimiter: the one character between their fields, or its name in :data:`DELIMITERS`.
        header: whether their first line has the names of the columns; without one the only column is ``text``, and
            several are ``column1``, ``column2`` and so on.
        encoding: of text files and tables but Parquet, as Python names it, such as ``"cp1252"``.

    Raises:
        ConfigError: if an option is none of these.
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
"""Encodings of Python in which no text files are."""


def _delimiter(name: str) -> str:
    character = DELIMITERS.get(name, name)
    if not isinstance(character, str) or len(character) != 1 or character in '"\r\n\0':
        raise ConfigError(
            f"`delimiter` is one character, or one of {', '.join(DELIMITERS)}; received {name!r}. Example: "
            "`delimiter` semicolon"
        )
    return character


def _encoding(name: str) -> str | None:
    """Return the name of an encoding of text as Python has it, ``None`` for UTF-8; ConfigError if there is none."""
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError, TypeError):
        codec = None
    # base64 and the like are no encodings of text, and escapes would be read as other characters
    if codec is None or not codec._is_text_encoding or codec.name in _NO_TEXT_FILES:
        raise ConfigError(
            f"`encoding` is the name of an encoding of text, such as cp1252, gb18030 or shift_jis; received {name!r}."
        )
    return None if codec.name in ("utf-8", "utf-8-sig") else codec.name


_BY_THE_RULES = TableOptions()
_OPTIONS: ContextVar[TableOptions] = ContextVar("table_options", default=_BY_THE_RULES)
_APPLIED: ContextVar[frozenset[str]] = ContextVar("applied_options", default=frozenset())

FIELD_OPTIONS = ("quoting", "delimiter", "header")
"""Options of files that are tables of fields; ``encoding`` is of all files of text."""


def current_options(*applied: str) -> TableOptions:
    """Return the options by which files of the user are read now; see :func:`table_options`.

    ``applied`` are the names of those that the file at hand is read by.
    """
    _APPLIED.set(_APPLIED.get().union(applied))
    return _OPTIONS.get()


@contextmanager
def table_options(options: TableOptions | None = None) -> Iterator[None]:
    """Have files read by these options in the ``with`` block, the same for all files of a command; by default by none.

    Files of the library itself, such as held-out pairs in a run folder, are read under ``table_options()``. An option
    by which no file was read is warned of.
    """
    options = options or _BY_THE_RULES
    token, applied = _OPTIONS.set(options), _APPLIED.set(frozenset())
    try:
        yield
        _warn_of_unused(options, _APPLIED.get())
    finally:
        _OPTIONS.reset(token)
        _APPLIED.reset(applied)


def _warn_of_unused(options: TableOptions, applied: frozenset[str]) -> None:
    unused = [name for name in OPTIONS if getattr(options, name) is not None and name not in applied]
    if unused:
        names = " and ".join(f"`{name}`" for name in unused)
        kind = "of text" if unused == ["encoding"] else "a table of text, such as .csv and .tsv"
        logger.warning(f"{names} had no effect: no file that was read is {kind}.")


OPTIONS = tuple(field.name for field in fields(TableOptions))
"""Names of the options."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def reads_tables(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Have a function with the arguments :data:`OPTIONS` read all files by them, if they are given."""

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
        if not options:
            return function(*args, **kwargs)
        with table_options(TableOptions(**options)):  # type: ignore[arg-type]  # of any type; they are checked
            return function(*args, **kwargs)

    return run
