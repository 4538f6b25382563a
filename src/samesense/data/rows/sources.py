"""Sources of rows and their names: a file, a folder saved by ``datasets``, a name on the hub, or data in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from shlex import quote
from typing import Any

from samesense.data.rows.compression import SUFFIXES, is_text_file, split_suffix
from samesense.data.rows.memory import (
    Rows,
    as_rows,
    cells_of_column,
    fields_of,
    is_example,
    is_missing,
    name_in_memory,
    refuse_open_file,
)
from samesense.errors import ConfigError, DataError
from samesense.failures import broken_link
from samesense.places import JOINT
from samesense.urls import Name, is_readable, is_url

logger = logging.getLogger(__name__)

Source = Any
"""A path or hub name; a data frame (pandas, polars, anything that speaks Arrow), an Arrow table, a
``datasets.Dataset``; or rows: dicts, tuples, or texts."""


def in_memory(source: Source) -> bool:
    """Return whether a source is data itself rather than the name of a file, folder or hub data set."""
    return not isinstance(source, str | Path)


def name_of(source: Source) -> str:
    """Return the name of a source in messages: its path or hub name, or the type of an object."""
    if not in_memory(source):
        return str(source)
    return name_in_memory(source)


def names_among(sources: Source) -> list[str]:
    """Return the names of files, folders and hub data sets in one source or several."""
    return [str(source) for source in as_sources(sources) if source is not None and not in_memory(source)]


def short_name(source: Source) -> str:
    """Return a short name for display: the file name of a file, else :func:`name_of`."""
    is_file = not in_memory(source) and (split_suffix(str(source)).suffix or leads_to(source, Path.is_file))
    if is_file:
        return Path(source).name
    return name_of(source)


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names made unique: a name that is already taken gets a number, starting with 2."""
    unique: list[str] = []
    for name in names:
        candidate = name
        number = 1
        while candidate in unique:
            number += 1
            candidate = f"{name} {number}"
        unique.append(candidate)
    return unique


