"""Rows of a source with all their columns, read again where they are needed, and written to a file of any format."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from samesense.data.formats.lines import without_breaks
from samesense.data.formats.sources import load_rows
from samesense.errors import ConfigError, DataError
from samesense.files import replacing
from samesense.inference.stream import Usable, is_table

if TYPE_CHECKING:
    import pyarrow as pa

Cells = Mapping[str, Any]

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
BATCH = 8192
"""Rows of a Parquet file written at once."""


def rows_of(source: str, read: Usable, form: str) -> Iterator[Cells]:
    """Yield the rows of texts that were read, with all columns; with only ``text`` if there is none else.

    So it is too where the output is text. DataError if the source has not as many rows as before.
    """
    if form == ".txt" or not is_table(source):
        yield from ({"text": text} for text in read.texts)
        return
    count, places = 0, set(read.places)
    for _, cells in load_rows(source):
        if count in places:
            yield cells
        count += 1
    if count != read.rows:
        raise DataError(f"{source} has changed while it was read: {read.rows} rows, then {count}. Give it again.")


def format_of(output: str, source: str) -> str:
    """Return the ending that says the format of an output: for standard output text or TSV, as the source.

    ConfigError if it is none of :data:`FORMATS`.
    """
    if output == "-":
        return ".tsv" if is_table(source) else ".txt"
    suffix = Path(output).suffix.lower()
    if suffix not in FORMATS:
        raise ConfigError(f"An output ends in {', '.join(FORMATS)}; received {output!r}.")
    return suffix


def beside(cells: Cells, more: Cells) -> dict[str, Any]:
    """Return a row with further columns behind its own; one whose name is taken gets an underscore."""
    row = dict(cells)
    for name, value in more.items():
        while name in row:
            name += "_"
        row[name] = value
    return row


def header_of(*sources: Iterator[Cells], more: Iterable[str] = ()) -> Iterator[str]:
    """Yield the columns of sources, by their first rows, and ``more``; nothing is read before they are asked for."""
    cells: Cells = {}
    for rows in sources:
        cells = beside(cells, next(rows, {}))
    yield from beside(cells, dict.fromkeys(more))


def write_rows(rows: Iterable[Cells], output: str, form: str, source: str = "", columns: Iterable[str] = ()) -> None:
    """Write rows to a file, or to standard output for ``"-"``, as they come; text files have the column ``text`` alone.

    A table of no rows has the ``columns`` that are given. Columns of Parquet have the types of the ``source`` if that
    is Parquet, else those of the first rows. A file is there whole or not at all. DataError if rows do not fit into a
    table; OutputError if the file cannot be written.
    """
    with _opened(output) as stream:
        if form == ".txt":
            _lines((_line(row["text"]) for row in rows), stream)
        elif form == ".jsonl":
            _lines((json.dumps(row, ensure_ascii=False, default=str) for row in rows), stream)
        else:
            writers: dict[str, Callable[[Iterator[list[Any]], IO[bytes]], None]] = {
                ".tsv": _tsv, ".csv": _csv, ".parquet": partial(_parquet, source=source),
            }  # fmt: skip
            writers[form](_table(rows, columns), stream)


@contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(output) as place, place.open("wb") as stream:
        yield stream


def _lines(lines: Iterable[str], stream: IO[bytes]) -> None:
    for line in lines:
        stream.write(line.encode() + b"\n")


def _line(value: Any) -> str:
    return without_breaks(_cell(value))


def _cell(value: Any) -> str:
    """Return a cell as text: an absent value is empty, and what has parts is JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _tsv(table: Iterator[list[Any]], stream: IO[bytes]) -> None:
    """Write a header and rows; tabs and ends of lines in a cell become spaces, as the format has no quoting."""
    _lines(("\t".join(map(_line, cells)) for cells in table), stream)


def _csv(table: Iterator[list[Any]], stream: IO[bytes]) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    csv.writer(text, lineterminator="\n").writerows(map(_cell, cells) for cells in table)
    text.detach()


def _table(rows: Iterable[Cells], columns: Iterable[str]) -> Iterator[list[Any]]:
    """Yield the names of the columns, then the cells of each row; DataError for a column that the first has not.

    Without a row they are ``columns``.
    """
    names: dict[str, None] | None = None
    for row in rows:
        if names is None:
            names = dict.fromkeys(row)
            yield list(names)
        if not row.keys() <= names.keys():
            raise DataError(
                f"Rows of a table have the same columns; after {', '.join(names)} in the first row there is "
                f"{', '.join(row.keys() - names.keys())} in a later one. Write .jsonl."
            )
        yield [row.get(name) for name in names]
    if names is None and (header := list(columns)):
        yield header


def _is_parquet(source: str) -> bool:
    return source.lower().endswith(".parquet") and Path(source).expanduser().is_file()


def _field(known: pa.Schema, name: str, values: Sequence[Any]) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, known.field(name).type if name in known.names else pa.infer_type(values))


def _parquet(cells: Iterator[list[Any]], stream: IO[bytes], source: str) -> None:
    """Write columns, by the types in the source or the first rows.

    A column that is empty there holds texts, and whatever comes later as a text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = pq.read_schema(source) if _is_parquet(source) else pa.schema([])
    writer = None
    names, empty = next(cells, []), set[str]()
    try:
        while (batch := list(islice(cells, BATCH))) or writer is None:  # a file of no rows is a whole file too
            columns = dict(zip(names, zip(*batch, strict=True), strict=True)) if batch else dict.fromkeys(names, ())
            columns |= {name: [None if one is None else _cell(one) for one in columns[name]] for name in empty}
            if writer is None:
                schema = pa.schema([_field(known, name, values) for name, values in columns.items()])
                empty = {name for name in names if pa.types.is_null(schema.field(name).type)}
                types = [pa.string() if field.name in empty else field.type for field in schema]
                writer = pq.ParquetWriter(stream, pa.schema(zip(names, types, strict=True)))
            writer.write_table(pa.table(columns, schema=writer.schema))
    except (pa.ArrowException, TypeError) as error:
        raise DataError(f"A column of Parquet holds values of one type: {error}. Write .jsonl.") from error
    finally:
        if writer is not None:
            writer.close()
