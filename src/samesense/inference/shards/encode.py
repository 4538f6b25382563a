"""Encode a file of any size into numbered files of vectors, by many workers, and resume after any stop.

    samesense encode models/mine texts.txt --output vectors --shard-size 100000 --workers 16

The folder holds ``shards/00000.npy`` (or ``.parquet``) and so on, in the order of the lines, and ``input.json``, where
each begins in the file; for the rest see :mod:`samesense.execution.sharded`. Workers read their own lines, so that
machines of a cluster need the input and the model, and no disk in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from samesense.errors import DataError
from samesense.execution.progress import progress_bar
from samesense.execution.sharded import sharded_job
from samesense.execution.tasks import Executor
from samesense.hashes import text_hash
from samesense.inference.collection.embedder import Embedder
from samesense.inference.shards import input as inputs
from samesense.inference.shards.work import EncodeWork, Open, ShardSettings, open_embedder, opened

_ANEW = "Delete it and give the same command; it will be made anew."


@dataclass(frozen=True)
class ShardSummary:
    """What there is: vectors, the numbers of each, and files."""

    rows: int
    dim: int
    shards: int


def encode_shards(
    model: str,
    source: Path,
    output: Path,
    settings: ShardSettings,
    executor: Executor,
    *,
    open_as: Open = open_embedder,
) -> ShardSummary:
    """Encode the lines of a plain text file, or resume doing so; shards that are there are not made again.

    On a cluster, the same model and the input at the same path are on each machine. Files are the same, byte for byte,
    whatever the executor. OutputError if the folder holds something else, the shards of another input, of another model
    or with other settings, or another process writes to it; ConfigError, DataError and ModelError as soon as it is
    known that it cannot succeed. After SamesenseError (shards could not be made after all retries) and Ctrl-C, finished
    shards are kept, and the same call resumes.
    """
    path, model = inputs.check_plain(source), _whole(model)
    with sharded_job(output, "encode", f".{settings.format}") as job:
        job.check("settings", settings.identity())
        texts = inputs.recall(output, path) or _cut(path, settings.shard_size)
        job.check("input", _input_part(texts))
        opened.cache_clear()
        embedder = opened(model, settings, open_as)
        job.begin(model=_model_part(model, embedder), input=_input_part(texts), settings=settings.identity())
        inputs.write(output, texts)
        work = EncodeWork(model, texts, settings, open_as, embedder.identity)
        job.make(work, executor, [part.rows for part in texts.parts], unit="text")
        dims = {_dim(job.path(shard), part.rows, settings.format) for shard, part in enumerate(texts.parts)}
        if len(dims) != 1:
            raise DataError(f"The shards in {output} are of different widths: {sorted(dims)}. Delete the folder.")
        job.finish([{"rows": part.rows} for part in texts.parts], dim=min(dims))
    return ShardSummary(texts.rows, min(dims), len(texts.parts))


def _cut(path: Path, shard_size: int) -> inputs.Input:
    with progress_bar("count lines", "B", path.stat().st_size, unit_scale=True) as bar:
        return inputs.cut(path, shard_size, bar.update)


def _whole(model: str) -> str:
    """Return a folder's whole path, as workers may be in another folder; a name as it is."""
    path = Path(model).expanduser()
    return str(path.resolve()) if path.exists() and model != "default" else model


def _input_part(source: inputs.Input) -> dict[str, Any]:
    return {"name": Path(source.path).name, "bytes": source.size, "rows": source.rows, "sha256": source.sha256}


def _model_part(name: str, embedder: Embedder) -> dict[str, Any]:
    return {"name": name, "identity": text_hash(embedder.identity), "precision": embedder.precision}


def _dim(path: Path, rows: int, form: Literal["npy", "parquet"]) -> int:
    """Return the width of the vectors in a shard, reading its header or footer alone."""
    try:
        found, dim = _shape(path, form)
    except (OSError, ValueError, EOFError, KeyError, AttributeError) as error:
        raise DataError(f"{path} is no whole shard ({error}). {_ANEW}") from error
    if found != rows:
        raise DataError(f"{path} must hold {rows} vectors and holds {found}. {_ANEW}")
    return dim


def _shape(path: Path, form: Literal["npy", "parquet"]) -> tuple[int, int]:
    if form == "npy":
        rows, dim = np.load(path, mmap_mode="r", allow_pickle=False).shape
        return int(rows), int(dim)
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return file.metadata.num_rows, file.schema_arrow.field("embedding").type.list_size
