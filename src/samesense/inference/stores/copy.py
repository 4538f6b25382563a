"""Copy a collection into a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from samesense.errors import ConfigError, DataError, MissingExtraError, OutputError
from samesense.inference.collection.reader import Reader
from samesense.inference.stores.source import Write, source_of
from samesense.places import check_suffix

StoreName = Literal["parquet", "lancedb", "qdrant", "pgvector"]

_PACKAGES = {"parquet": "pyarrow", "lancedb": "lancedb", "qdrant": "qdrant-client", "pgvector": "psycopg"}
"""Package of each store; the extra has the store's name."""


def copy(
    folder: str | Path,
    *,
    to: StoreName,
    output: str | Path,
    table: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Copy ids, texts, metadata, vectors and the model's identity into a store; return the number of texts.

    The copy is of one state of the collection, and is read in batches.

    Args:
        folder: the collection.
        to: kind of the store.
        output: a Parquet file; a folder or address of LanceDB or Qdrant; the address of a Postgres database.
        table: name of the table, in Qdrant of the collection; by default the folder's name without its suffix.
        overwrite: replace an existing table or file.
        on_progress: called with the number of texts just copied.

    Raises:
        ConfigError: if ``table`` is given for a file, which has none, or a Parquet file is to end otherwise.
        DataError: if the folder holds no collection, or one without a text.
        MissingExtraError: if the store's package is not installed.
        OutputError: if the table exists and ``overwrite`` is not given, the output is inside the collection, or the
            store fails.
    """
    MissingExtraError.check(to, _PACKAGES[to])
    if to == "parquet" and table is not None:
        raise ConfigError("A Parquet file holds one table without a name; leave `table` out.")
    on_disk = to != "pgvector" and "://" not in str(output)
    if on_disk and Path(output).resolve().is_relative_to(Path(folder).resolve()):
        raise OutputError(f"{output} lies in {folder}, which is read here. Name an output outside of it.")
    if to == "parquet" and not Path(output).is_dir():
        check_suffix(output, "A file of Parquet", [".parquet"])
    write = _writer(to)
    reader = Reader(Path(folder))
    name = table or Path(folder).resolve().stem
    with reader.held() as about:
        if not (count := reader.count()):
            raise DataError(f"{folder} holds no text to copy; at least one is needed.")
        write(source_of(reader, about, on_progress), str(output), name, overwrite=overwrite)
        return count


def _writer(store: StoreName) -> Write:
    """Return what writes into a store; imported here, as only its package may be installed."""
    match store:
        case "parquet":
            # Each store is an extra of its own: only the one that is written to is imported.
            from samesense.inference.stores.arrow import write
        case "lancedb":
            from samesense.inference.stores.lance import write
        case "qdrant":
            from samesense.inference.stores.qdrant import write
        case "pgvector":
            from samesense.inference.stores.pgvector import write
    return write
