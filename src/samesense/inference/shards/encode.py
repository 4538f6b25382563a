"""Encode files of any size into shards, numbered files of vectors, by many workers; any stop can be resumed.

    samesense encode models/mine texts.txt --output vectors --shard-size 100000 --workers 16

The folder holds ``shards/00000.npy`` (or ``.parquet``) and so on, in the order of the rows, and ``input.json`` with the
position of each shard in the input files; see also :mod:`samesense.execution.shards.job`. Workers read their own rows,
so that the machines of a cluster need the input and the model, but no shared disk.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from pydantic import Field
from threadpoolctl import threadpool_limits

from samesense.choices import BackendOption, Chunk
from samesense.encoder.cosine import checked_rows, unit
from samesense.encoder.vectors.quantize import Quantizer, VectorType
from samesense.errors import DataError, ModelError
from samesense.execution.progress import progress_bar, stage
from samesense.execution.settings import Settings
from samesense.execution.shards.executors import OnRay
from samesense.execution.shards.folders import Folder
from samesense.execution.shards.job import Shard, ShardedJob, sharded_job
from samesense.execution.shards.tasks import Executor
from samesense.execution.threads import torch_threads
from samesense.execution.unread import counted, note
from samesense.failures import DAMAGED, abridged
from samesense.hashes import text_hash
from samesense.inference.collection.embedder import Embedder, embedder_of
from samesense.inference.columns import expand_patterns
from samesense.inference.models.load import load
from samesense.inference.names import settled_name, split_kind
from samesense.inference.output import Encoded, check_format, write_rows
from samesense.inference.shards import input as inputs
from samesense.inference.shards.input import Input
from samesense.types import Embeddings, Precision, TaskName

VECTORS = "vectors.json"
"""File of the folder that describes how vectors are stored, if not in float32."""

SAMPLE = 4096
"""Number of texts on which the ranges of int8 are fitted."""


class ShardSettings(Settings):
    """Options that the vectors depend on, besides model and texts, and how they are stored."""

    shard_size: int = Field(100_000, ge=1, description="texts in a file, and the most that a worker may lose in a kill")
    format: Literal["npy", "parquet"] = Field("npy", description="npy: a matrix; parquet: columns, texts among them")
    columns: str | None = Field(None, description="column of tables that holds the texts")
    keep: str | None = Field(None, description="columns of tables that parquet has too [id, if there is one]")
    vectors: VectorType = Field("float32", description="how vectors are stored")
    chunk: Chunk | None = Field(None, description="of texts longer than what the model reads: what of their windows")
    normalize: bool = Field(False, description="scale every vector to unit length")
    backend: BackendOption = Field("auto", description="what computes; auto is onnx for an exported folder, else torch")
    precision: Precision = Field("auto", description="arithmetic of torch; auto is bfloat16 on a GPU")
    device: str = Field("cpu", description="torch device of every worker")
    deterministic: bool = Field(False, description="bits of a vector depend on its text alone")
    prompt: str | None = Field(None, description="read before every text [the model's default]")
    task: TaskName | None = Field(None, description="queries or documents, for a model that tells them apart")

    @property
    def on_gpu(self) -> bool:
        """Whether a worker uses a GPU."""
        return self.device != "cpu"

    @property
    def arithmetic(self) -> Precision:
        """The precision; on a GPU, ``auto`` is bfloat16, so that it is the same on all machines of a cluster."""
        if self.on_gpu and self.precision == "auto":
            return "bfloat16"
        return self.precision

    def identity(self) -> dict[str, Any]:
        """Return the settings that are not part of the model's identity, as JSON types."""
        return self.model_dump(mode="json", exclude={"backend", "precision", "prompt"}, exclude_none=True)


Open = Callable[[str, ShardSettings], Embedder]
"""Opens a model to compute on one thread; importable by its name."""


def open_on_one_thread(model: str, settings: ShardSettings) -> Embedder:
    """Open a model on its device, on the CPU with one thread, as the last bits depend on the number of threads.

    Shards do not use an Origin's cache of other shards either, so that their bytes are reproducible.
    """
    kind = split_kind(model)[0]
    # An Origin scores in the precision in which it was made, and warns of another.
    precision = settings.precision if kind else settings.arithmetic
    loaded = load(
        model,
        backend=settings.backend,
        precision=precision,
        device=settings.device,
        deterministic=settings.deterministic,
        threads=None if settings.on_gpu else 1,
        prompt=settings.prompt,
    )
    # An Origin does not limit its threads itself.
    threads = 1 if kind == "origin" and not settings.on_gpu else None

    def encode(texts: Sequence[str]) -> Embeddings:
        with torch_threads(threads), threadpool_limits(threads, user_api="blas"):
            rows = checked_rows(np.asarray(loaded.encode_uncached(texts, task=settings.task), dtype=np.float32), texts)
        if settings.normalize:
            return unit(rows)
        return rows

    return replace(embedder_of(loaded, model), encode=encode, windows=partial(loaded.windows, task=settings.task))