def distinct_names(short_names: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return the short name of each source, or, if several sources share it, the shortest unique end of its path.

    That is the file name with as many parent folders as are needed to distinguish it. Joined sources, and a source that
    occurs twice, keep their names.

    Example:
        >>> distinct_names(["train.tsv", "train.tsv", "test.tsv"], ["old/train.tsv", "new/train.tsv", "new/test.tsv"])
        ['old/train.tsv', 'new/train.tsv', 'test.tsv']
    """
    names = []
    for short_name, source in zip(short_names, sources, strict=True):
        namesakes = zip(short_names, sources, strict=True)
        rivals = {rival for name, rival in namesakes if name == short_name and rival != source}
        names.append(_shortest_end(source, rivals) if rivals else short_name)
    return names


def _shortest_end(source: str, rivals: set[str]) -> str:
    if JOINT in source:
        return source
    pieces = PurePath(source).parts
    # From two parts on, because the file name alone is shared.
    for length in range(2, len(pieces)):
        if all(PurePath(rival).parts[-length:] != pieces[-length:] for rival in rivals):
            return "/".join(pieces[-length:])
    return source


def as_sources(sources: Source) -> list[Source]:
    """Return one source, or several, as a list of sources; a list of sources is returned as it is.

    A list of texts is one source in memory, and a list of names is several. In a list of strings, a string is taken
    for a name if it has a known file ending, a slash, or exists on disk. If one looks like a name, all are names, so
    that a misspelt name is not trained on as a sentence.
    """
    if not in_memory(sources):
        return [sources]
    sources = as_rows(sources)
    if isinstance(sources, Rows) or not isinstance(sources, list | tuple) or not sources:
        return [sources]
    if all(isinstance(source, str | Path) for source in sources):
        if any(map(_looks_like_name, sources)):
            return list(sources)
        return [Rows(sources)]
    # Missing texts among texts are bad rows, and no sources.
    if all(isinstance(source, str) or is_missing(source) for source in sources):
        return [Rows(sources)]
    first = sources[0]
    # Rows of one source have cells; Rows is a source by itself.
    has_cells = isinstance(first, Mapping | list | tuple) and not isinstance(first, Rows)
    if has_cells or is_example(first) or fields_of(first) is not None:
        return [Rows(sources)]
    _refuse_arrays_as_rows(sources)
    return list(sources)


def _refuse_arrays_as_rows(sources: Sequence[Source]) -> None:
    """Raise DataError for a list of arrays or series of two or three cells: they may be rows or columns of texts."""
    columns = [None if isinstance(source, str | Path | Rows) else cells_of_column(source) for source in sources]
    if all(column is not None and len(column) in (2, 3) for column in columns):
        raise DataError(
            f"A list of {type(sources[0]).__name__} with two or three cells each may be rows or columns of texts. Give "
            "rows as tuples, [tuple(row) for row in rows], and one column of all texts."
        )


def _looks_like_name(source: str | Path) -> bool:
    text = str(source)
    if isinstance(source, Path | Name) or split_suffix(text).suffix or is_text_file(text):
        return True
    # A sentence may hold a slash, as in and/or; a name rarely holds a space.
    if " " in text.strip():
        return False
    return "/" in text or leads_to(text, Path.exists) or (":" in text and leads_to_folder(text))


def holds_lines(source: Source) -> bool:
    """Return whether a source has one text a line: a text file, or a list of texts.

    A text file ends in ``.txt``, or is an existing file, or a URL, without the ending of a table.
    """
    if in_memory(source):
        return isinstance(source, list) and bool(source) and isinstance(source[0], str)
    name = str(source)
    if split_suffix(name).suffix:
        return False
    return is_text_file(name) or is_url(name) or leads_to(name, Path.is_file)


def refuse_columns(source: str, **options: str | None) -> None:
    """Raise ConfigError if an option that names columns is given for a text file, which has none."""
    for name, value in options.items():
        if value:
            raise ConfigError(f"`{name}` is for tables ({', '.join(SUFFIXES)}); {source} holds one text a line.")


def rereadable(source: Source) -> Source:
    """Return a source that can be read twice: the rows of an iterator are collected into a list."""
    # A reader of Arrow's, as of a DuckDB query, yields batches of rows.
    if hasattr(source, "read_all"):
        return source.read_all()
    if isinstance(source, Iterator):
        refuse_open_file(source)
        return Rows(source)
    return source


def leads_to(source: str | Path, check: Callable[[Path], bool]) -> bool:
    """Return the result of ``Path.exists``, ``is_file`` or ``is_dir``; false for a text too long to be a path."""
    if not str(source):  # to pathlib this is the current folder
        return False
    try:
        path = Path(source).expanduser()
        if check is Path.is_file:
            return is_readable(path)
        return check(path)
    except (OSError, RuntimeError):  # pathlib raises for a name that is too long, and for the home of an unknown user
        return False


def warn_of_compared_names(text1: str, text2: str, command: str) -> None:
    """Warn where two texts are names of files, whose contents were probably meant; ``command`` compares two texts."""
    if not all(leads_to(text, Path.is_file) for text in (text1, text2)):
        return
    first = quote(text1)
    second = quote(text2)
    logger.warning(
        f"{text1!r} and {text2!r} are files, and their names are compared, not what they hold. Whole files: {command} "
        f'"$(cat {first})" "$(cat {second})"; line by line: paste {first} {second} | samesense similarity MODEL'
    )


def missing_file_error(source: str) -> DataError:
    """Build the error for a missing file."""
    # ~name of no user leads nowhere.
    if leads_to(source, Path.is_symlink) and (message := broken_link(Path(source).expanduser())):
        return DataError(message)
    if leads_to(source, Path.exists) and not leads_to(source, Path.is_dir):
        return DataError(f"{source}: this is no file, but a device, a socket or a pipe, which is not read here.")
    return DataError(f"{source}: there is no such file. Check the spelling and the working directory.")


def folder_and_split(text: str) -> tuple[Path | None, str | None]:
    """Return the folder that a name leads to, and the split that it names, as in ``folder:split``."""
    if leads_to(text, Path.is_dir):
        return Path(text).expanduser(), None
    name, colon, split = text.rpartition(":")
    is_split = colon and name and split and leads_to(name, Path.is_dir)
    if is_split:
        return Path(name).expanduser(), split
    return None, None


def leads_to_folder(text: str) -> bool:
    """Return whether a name leads to a folder, or to a split of one; see :func:`folder_and_split`."""
    folder, _ = folder_and_split(text)
    return folder is not None
