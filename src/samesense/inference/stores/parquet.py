"""A collection as a Parquet file, which DuckDB, Polars, Spark and pandas read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from samesense.files import replacing
from samesense.inference.stores.arrow import record_batches, schema_of
from samesense.inference.stores.source import Source, there_already
from samesense.places import check_place, holding


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write the file ``output``, whole or not at all; ``table`` is not used."""
    check_place(output)
    schema = schema_of(source)
    with holding(output):
        # Under the lock, as another process may have written the file since.
        if Path(output).exists() and not overwrite:
            raise there_already(output)
        with replacing(output) as beside, pq.ParquetWriter(beside, schema) as writer:
            for batch in record_batches(source, schema):
                writer.write_batch(batch)
