"""A collection as a Qdrant collection, on a server or in a folder of the client's local mode."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException
from qdrant_client.models import Datatype, Distance, VectorParams

from samesense.errors import OutputError
from samesense.inference.stores.source import KEY, Source, refusals, there_already

WRITER = "samesense_writer"
"""Key of the metadata that says, until a collection is complete, which process writes it."""


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write a collection to the server at the address ``output``, or to a folder.

    The description of the model is written last: an interrupted copy has none, and a failed one is removed.
    """
    params = VectorParams(
        size=source.dim, distance=Distance.COSINE, datatype=Datatype.FLOAT16 if source.half else Datatype.FLOAT32
    )
    with refusals("Qdrant", table, ApiException, OSError, RuntimeError, ValueError), closing(_client(output)) as client:
        if client.collection_exists(table):
            if not overwrite:
                raise there_already(f"The collection {table!r}")
            client.delete_collection(table)
        mark = {WRITER: secrets.token_hex(8)}
        client.create_collection(table, params, metadata=mark)
        try:
            _fill(client, source, table)
        except BaseException:
            if _has_mark(client, table, mark):
                client.delete_collection(table)
            raise
        if not _has_mark(client, table, mark):
            raise OutputError(
                f"A collection of Qdrant has one writer at a time, and another process replaced {table!r} while this "
                "one wrote to it: the texts of both may be in it. Write it again."
            )
        client.update_collection(table, metadata={**dict.fromkeys(mark), KEY: dict(source.model)})


def _has_mark(client: Any, table: str, mark: Mapping[str, str]) -> bool:
    """Return whether a collection still has the mark with which it was made: no other process has replaced it."""
    if not client.collection_exists(table):
        return False
    metadata = client.get_collection(table).config.metadata or {}
    return mark.items() <= metadata.items()


def _fill(client: Any, source: Source, table: str) -> None:
    for rows in source.batches():
        payloads = [
            {"text": text, "metadata": metadata} for text, metadata in zip(rows.texts, rows.metadata, strict=True)
        ]
        client.upload_collection(table, rows.vectors.astype("float32"), payloads, rows.ids, wait=True)


def _client(output: str) -> Any:
    if "://" in output:
        return QdrantClient(url=output, api_key=os.environ.get("QDRANT_API_KEY"))
    return QdrantClient(path=output)