@dataclass(frozen=True)
class EncodeWork:
    """Encodes shards; it can be pickled, and opens the model once in each process."""

    model: str  # folder or name
    source: Input  # the texts
    settings: ShardSettings  # options of the encoding
    open: Open = open_on_one_thread  # opens the model
    expected: str | None = None  # identity that the model must have; None for any
    quantizer: Quantizer | None = None  # how vectors are stored; None for float32

    def __call__(self, shard: int) -> Shard:
        """Return the encoded shard of this number."""
        started = time.perf_counter()
        embedder = open_once(self.model, self.settings, self.open)
        if self.expected not in (None, embedder.identity):
            raise ModelError(
                f"Every worker must have the same model; {self.model} is another one here, or runs in another "
                f"precision ({embedder.precision}). Copy its folder to this machine again, or state the precision."
            )
        texts, columns = self.source.read(shard)
        with counted(apart=True) as unread:
            rows, figures = embed_texts(embedder, texts, self.settings.chunk)
        unread.name_rows(texts)
        quantizer = self.quantizer or Quantizer("float32", rows.shape[1])
        sink = io.BytesIO()
        write_rows(Encoded(texts, quantizer.apply(rows), quantizer, columns), sink, self.settings.format)
        return Shard(sink.getvalue(), len(rows), time.perf_counter() - started, figures, unread.summary)


def embed_texts(embedder: Embedder, texts: list[str], chunk: Chunk | None) -> tuple[Embeddings, dict[str, int]]:
    """Return the vectors of texts, ``(texts, dim)``, and with ``chunk`` the numbers of long texts and windows."""
    if chunk is None:
        return checked_rows(np.asarray(embedder.encode(texts), dtype=np.float32), texts), {}
    windows = embedder.windows(texts)
    rows = checked_rows(np.asarray(embedder.encode(windows.texts), dtype=np.float32), windows.texts)
    return windows.join(rows, chunk), windows.figures


@lru_cache(maxsize=1)
def open_once(model: str, settings: ShardSettings, open_as: Open) -> Embedder:
    """Return a model, opened once in each process."""
    return open_as(model, settings)


_FIX = "Delete it and give the same command; it will be made again."


@dataclass(frozen=True)
class ShardSummary:
    """Counts: vectors, their dimensions, files, and with ``chunk`` the numbers of long texts and of their windows."""

    rows: int
    dim: int
    shards: int
    figures: dict[str, int]


def encode_shards(
    model: str,
    sources: Sequence[str],
    output: str | Path,
    settings: ShardSettings,
    executor: Executor,
    *,
    open_as: Open = open_on_one_thread,
) -> ShardSummary:
    """Encode files of texts into shards, or resume; existing shards are not encoded again.

    Sources are text files, tables, glob patterns, and URLs; the output is a folder or the URL of one. On a cluster,
    each machine needs the same model, and the input at the same path. The files are the same, byte for byte, with every
    executor. OutputError if the folder holds something else, the shards of another input, of another model or with
    other settings, or another process writes to it; ConfigError, DataError and ModelError as early as possible. After
    SamesenseError (shards failed after all retries) and Ctrl-C, finished shards are kept, and the same call resumes.
    """
    check_format(settings.format, settings.vectors, settings.keep)
    paths = inputs.check_files(expand_patterns(sources))
    # Workers may run in another folder.
    model = settled_name(model)
    with sharded_job(output, "encode", f".{settings.format}") as job:
        # Before the model is opened, which may take a minute.
        job.check("settings", settings.identity())
        recorded = job.folder.json(inputs.FILE) if job.folder.exists(inputs.FILE) else None
        texts = inputs.recall(recorded, paths) or _split_input(paths, settings)
        job.check("input", _input_part(texts))
        # The folder may hold another model than at the last call of this process.
        open_once.cache_clear()
        embedder = open_once(model, _driver_settings(settings, executor), open_as)
        described = {"name": model, "identity": text_hash(embedder.identity), "precision": embedder.precision}
        job.begin(model=described, input=_input_part(texts), settings=settings.identity())
        job.folder.write(inputs.FILE, json.dumps(asdict(texts)).encode())
        quantizer = _quantizer(job.folder, embedder, texts, settings)
        work = EncodeWork(model, texts, settings, open_as, embedder.identity, quantizer)
        job.make(work, executor, [entry.rows for entry in texts.parts], unit="text")
        dims = {_dim(job, shard, entry.rows, settings) for shard, entry in enumerate(texts.parts)}
        if len(dims) != 1:
            raise DataError(f"The shards in {output} are of different widths: {sorted(dims)}. Delete the folder.")
        # A binary vector is stored in an eighth of its dimensions.
        dim = quantizer.dim if quantizer is not None else min(dims)
        sizes = [entry.rows for entry in texts.parts]
        cost = job.finish([{"rows": rows} for rows in sizes], dim=dim)
        note(job.unread(texts.rows, sizes), embedder)
    figures = {}
    if settings.chunk:
        figures = {name: int(cost.get(name, 0)) for name in ("cut", "windows")}
    return ShardSummary(texts.rows, dim, len(texts.parts), figures)


