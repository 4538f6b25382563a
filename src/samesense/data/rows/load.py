"""Rows of any source, with their numbers and the names of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

from samesense.data.rows.columnar import Cells, parquet_rows
from samesense.data.rows.compression import LIKE_THEM, PACKERS, SUFFIXES, split_suffix
from samesense.data.rows.delimited import delimited_rows
from samesense.data.rows.json_rows import json_lines_rows, json_rows
from samesense.data.rows.line_formats import refuse_other_format
from samesense.data.rows.memory import dataset_rows, memory_rows
from samesense.data.rows.other_formats import WORKBOOKS, workbook_error
from samesense.data.rows.sources import Source, folder_and_split, in_memory, leads_to, missing_file_error, name_of
from samesense.data.rows.text import STANDARD_INPUT, Line, read_lines, standard_input, without_blank_end
from samesense.errors import DataError
from samesense.failures import imported, with_class
from samesense.hub import hub_access
from samesense.types import Row
from samesense.urls import is_file, is_url, local

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<config>[\w.+-]+))?(?::(?P<split>[^:]+))?")

BEIR_FIX = (
    "Write one table with the columns query and positive: for each row of qrels with a score above 0, the text of its "
    "query in queries.jsonl and of its document in corpus.jsonl; in pandas: qrels.merge(queries, left_on='query-id', "
    "right_on='_id').merge(corpus, left_on='corpus-id', right_on='_id') has them as text_x and text_y."
)
"""How the files of a folder of BEIR become one table."""

TEXT = "text"
"""Column of a row that is a line of a text file."""


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
            f"({with_class(error)}). Nor does it hold documents, whose names end in .txt, .md, .html, .pdf or .docx. "
            "Name a file inside it, or end the names of its texts in .txt."
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
            f"{source}: no such file or folder, and it could not be loaded from the hub ({with_class(error)}). "
            "Check the spelling and the network; a local file works offline."
        ) from error
