"""Write rows to a file of any format, also the rows of a source, which is read again with all its columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from samesense.data.rows.columnar import class_names
from samesense.data.rows.tsv import quote_fields
from samesense.data.texts import SourceTexts, is_table, open_rows
from samesense.errors import ConfigError, DataError
from samesense.files import open_output
from samesense.inference.lines import json_line, without_breaks

if TYPE_CHECKING:
    import pyarrow as pa

Cells = Mapping[str, Any]

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
BATCH = 8192
"""Rows of a Parquet file written at once."""


def rows_of(source: str, read: SourceTexts, form: str) -> Iterator[Cells]:
    """Yield the rows of the texts that were read: with all columns for a table, with ``text`` only for a text file.

    For text output they have only ``text``; for JSON lines each row has only its own columns. DataError if the number
    of rows has changed.
    """
    if form == ".txt" or not is_table(source):
        yield from ({"text": text} for text in read.texts)
        return
    count = 0
    # A range answers as quickly as a set, without its memory.
    indices = read.indices if isinstance(read.indices, range) else set(read.indices)
    # Rows of JSON may lack keys that other rows have.
    columns = {} if form == ".jsonl" else dict.fromkeys(read.names)
    for _, cells in open_rows(source):
        if count in indices:
            yield {**columns, **cells}
        count += 1
    check_unchanged(source, read.total, count)


def check_unchanged(source: str, before: int, after: int) -> None:
    """Raise DataError for a source that had another number of rows when it was read again."""
    if before != after:
        raise DataError(f"{source} has changed while it was read: {before} rows, then {after}. Give it again.")


def format_of(output: str, on_standard_output: str, *, table: bool = False) -> str:
    """Return the suffix of an output's format.

    ConfigError if it is none of :data:`FORMATS`, or text where a ``table`` is written, as a line has no columns.
    """
    formats = FORMATS[1:] if table else FORMATS
    suffix = on_standard_output if output == "-" else Path(output).suffix.lower()
    if suffix not in formats:
        raise ConfigError(f"{'A table' if table else 'An output'} ends in {', '.join(formats)}; received {output!r}.")
    return suffix


def behind(taken: Collection[str], columns: Iterable[str]) -> dict[str, str]:
    """Return the names of new columns: a name that is ``taken`` gets an underscore."""
    names: dict[str, str] = {}
    for column in columns:
        name = column
        while name in taken or name in names.values():
            name += "_"
        names[column] = name
    return names


class Table(NamedTuple):
    """Rows to write, the file (``"-"`` for standard output), its format, and its columns.

    Without columns, those of the first row are written.
    """

    rows: Iterable[Cells]
    output: str
    form: str
    columns: Sequence[str] = ()


def write_tables(*tables: Table, source: str = "") -> None:
    """Write rows as they arrive; a text file has only the column ``text``.

    Columns of Parquet have the types of the ``source`` if that is Parquet, else those of the first rows. All files are
    written completely, or none. DataError if rows do not fit into a table; OutputError if a file cannot be written.
    """
    with ExitStack() as stack:
        for table in tables:
            _write(table, stack.enter_context(open_output(table.output)), source)


def _write(table: Table, stream: IO[bytes], source: str) -> None:
    if table.form == ".txt":
        _lines((_line(row["text"]) for row in table.rows), stream)
    elif table.form == ".jsonl":
        _lines(map(json_line, table.rows), stream)
    else:
        writers: dict[str, Callable[[Iterator[list[Any]], IO[bytes]], None]] = {
            ".tsv": _tsv,
            ".csv": _csv,
            ".parquet": partial(_parquet, source=source, output=table.output),
        }
        writers[table.form](_in_columns(table), stream)


def _lines(lines: Iterable[str], stream: IO[bytes]) -> None:
    for line in lines:
        stream.write(line.encode() + b"\n")


def _line(value: Any) -> str:
    return without_breaks(cell_text(value))


def cell_text(value: Any) -> str:
    """Return a cell as text: a missing value is empty; booleans, lists and dicts are JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool | list | dict):
        return json_line(value)
    return str(value)


def _tsv(table: Iterator[list[Any]], stream: IO[bytes]) -> None:
    """Write a header and rows; tabs and line breaks in a cell become spaces, as many TSV readers support no quoting."""
    _lines(("\t".join(quote_fields([_line(cell) for cell in cells])) for cells in table), stream)


