"""Rows of any source: a file, a folder saved by ``datasets``, a name on the hub, or data in memory."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePath
from shlex import quote
from typing import Any

from samesense.data.rows.columnar import Cells, parquet_rows
from samesense.data.rows.compression import LIKE_THEM, PACKERS, SUFFIXES, is_text_file, split_suffix
from samesense.data.rows.delimited import delimited_rows
from samesense.data.rows.json_rows import json_lines_rows, json_rows
from samesense.data.rows.line_formats import refuse_other_format
from samesense.data.rows.memory import (
    Rows,
    as_rows,
    cells_of_column,
    dataset_rows,
    fields_of,
    is_example,
    is_missing,
    memory_rows,
    name_in_memory,
    refuse_open_file,
)
from samesense.data.rows.other_formats import WORKBOOKS, workbook_error
from samesense.data.rows.text import STANDARD_INPUT, Line, read_lines, standard_input, without_blank_end
from samesense.errors import ConfigError, DataError
from samesense.failures import broken_link, imported, shortened
from samesense.hub import hub_access
from samesense.places import JOINT
from samesense.types import Row
from samesense.urls import Name, is_file, is_readable, is_url, local

logger = logging.getLogger(__name__)

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<config>[\w.+-]+))?(?::(?P<split>[^:]+))?")

BEIR_FIX = (
    "Write one table with the columns query and positive: for each row of qrels with a score above 0, the text of its "
    "query in queries.jsonl and of its document in corpus.jsonl; in pandas: qrels.merge(queries, left_on='query-id', "
    "right_on='_id').merge(corpus, left_on='corpus-id', right_on='_id') has them as text_x and text_y."
)
"""How the files of a folder of BEIR become one table."""

Source = Any
"""A path or hub name; a data frame (pandas, polars, anything that speaks Arrow), an Arrow table, a
``datasets.Dataset``; or rows: dicts, tuples, or texts."""

TEXT = "text"
"""Column of a row that is a line of a text file."""


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


def load_rows(source: Source) -> Iterator[Row]:
    """Read rows from a file, a folder saved by ``datasets``, the hub, or an object in memory.

    Args:
        source: path of a file; path of a folder, followed by ``:split`` if it has several splits; or
            ``owner/name``, ``owner/name@config``, ``owner/name:split`` or ``owner/name@config:split``
            on the hub (by default split ``train``); or data in memory, see
            :func:`~samesense.data.rows.memory.memory_rows`.

    Returns:
        Row numbers with cells by column name. Class labels are given by name, never as integers.

    Raises:
        DataError: if the source cannot be found or read.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    if in_memory(source):
        return memory_rows(source)
    text = str(source)
    if is_url(source) or leads_to(local(text), Path.is_file):
        return read_rows(source)
    if not text:
        raise DataError("The name of a source is empty, as of a variable that is not set. Name a file or folder.")
    # A folder takes precedence over a hub data set of the same name.
    folder, split = folder_and_split(text)
    if folder is not None:
        return dataset_rows(_from_disk(folder, split), text)
    # Last of all, as the hub is asked over the network.
    match = _HUB_NAME.fullmatch(text)
    if isinstance(source, Path) or _looks_like_path(text):
        raise missing_file_error(text)
    if match is None:
        raise DataError(
            f"{text}: this is no existing file or folder, and no hub name of the form owner/name, owner/name@config "
            f"or owner/name:split. Name a file that ends in {', '.join(SUFFIXES)} ({LIKE_THEM}), or in .txt. "
            "From Python, texts are given in a list."
        )
    return dataset_rows(_from_hub(match["name"], match["config"], match["split"] or "train", text), text)


def list_rows(source: Source, limit: int | None = None) -> list[Row]:
    """Return all rows of a source, or the first ``limit``; DataError if there are none. See :func:`load_rows`."""
    rows = list(islice(load_rows(source), limit))
    if not rows:
        raise no_rows_error(source)
    return rows


def no_rows_error(source: Source) -> DataError:
    """Build the error for a source without rows."""
    return DataError(f"{name_of(source)}: there are no rows. Check that this is the right file.")


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


def read_rows(source: str | Path) -> Iterator[Row]:
    """Read the rows of one file, lazily.

    The row number is the line on which the row starts (the header is line 1); for Parquet and a JSON list it is the
    number of the record, from 1. DataError if the file is missing, has an unknown suffix, or breaks a rule of its
    format.
    """
    path = str(source) if is_url(source) else Path(local(str(source))).expanduser()
    if not is_file(path):
        raise missing_file_error(str(source))
    suffix, packing = split_suffix(str(path))
    if not suffix and str(path).lower().endswith(WORKBOOKS):
        raise workbook_error(str(source))
    if not suffix:
        raise DataError(
            f"{source}: the end of the file name says the format, which is none of {', '.join(SUFFIXES)} "
            f"({LIKE_THEM}). Rename or convert the file."
        )
    if suffix == ".parquet":
        if packing:
            packer = PACKERS[packing]
            raise DataError(
                f"{source}: Parquet compresses by itself and is not read inside {packer.name}. Unpack it: "
                f"{packer.unpack} {quote(str(source))}"
            )
        return parquet_rows(path)
    if suffix == ".json":
        # A JSON list may be one line of any length.
        return json_rows(path, read_lines(path, bounded=False, carriage_returns=True))
    return rows_of_lines(suffix, path, read_lines(path, carriage_returns=suffix == ".csv"))


