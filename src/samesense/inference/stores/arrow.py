"""A collection as an Arrow table, of id, text, vector and a struct of metadata, and as a Parquet file of it.

DuckDB, Polars, Spark and pandas read that file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from samesense.files import replacing
from samesense.inference.collection.conditions import json_text
from samesense.inference.stores.source import KEY, Rows, Source, there_already
from samesense.places import check_place, holding

_TYPES = {"integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_(), "json": pa.string()}


def schema_of(source: Source) -> pa.Schema:
    """Return the schema; its metadata describe the model, in JSON under ``KEY``."""
    columns = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("vector", pa.list_(pa.float16() if source.half else pa.float32(), source.dim)),
    ]
    if source.fields:  # neither Parquet nor LanceDB can store a struct without fields
        columns.append(pa.field("metadata", pa.struct([(name, _TYPES[kind]) for name, kind in source.fields.items()])))
    return pa.schema(columns, metadata={KEY: json_text(dict(source.model))})


def record_batches(source: Source, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the texts as record batches."""
    for rows in source.batches():
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.ravel()), source.dim)
        columns = [pa.array(rows.ids), pa.array(rows.texts), vectors]
        if source.fields:
            columns.append(pa.array(_structs(rows, source), schema.field("metadata").type))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _structs(rows: Rows, source: Source) -> list[dict[str, Any]]:
    """Return the metadata of rows as Arrow's structs take them."""

    def cell(name: str, value: Any) -> Any:
        if value is None or source.fields[name] != "json":
            return value
        return json_text(value)

    return [{name: cell(name, value) for name, value in metadata.items()} for metadata in rows.metadata]


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write the Parquet file ``output``, whole or not at all; ``table`` is not used."""
    check_place(output)
    schema = schema_of(source)
    with holding(output):
        # Under the lock, as another process may have written the file since.
        if Path(output).exists() and not overwrite:
            raise there_already(output)
        with replacing(output) as beside, pq.ParquetWriter(beside, schema) as writer:
            for batch in record_batches(source, schema):
                writer.write_batch(batch)
