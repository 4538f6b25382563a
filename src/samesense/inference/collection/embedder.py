"""The model behind a collection: an encoder that can be told from any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.encoder.embedding_cache import Look
from samesense.encoder.windows import Reading, Windows, cut_into_windows
from samesense.errors import ModelError
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
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
        identity: everything that decides a vector besides its text; for a model that is loaded, what
            :func:`~samesense.encoder.saving.storage.model_identity` returns. ModelError for an empty one.
        name: what the model is called; it is opened by this name where no other is given.
        precision: arithmetic, for people and for opening it again.
        windows: cuts texts into windows that the encoder reads whole.
        look: counts what is not read of texts whose vectors are there already.
        longest: tokens that are read of a text, ``None`` for any number.
        encode_queries: the same as ``encode`` for queries, where these are encoded otherwise.
        reading: how much is read of a text, ``None`` for all of it.
        files: hash of the model's files, by which it is known without torch; empty if it is not of files in float32.
    """

    encode: Encode
    identity: str
    name: str = ""
    precision: str = "float32"
    windows: Callable[[Sequence[str]], Windows] = cut_into_windows
    look: Look | None = None
    encode_queries: Encode | None = None
    longest: int | None = None
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
        """Return the same of queries."""
        return _unit(self.encode_queries or self.encode, texts)


def _unit(encode: Encode, texts: list[str]) -> Embeddings:
    return unit_rows(nonzero_rows(checked_rows(np.asarray(encode(texts)), texts), texts))


def open_embedder(name: str, precision: str = "auto", *, identity: str | None = None) -> Embedder:
    """Open a model as what a collection needs of it.

    Args:
        name: of the model.
        precision: arithmetic, or the backend of an exported folder.
        identity: as a collection or a copy of it in a store keeps it; ModelError for a model with another one.
    """
    options: dict[str, Any] = {"backend" if precision in ("onnx", "onnx-int8") else "precision": precision}
    files = model_files_hash(name)  # before it is loaded: files that change meanwhile are then others than these
    embedder = embedder_of(load(name, **options), name)
    if embedder.precision == "float32":
        embedder = replace(embedder, files=files)
    if identity not in (None, embedder.identity):
        raise ModelError(
            f"Vectors are searched with the model that made them; {name!r} in {embedder.precision} differs from it in "
            "weights, settings or precision. Use that model, or encode the texts anew."
        )
    return embedder


def open_for_queries(name: str, built: About, texts: Sequence[str]) -> Embedder:
    """Open a model for some queries of a collection, without torch if its files are those of the collection's model.

    Of other files, torch tells whether they make the same model; the collection refuses what they do not.
    """
    if built.files and built.precision == "float32":
        model = load(name, precision="float32", texts=texts)
        if model.backend == "numpy" and model_files_hash(name) == built.files:
            return embedder_of(model, name, identity=built.identity)
    return open_embedder(name, built.precision)


def embedder_of(model: Model, name: str, *, identity: str | None = None) -> Embedder:
    """Return a loaded model as what a collection needs of it; ModelError for a cross-encoder.

    ``identity`` is the model's, if it is known; ``None`` asks the model, which reads all its weights.
    """
    identity = model.identity if identity is None else identity
    arithmetic = "bfloat16" if "bfloat16" in model.protocol else "float32"  # a map has no backend, and says it in words
    computed = "" if model.backend == "numpy" else model.backend.removeprefix("torch-")
    precision = computed or arithmetic
    if not model.tells_tasks_apart:
        reading = model.reading
        longest = None if reading is None else reading.longest
        return Embedder(
            model.encode, identity, name, precision, model.windows, model.look, longest=longest, reading=reading
        )
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
