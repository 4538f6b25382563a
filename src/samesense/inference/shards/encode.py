"""Encode a file of any size into numbered files of vectors, by many workers, and resume after any stop.

    samesense encode models/mine texts.txt --output vectors --shard-size 100000 --workers 16

The folder holds ``shards/00000.npy`` (or ``.parquet``) and so on, in the order of the lines, and ``input.json``, where
each begins in the file; for the rest see :mod:`samesense.execution.sharded`. Workers read their own lines, so that
machines of a cluster need the input and the model, and no disk in common.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from samesense.encoder.cosine import checked_rows
from samesense.errors import DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.execution.settings import Settings
from samesense.execution.sharded import Shard, sharded_job
from samesense.execution.tasks import Executor
from samesense.failures import DAMAGED
from samesense.hashes import text_hash
from samesense.inference.collection.embedder import Embedder, embedder_of
from samesense.inference.models.backends import BackendOption
from samesense.inference.models.load import load
from samesense.inference.names import split_maps
from samesense.inference.shards import input as inputs
from samesense.inference.shards.input import Input
from samesense.inference.stream import write_rows
from samesense.types import Precision


class ShardSettings(Settings):
    """What decides the vectors of a file besides model and texts, and how they lie on the disk."""

    shard_size: int = Field(100_000, ge=1, description="texts of a file, and what a kill may cost a worker")
    format: Literal["npy", "parquet"] = Field("npy", description="npy: a matrix; parquet: texts and vectors")
    normalize: bool = Field(False, description="scale every vector to unit length")
    backend: BackendOption = Field("auto", description="what computes; auto is onnx for an exported folder, else torch")
    precision: Precision = Field("auto", description="arithmetic of torch")
    deterministic: bool = Field(False, description="bits of a vector depend on its text alone")
    prompt: str | None = Field(None, description="read before every text [the model's default]")

    def identity(self) -> dict[str, Any]:
        """Return what a model's own identity does not say, as JSON types."""
        return self.model_dump(mode="json", exclude={"backend", "precision", "prompt"})


Open = Callable[[str, ShardSettings], Embedder]
"""Opens a model to compute on one thread; importable by its name."""


def open_embedder(model: str, settings: ShardSettings) -> Embedder:
    """Open a model to compute on one thread of the processor, since the last bits depend on the number of threads."""
    opened = load(
        model, backend=settings.backend, precision=settings.precision, device="cpu",
        deterministic=settings.deterministic, threads=1, prompt=settings.prompt,
    )  # fmt: skip
    return replace(embedder_of(opened, model), encode=partial(opened.encode, normalize=settings.normalize))


@dataclass(frozen=True)
class EncodeWork:
    """Makes shards; picklable, opens the model where it runs, once in a process."""

    model: str  # folder or name
    source: Input  # the texts
    settings: ShardSettings  # of the encoding
    open: Open = open_embedder  # opens the model
    expected: str | None = None  # identity that the model must have; None for any

    def __call__(self, shard: int) -> Shard:
        """Make a shard."""
        started = time.perf_counter()
        embedder = opened(self.model, self.settings, self.open)
        if self.expected not in (None, embedder.identity):
            raise ModelError(
                f"Every worker must have the same model; {self.model} is another one here, or runs in another "
                f"precision ({embedder.precision}). Copy its folder to this machine again, or state the precision."
            )
        texts = self.source.read(shard)
        rows = checked_rows(np.asarray(embedder.encode(texts), dtype=np.float32), texts)
        sink = io.BytesIO()
        write_rows(rows, texts, sink, self.settings.format)
        return Shard(sink.getvalue(), len(rows), time.perf_counter() - started)


@lru_cache(maxsize=1)
def opened(model: str, settings: ShardSettings, open_as: Open) -> Embedder:
    """Return a model, opened once in a process."""
    return open_as(model, settings)


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
    with progress_bar("count lines", "B", path.stat().st_size) as bar:
        return inputs.cut(path, shard_size, bar.update)


def _whole(model: str) -> str:
    """Return a folder's whole path, as workers may be in another folder; a name as it is."""
    base, maps = split_maps(model)
    path = Path(base).expanduser()
    return f"{path.resolve()}{maps}" if path.exists() and base != "default" else model


def _input_part(source: inputs.Input) -> dict[str, Any]:
    return {"name": Path(source.path).name, "bytes": source.size, "rows": source.rows, "sha256": source.sha256}


def _model_part(name: str, embedder: Embedder) -> dict[str, Any]:
    return {"name": name, "identity": text_hash(embedder.identity), "precision": embedder.precision}


def _dim(path: Path, rows: int, form: Literal["npy", "parquet"]) -> int:
    """Return the width of the vectors in a shard, reading its header or footer alone."""
    try:
        found, dim = _shape(path, form)
    except DAMAGED as error:
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
