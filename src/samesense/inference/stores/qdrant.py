"""A collection as one of Qdrant, on a server or in a folder of the client's local mode."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ApiException
from qdrant_client.models import Datatype, Distance, VectorParams

from samesense.inference.stores.source import KEY, Source, refusals, there_already


def write(source: Source, output: str, table: str, *, overwrite: bool) -> None:
    """Write a collection of the server at the address ``output``, or else of a folder.

    What the model is comes last: a copy that was cut short has none, and one that failed is removed.
    """
    params = VectorParams(
        size=source.dim, distance=Distance.COSINE, datatype=Datatype.FLOAT16 if source.half else Datatype.FLOAT32
    )
    with refusals("Qdrant", table, ApiException, OSError, RuntimeError, ValueError), closing(_client(output)) as client:
        if client.collection_exists(table):
            if not overwrite:
                raise there_already(f"The collection {table!r}")
            client.delete_collection(table)
        client.create_collection(table, params)
        try:
            _fill(client, source, table)
            client.update_collection(table, metadata={KEY: dict(source.model)})
        except BaseException:
            client.delete_collection(table)
            raise


def _fill(client: Any, source: Source, table: str) -> None:
    for rows in source.batches():
        payloads = [{"text": text, "metadata": known} for text, known in zip(rows.texts, rows.metadata, strict=True)]
        client.upload_collection(table, rows.vectors.astype("float32"), payloads, rows.ids, wait=True)


def _client(output: str) -> Any:
    if "://" in output:
        return QdrantClient(url=output, api_key=os.environ.get("QDRANT_API_KEY"))
    return QdrantClient(path=output)
