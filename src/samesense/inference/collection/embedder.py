"""The model of a collection: an encoder with an identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.encoder.embedding_blocks import Look
from samesense.encoder.windows import Reading, Windows, cut_into_windows
from samesense.errors import ModelError
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.names import settled_name
from samesense.inference.onnx.format import is_graph_backend
from samesense.inference.plain.files import model_files_hash
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings, Encode

if TYPE_CHECKING:
    from samesense.inference.collection.store import About


@dataclass(frozen=True)
class Embedder:
    """An encoder with its identity.

    Attributes:
        encode: texts in, one embedding a text out.
        identity: everything that a vector depends on besides its text; for a loaded model the result of
            :func:`~samesense.encoder.saving.storage.model_identity`. ModelError for an empty one.
        name: name of the model; it is opened by this name unless another is given.
        precision: arithmetic, for display and for opening the model again.
        windows: cuts texts into windows that the encoder reads without truncation.
        look: counts truncated texts among those whose vectors are cached.
        encode_queries: encodes queries, where they are encoded differently from documents.
        reading: how much of a text the model reads, ``None`` for all of it.
        files: hash of the model's files, which identifies it without torch; empty unless the model is in files, in
            float32.
    """

    encode: Encode
    identity: str
    name: str = ""
    precision: str = "float32"
    windows: Callable[[Sequence[str]], Windows] = cut_into_windows
    look: Look | None = None
    encode_queries: Encode | None = None
    reading: Reading | None = None
    files: str = ""

    def __post_init__(self) -> None:
        if not self.identity:
            raise ModelError("A collection is kept for a model with an identity; received an empty one.")

    def unit(self, texts: list[str]) -> Embeddings:
        """Return the embeddings of ``texts`` as unit rows, ``(texts, dim)``.

        Raises:
            ModelError: if the encoder does not give one finite row a text that is not all zeros.
        """
        return _unit(self.encode, texts)

    def unit_queries(self, texts: list[str]) -> Embeddings:
        """Return the embeddings of queries as unit rows, ``(texts, dim)``."""
        return _unit(self.encode_queries or self.encode, texts)


def _unit(encode: Encode, texts: list[str]) -> Embeddings:
    return unit_rows(nonzero_rows(checked_rows(np.asarray(encode(texts)), texts), texts))


def open_embedder(name: str, precision: str = "auto", *, identity: str | None = None) -> Embedder:
    """Open a model for a collection.

    Args:
        name: name of the model.
        precision: arithmetic, or the backend of an exported folder.
        identity: identity that a collection, or a copy of it in a store, keeps; ModelError for a model with another.
    """
    options: dict[str, Any] = {"backend" if is_graph_backend(precision) else "precision": precision}
    files = model_files_hash(name)  # before loading: if the files change meanwhile, the hash does not match them
    # A collection keeps the name, and may be queried from another folder.
    embedder = embedder_of(load(name, **options), settled_name(name))
    if embedder.precision == "float32":
        embedder = replace(embedder, files=files)
    if identity not in (None, embedder.identity):
        raise ModelError(
            f"Vectors are searched with the model that made them; {name!r} in {embedder.precision} differs from it in "
            "weights, settings or precision. Use that model, or encode the texts again."
        )
    return embedder


def open_for_queries(name: str, built: About, texts: Sequence[str]) -> Embedder:
    """Open a model for queries of a collection, without torch if its files are those of the collection's model.

    Different files may still be the same model: torch is needed to compute its identity, which the collection checks.
    """
    # NumPy computes in float32, which are the vectors of a collection in float32 only.
    if built.files and built.precision == "float32":
        model = load(name, precision="float32", texts=texts)
        if model.backend == "numpy" and model_files_hash(name) == built.files:
            return embedder_of(model, name, identity=built.identity)
    return open_embedder(name, built.precision)


def embedder_of(model: Model, name: str, *, identity: str | None = None) -> Embedder:
    """Return a loaded model as an embedder; ModelError for a cross-encoder.

    ``identity`` is the model's, if it is known; ``None`` computes it, which reads all weights.
    """
    if identity is None:
        identity = model.identity
    backend_precision = model.backend.removeprefix("torch-") if model.backend != "numpy" else ""
    # A map has no backend; its precision is in the protocol.
    protocol_precision = "bfloat16" if "bfloat16" in model.protocol else "float32"
    precision = backend_precision or protocol_precision
    if not model.tells_tasks_apart:
        return Embedder(model.encode, identity, name, precision, model.windows, model.look, reading=model.reading)
    return Embedder(
        partial(model.encode, task="document"),
        identity,
        name,
        precision,
        partial(model.windows, task="document"),
        partial(model.look, task="document"),
        partial(model.encode, task="query"),
        reading=model.reading_for("document"),
    )