def rows_of_lines(suffix: str, path: str | Path, lines: Iterable[Line]) -> Iterator[Row]:
    """Yield the rows in lines: of ``.tsv``, ``.csv`` or JSON lines; without a suffix, each line is a text."""
    if not suffix:
        return ((number, {TEXT: line.rstrip("\r\n")}) for number, line in lines)
    if suffix in (".tsv", ".csv"):
        return delimited_rows(suffix, path, lines)
    return json_lines_rows(path, lines)


def line_rows(source: str | Path, *, blank_end: bool = False) -> Iterator[Row]:
    """Yield the lines of a text file, or of standard input for ``"-"``, as rows with the column :data:`TEXT`.

    Blank lines at the end are rows only with ``blank_end``. DataError if there is no such file.
    """
    if str(source) == STANDARD_INPUT:
        lines = standard_input()
    elif is_file(source):
        lines = read_lines(source)
    else:
        raise missing_file_error(str(source))
    rows = rows_of_lines("", source, lines if blank_end else without_blank_end(lines))
    if str(source) == STANDARD_INPUT:
        return rows
    return _rows_of_texts(rows, str(source))


def _rows_of_texts(rows: Iterator[Row], source: str) -> Iterator[Row]:
    first = list(islice(rows, SNIFFED_LINES))
    refuse_table(first, source)
    yield from first
    yield from rows


def refuse_table(rows: Sequence[Row], source: str) -> None:
    """Raise DataError if the first rows of a text file are lines of another format; warn if they may be a table."""
    refuse_other_format([text for _, cells in rows[:SNIFFED_LINES] if (text := str(cells[TEXT])).strip()], source)


SNIFFED_LINES = 1000
"""Lines of a text file that are inspected to see whether it is a table."""


def missing_file_error(source: str) -> DataError:
    """Build the error for a missing file."""
    # ~name of no user leads nowhere.
    if leads_to(source, Path.is_symlink) and (message := broken_link(Path(source).expanduser())):
        return DataError(message)
    if leads_to(source, Path.exists) and not leads_to(source, Path.is_dir):
        return DataError(f"{source}: this is no file, but a device, a socket or a pipe, which is not read here.")
    return DataError(f"{source}: there is no such file. Check the spelling and the working directory.")


def row_names(cells: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of a row's columns; the rows of a block of a columnar table share this object."""
    if isinstance(cells, Cells):
        return cells.names
    return tuple(cells)


def names_in(rows: Iterable[Row]) -> list[str]:
    """Return the names of all columns, in order of first appearance."""
    names: dict[str, None] = {}
    previous = None
    for _, cells in rows:
        columns = cells.names if isinstance(cells, Cells) else None
        if columns is None or columns is not previous:  # rows of one table have the same names
            names.update(dict.fromkeys(cells))
        previous = columns
    return list(names)


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


def _looks_like_path(text: str) -> bool:
    if split_suffix(text).suffix or text.startswith((".", "/", "~")) or "\\" in text:
        return True
    # A missing file in an existing folder is a misspelt path, not a hub name.
    parent = text.rpartition("/")[0]
    return bool(parent) and leads_to(parent, Path.is_dir)


def refuse_beir(folder: Path) -> None:
    """Raise DataError for a folder in the layout of BEIR, which has texts and judgements in different files."""
    if all((folder / name).is_file() for name in ("corpus.jsonl", "queries.jsonl")):
        raise DataError(f"{folder}: this is a folder of BEIR, which is not read as it is. {BEIR_FIX}")


def _from_disk(folder: Path, split: str | None) -> Any:
    refuse_beir(folder)
    datasets = imported("datasets", "train")
    try:
        # For damaged or foreign folders, datasets raises exceptions of many types.
        loaded = datasets.load_from_disk(str(folder))
    except Exception as error:
        raise DataError(
            f"{folder}: a folder must be one written by save_to_disk of datasets; it could not be read as that "
            f"({_one_line(error)}). Nor does it hold documents (.txt, .md, .html, .pdf, .docx). Name a file inside it."
        ) from error
    if not isinstance(loaded, dict):
        if split is not None:
            raise DataError(
                f"{folder}: this folder holds one dataset without splits; received ':{split}'. Leave out ':{split}'."
            )
        return loaded
    # The only one is meant.
    if split is None and len(loaded) == 1:
        return next(iter(loaded.values()))
    if split not in loaded:
        received = "none was named" if split is None else f"received {split!r}"
        raise DataError(
            f"{folder}: this folder holds several splits and one must be named; {received}. Splits available: "
            f"{', '.join(loaded)}. Write for example {folder}:{next(iter(loaded), 'train')}"
        )
    return loaded[split]


def _from_hub(name: str, config: str | None, split: str, source: str) -> Any:
    datasets = imported("datasets", "train")
    try:
        # Without a connection, hub_access falls back to the cached copy.
        with hub_access(name, "dataset"):
            return datasets.load_dataset(name, config, split=split)
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{source}: no such file or folder, and it could not be loaded from the hub ({_one_line(error)}). "
            "Check the spelling and the network; a local file works offline."
        ) from error


def _one_line(error: Exception) -> str:
    return ": ".join(filter(None, (type(error).__name__, shortened(error))))
