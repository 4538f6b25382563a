"""One shard of a file: read, encoded, and turned into the bytes of its own file, by any worker."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from samesense.encoder.cosine import checked_rows
from samesense.errors import ModelError
from samesense.execution.sharded import Shard
from samesense.inference.collection.embedder import Embedder, embedder_of
from samesense.inference.models.backends import BackendOption
from samesense.inference.models.load import load
from samesense.inference.shards.input import Input
from samesense.inference.stream import write_rows
from samesense.types import Precision


class ShardSettings(BaseModel):
    """What decides the vectors of a file besides model and texts, and how they lie on the disk."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    shard_size: int = Field(100_000, ge=1, description="texts of a file, and what a kill may cost a worker")
    format: Literal["npy", "parquet"] = Field("npy", description="npy: a matrix; parquet: texts and vectors")
    normalize: bool = Field(False, description="scale every vector to unit length")
    backend: BackendOption = Field("auto", description="what computes; auto is onnx for an exported folder, else torch")
    precision: Precision = Field("auto", description="arithmetic of torch")
    deterministic: bool = Field(False, description="bits of a vector depend on its text alone")

    def identity(self) -> dict[str, Any]:
        """Return what a model's own identity does not say, as JSON types."""
        return self.model_dump(mode="json", exclude={"backend", "precision"})


Open = Callable[[str, ShardSettings], Embedder]
"""Opens a model to compute on one thread; importable by its name."""


def open_embedder(model: str, settings: ShardSettings) -> Embedder:
    """Open a model to compute on one thread of the processor, since the last bits depend on the number of threads."""
    opened = load(
        model, backend=settings.backend, precision=settings.precision, device="cpu",
        deterministic=settings.deterministic, threads=1,
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