def _driver_settings(settings: ShardSettings, executor: Executor) -> ShardSettings:
    """Return the settings by which the driver opens the model: those of workers, but on the CPU if it has no GPU."""
    if not (settings.on_gpu and isinstance(executor, OnRay)):
        return settings
    backend = settings.backend
    # This machine opens what the workers open, and on a GPU that is torch.
    if backend == "auto":
        backend = "torch"
    return settings.model_copy(update={"device": "cpu", "precision": settings.arithmetic, "backend": backend})


def _split_input(paths: Sequence[str], settings: ShardSettings) -> Input:
    keep = settings.keep if settings.format == "parquet" else ""
    with progress_bar("read", "text") as bar:
        return inputs.split_shards(paths, settings.shard_size, settings.columns, keep, bar.update)


def _quantizer(folder: Folder, embedder: Embedder, texts: Input, settings: ShardSettings) -> Quantizer | None:
    """Return the quantizer of all shards, ``None`` for float32; it is stored in the folder."""
    if settings.vectors == "float32":
        return None
    if folder.exists(VECTORS):
        return Quantizer.from_json(folder.read(VECTORS), str(folder.path(VECTORS)))
    sample = texts.sample(SAMPLE if settings.vectors == "int8" else 1)
    with stage(f"ranges of {len(sample)} texts"):
        with counted(apart=True):  # truncation is counted when the shards are encoded
            rows = embed_texts(embedder, sample, settings.chunk)[0]
        quantizer = Quantizer.fit(settings.vectors, rows)
    folder.write(VECTORS, quantizer.to_json())
    return quantizer


def _input_part(source: Input) -> dict[str, Any]:
    names = [file.path.rpartition("/")[2] for file in source.files]
    size = sum(file.size for file in source.files)
    return {
        "name": abridged(names, 3),
        "files": len(names),
        "bytes": size,
        "rows": source.rows,
        "sha256": source.sha256,
    }


def _dim(job: ShardedJob, shard: int, rows: int, settings: ShardSettings) -> int:
    """Return the dimensions of the vectors in a shard, reading only its header or footer."""
    path = job.folder.path(job.name(shard))
    try:
        with job.folder.open(job.name(shard)) as stream:
            count, dim = _shape(stream, settings.format)
    except DAMAGED as error:
        raise DataError(f"{path} is no whole shard ({error}). {_FIX}") from error
    if count != rows:
        raise DataError(f"{path} must hold {rows} vectors and holds {count}. {_FIX}")
    return dim


def _shape(stream: IO[bytes], form: Literal["npy", "parquet"]) -> tuple[int, int]:
    """Return the number and dimensions of the vectors in a file; ValueError if an npy file is incomplete."""
    if form == "npy":
        npy.read_magic(stream)
        (rows, dim), _, dtype = npy.read_array_header_1_0(stream)
        content = stream.tell()
        # NumPy opens a file that was cut off without an error.
        if stream.seek(0, io.SEEK_END) - content != rows * dim * dtype.itemsize:
            raise ValueError("it does not hold what its head says")
        return rows, dim
    # Loaded for Parquet alone.
    import pyarrow.parquet as pq

    with pq.ParquetFile(stream) as file:
        return file.metadata.num_rows, file.schema_arrow.field("embedding").type.list_size
