"""Options for reading tables of text: quoting, delimiter, header and encoding."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import wraps
from typing import Literal, ParamSpec, TypeVar, get_args

from samesense.data.conventions.named_columns import check_columns
from samesense.errors import ConfigError

logger = logging.getLogger(__name__)

Quoting = Literal["csv", "none"]
"""``csv``: fields may be in double quotes, with quotes inside doubled. ``none``: a quote is an ordinary character."""

Header = Literal["yes", "no"]
"""Whether the first line of a table has the names of its columns."""

DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " ", "\\t": "\t"}
"""Names of delimiters that are hard to write in a shell."""


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
        kind = "of text" if unused == ["encoding"] else "a table of text, such as .csv and .tsv"
        logger.warning(f"{names} had no effect: no file that was read is {kind}.")


OPTIONS = tuple(field.name for field in fields(TableOptions))
"""Names of the options."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def reads_tables(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function with the arguments :data:`OPTIONS` so that it reads all files by them, if they are given.

    Its argument ``columns``, if it has one, is checked first; see :func:`check_columns`.
    """

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        check_columns(kwargs.get("columns"))
        options = {name: kwargs[name] for name in OPTIONS if kwargs.get(name) is not None}
        # Without options, those of an enclosing block stay in force.
        if not options:
            return function(*args, **kwargs)
        with table_options(TableOptions(**options)):  # type: ignore[arg-type]  # TableOptions checks the values
            return function(*args, **kwargs)

    return run