def _csv(table: Iterable[Iterable[Any]], stream: IO[bytes], encoding: str = "utf-8", **options: Any) -> None:
    text = io.TextIOWrapper(stream, encoding=encoding, newline="", write_through=True)
    csv.writer(text, **{"lineterminator": "\n", **options}).writerows(map(cell_text, cells) for cells in table)
    # Otherwise the wrapper would close the stream, which is the caller's.
    text.detach()


def write_for_excel(table: Table, delimiter: str) -> None:
    """Write CSV in the form that Excel opens: with a byte order mark."""
    with open_output(table.output) as stream:
        _csv(_in_columns(table), stream, "utf-8-sig", delimiter=delimiter, lineterminator="\r\n")


def _in_columns(table: Table) -> Iterator[list[Any]]:
    """Yield the names of the columns, if there are any, then the cells of each row."""
    rows = iter(table.rows)
    first = None if table.columns else next(rows, None)
    columns = list(table.columns or first or ())
    if columns:
        yield columns
    for row in rows if first is None else chain([first], rows):
        yield [row.get(name) for name in columns]


def _is_parquet(source: str) -> bool:
    return source.lower().endswith(".parquet") and Path(source).expanduser().is_file()


def _batch_columns(names: Sequence[Any], batch: Sequence[Any], as_texts: Iterable[Any]) -> dict[Any, Sequence[Any]]:
    """Return the cells of a batch of rows by column; the values of the columns ``as_texts`` become texts."""
    columns: dict[Any, Sequence[Any]] = dict.fromkeys(names, ())
    if batch:
        columns = dict(zip(names, zip(*batch, strict=True), strict=True))
    for name in as_texts:
        columns[name] = [None if value is None else cell_text(value) for value in columns[name]]
    return columns


@contextmanager
def _locating(output: str, first_row: int, name: str) -> Iterator[None]:
    """Raise DataError with the output, the row and the column for a value that does not fit into its column."""
    from samesense.inference.arrow import MisfitError

    try:
        yield
    except MisfitError as error:
        raise DataError(
            f"{output}, row {first_row + error.position}, column {name!r}: a column of Parquet holds values of one "
            f"type ({error}). Write .jsonl."
        ) from error


def _source_schema(source: str) -> pa.Schema:
    """Return the types of the cells of a source; empty if it is no Parquet file, and has no types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not _is_parquet(source):
        return pa.schema([])
    schema = pq.read_schema(source)
    # Classes are read, and written, by their names.
    for name in class_names(schema.metadata).keys() & set(schema.names):
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    return schema


def _parquet_type(source_schema: pa.Schema, name: str, values: Sequence[Any], output: str) -> pa.DataType:
    """Return the type of a column in the source, or that of its first values."""
    from samesense.inference.arrow import has_empty_struct, infer_type

    if name in source_schema.names:
        return source_schema.field(name).type
    with _locating(output, 1, name):
        kind = infer_type(values)
    if has_empty_struct(kind):
        raise DataError(f"{output}, column {name!r}: Parquet stores no objects without keys. Write .jsonl.")
    return kind


def _parquet(cells: Iterator[list[Any]], stream: IO[bytes], source: str, output: str) -> None:
    """Write columns with the types in the source or in the first rows.

    A column that is empty there is a column of texts; later values are converted to texts.
    """
    # Loaded for Parquet alone.
    import pyarrow as pa
    import pyarrow.parquet as pq

    from samesense.inference.arrow import to_array

    source_schema = _source_schema(source)
    writer = None
    names = next(cells, [])
    empty = set[str]()
    first_row = 1
    try:
        while (batch := list(islice(cells, BATCH))) or writer is None:  # without rows, an empty table is written
            columns = _batch_columns(names, batch, empty)
            if writer is None:
                types = {name: _parquet_type(source_schema, name, values, output) for name, values in columns.items()}
                # Arrow infers no type from missing values alone.
                empty = {name for name, kind in types.items() if pa.types.is_null(kind)}
                types |= dict.fromkeys(empty, pa.string())
                writer = pq.ParquetWriter(stream, pa.schema(types))
            arrays = []
            for name, values in columns.items():
                with _locating(output, first_row, name):
                    arrays.append(to_array(values, types[name]))
            writer.write_table(pa.Table.from_arrays(arrays, schema=writer.schema))
            first_row += len(batch)
    finally:
        if writer is not None:
            writer.close()
