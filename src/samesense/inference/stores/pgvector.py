"""A collection as a table of Postgres with the extension pgvector."""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from samesense.inference.collection.conditions import json_text
from samesense.inference.stores.source import KEY, Source, refusals, there_already


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write a table of the database ``output`` in one transaction; the table's comment describes the model."""
    name = Identifier(table)
    columns = SQL("id bigint PRIMARY KEY, text text NOT NULL, metadata jsonb NOT NULL, vector {}({}) NOT NULL").format(
        SQL("halfvec" if source.half else "vector"), Literal(source.dim)
    )
    with refusals("Postgres", table, psycopg.Error), psycopg.connect(output) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector")
        if overwrite:
            database.execute(SQL("DROP TABLE IF EXISTS {}").format(name))
        # to_regclass would put a name without quotes into lower case.
        elif database.execute("SELECT to_regclass(quote_ident(%s))", (table,)).fetchone() != (None,):
            raise there_already(f"The table {table!r}")
        database.execute(SQL("CREATE TABLE {} ({})").format(name, columns))
        _fill(database, source, name)
        # COMMENT takes no parameters, so that the text must be a literal.
        comment = Literal(json_text({KEY: dict(source.model)}))
        database.execute(SQL("COMMENT ON TABLE {} IS {}").format(name, comment))


def _fill(database: psycopg.Connection, source: Source, name: Identifier) -> None:
    copy_rows = SQL("COPY {} (id, text, metadata, vector) FROM STDIN").format(name)
    with database.cursor().copy(copy_rows) as copy:
        for rows in source.batches():
            vectors = (str(vector.tolist()) for vector in rows.vectors)
            for row in zip(rows.ids, rows.texts, map(json_text, rows.metadata), vectors, strict=True):
                copy.write_row(row)
