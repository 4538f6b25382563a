"""The texts of one or more sources, in order, and the columns kept beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.data.conventions.column_names import spelled_names
from samesense.data.conventions.named_columns import listed, split_columns
from samesense.data.rows.sources import leads_to, refuse_columns
from samesense.data.texts import is_table, read_text_rows
from samesense.errors import ConfigError, DataError
from samesense.failures import first_line
from samesense.types import Row
from samesense.urls import matching

if TYPE_CHECKING:
    import pyarrow as pa

OUTPUT_COLUMNS = ("text", "embedding")
"""Columns of every output."""

ALL = "all"
"""Value of ``keep`` for all columns."""


def expand_patterns(sources: Iterable[str]) -> list[str]:
    """Return the names of files and data sets, with glob patterns expanded.

    DataError for a pattern without a match.
    """
    names: list[str] = []
    for source in sources:
        # A file whose own name holds such a sign is no pattern.
        is_pattern = any(sign in source for sign in "*?[") and not leads_to(source, Path.exists)
        matches = matching(source) if is_pattern else [source]
        if not matches:
            raise DataError(f"{source}: no file matches this pattern. Check it; in a shell it stands in quotes.")
        names += matches
    return names


def kept_columns(names: Sequence[str], text: str, keep: str | None, source: str) -> list[str]:
    """Return the columns to keep: those in ``keep``, or by default a column named id.

    Args:
        names: the columns of a table.
        text: the column of texts.
        keep: names separated by commas, ``"all"``, or ``""`` for none.
        source: name of the table in messages.

    Raises:
        ConfigError: for a column with the name of one that every output has.
        DataError: if there is no such column.
    """
    if keep is None:
        columns = [name for name in names if name.strip().casefold() == "id" and name != text]
    elif keep == ALL:
        columns = [name for name in names if name != text]
    else:
        columns = [_find_column(names, name, source) for name in split_columns(keep) if name]
    taken = [name for name in columns if name in OUTPUT_COLUMNS]
    if taken:
        raise ConfigError(
            f"{source}: the output has columns {' and '.join(OUTPUT_COLUMNS)} of its own, and `keep` adds "
            f"{taken[0]!r}. Leave it out, or rename it."
        )
    return list(dict.fromkeys(columns))


def _find_column(names: Sequence[str], name: str, source: str) -> str:
    column = name if name in names else spelled_names(names).get(name.casefold())
    if column is None:
        raise DataError(
            f"{source}: `keep` names {name!r}, which this source does not have. Its columns: {listed(names)}."
        )
    return column


def schema_of(rows: Sequence[Row], columns: Sequence[str], source: str) -> pa.Schema:
    """Return the types of the kept columns; a column of texts and numbers is a column of texts.

    DataError if a column mixes other types, such as lists and numbers.
    """
    # Loaded where columns are kept beside the texts, here and below.
    import pyarrow as pa

    from samesense.inference.arrow import MisfitError

    fields = []
    for name in columns:
        try:
            fields.append((name, _type([cells.get(name) for _, cells in rows])))
        except MisfitError as error:
            raise _several_types(f"{source}, row {rows[error.position][0]}, column {name!r}", error) from error
    return pa.schema(fields)


def _type(values: list[Any]) -> pa.DataType:
    """Return the type of a column: string if it holds texts, and at most numbers beside them."""
    import pyarrow as pa

    from samesense.inference.arrow import infer_type

    plain = all(value is None or isinstance(value, str | int | float) for value in values)
    if plain and any(isinstance(value, str) for value in values):
        return pa.string()
    return infer_type(values)


def join_schemas(schemas: Iterable[pa.Schema], source: str) -> pa.Schema:
    """Return a schema that fits all; numbers become texts where another schema has texts."""
    import pyarrow as pa

    from samesense.inference.arrow import with_unsigned

    all_schemas = list(schemas)
    texts = {field.name for schema in all_schemas for field in schema if field.type == pa.string()}
    widened = [
        pa.schema([_as_text(field) if field.name in texts else field for field in schema]) for schema in all_schemas
    ]
    try:
        joined = pa.unify_schemas(widened, promote_options="permissive")
    except pa.ArrowException as error:
        raise _several_types(source, error) from error
    fields = []
    for field in joined:
        parts = [schema.field(field.name).type for schema in widened if field.name in schema.names]
        fields.append(field.with_type(with_unsigned(field.type, parts)))
    return pa.schema(fields)


def _as_text(field: pa.Field) -> pa.Field:
    import pyarrow as pa

    number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_boolean(field.type)
    if not number:
        return field
    return pa.field(field.name, pa.string())


def check_parquet(schema: pa.Schema, source: str) -> None:
    """Raise DataError for a column that Parquet cannot store, before any text is encoded."""
    from samesense.inference.arrow import has_empty_struct

    for field in schema:
        if has_empty_struct(field.type):
            raise DataError(
                f"{source}, column {field.name!r}: Parquet stores no objects without keys. Leave it out of `keep`, or "
                "write JSON lines."
            )


def table_of(rows: Sequence[Row], schema: pa.Schema, source: str) -> pa.Table:
    """Return the cells of rows as a table of this schema; missing cells are null.

    DataError, with ``source`` and the row, for a cell that its column does not hold as it is.
    """
    import pyarrow as pa

    from samesense.inference.arrow import MisfitError, to_array

    arrays = []
    for field in schema:
        cells = [row_cells.get(field.name) for _, row_cells in rows]
        if field.type == pa.string():
            cells = [None if cell is None else str(cell) for cell in cells]
        try:
            arrays.append(to_array(cells, field.type))
        except MisfitError as error:
            location = f"{source}, row {rows[error.position][0]}, column {field.name!r}"
            raise _several_types(location, error) from error
    return pa.Table.from_arrays(arrays, schema=schema)


def _several_types(source: str, error: Exception) -> DataError:
    return DataError(
        f"{source}: a column that is kept holds values of one type ({first_line(error)}). Leave it out of "
        "`keep`, or write its values as texts."
    )


def read_texts_with_columns(
    sources: Sequence[str], columns: str | None, keep: str | None, *, drop_bad_rows: bool = False
) -> tuple[list[str], pa.Table | None]:
    """Return the texts of several sources, in order, and the columns kept beside them, ``None`` if there are none.

    Args:
        sources: sources as for :func:`~samesense.data.texts.read_text_rows`.
        columns: name of the column of texts in tables.
        keep: see :func:`kept_columns`.
        drop_bad_rows: leave out rows without a text, and log which.
    """
    texts: list[str] = []
    rows: list[Sequence[Row]] = []
    schemas: list[pa.Schema] = []
    for source in sources:
        if not is_table(source):
            refuse_columns(source, columns=columns, keep=keep)
        text_rows = read_text_rows(source, columns, drop_bad_rows=drop_bad_rows)
        names = kept_columns(text_rows.names, text_rows.column, keep, source)
        texts += text_rows.texts
        rows.append([(number, {name: cells.get(name) for name in names}) for number, cells in text_rows.rows])
        schemas.append(schema_of(text_rows.rows, names, source))
    if not any(map(len, schemas)):
        return texts, None
    import pyarrow as pa

    schema = join_schemas(schemas, f"{len(sources)} sources")
    tables = [table_of(source_rows, schema, source) for source, source_rows in zip(sources, rows, strict=True)]
    return texts, pa.concat_tables(tables)
