"""A collection as a table of LanceDB."""

from __future__ import annotations

from pathlib import Path

import lancedb
import pyarrow as pa

from samesense.inference.stores.arrow import record_batches, schema_of
from samesense.inference.stores.source import Source, refusals, there_already
from samesense.places import holding
from samesense.urls import is_url, local


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write a table of the database ``output``, a folder or an address; readers see it once it is complete."""
    schema = schema_of(source)
    # Two writers of one table replace each other's, or panic. An object store has no locks.
    held = None if is_url(output) else Path(local(output)).expanduser() / f"{table}.lance"
    with refusals("LanceDB", table, OSError, RuntimeError, ValueError), holding(held):
        database = lancedb.connect(output)
        if not overwrite and _is_there(database, table):
            raise there_already(f"The table {table!r}")
        batches = pa.RecordBatchReader.from_batches(schema, record_batches(source, schema))
        database.create_table(table, batches, schema=schema, mode="overwrite" if overwrite else "create")


def _is_there(database: lancedb.DBConnection, table: str) -> bool:
    try:
        database.open_table(table)
    except ValueError:  # LanceDB's error for a missing table
        return False
    return True
