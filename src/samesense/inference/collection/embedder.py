"""The model behind a collection: an encoder that can be told from any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings, Encode, Precision


@dataclass(frozen=True)
class Embedder:
    """An encoder with its identity.

    Attributes:
        encode: texts in, one embedding a text out.
        identity: everything that decides a vector besides its text; for a model that is loaded, what
            :func:`~samesense.encoder.identity.model_identity` returns.
        name: what the model is called; it is opened by this name where no other is given.
        precision: arithmetic, for people and for opening it again.
    """

    encode: Encode
    identity: str
    name: str = ""
    precision: str = "float32"

    def unit(self, texts: list[str]) -> Embeddings:
        """Return the embeddings of ``texts`` as unit rows, ``(texts, dim)``.

        Raises:
            ModelError: if the encoder does not give one finite row a text that is not all zeros.
        """
        return unit_rows(nonzero_rows(checked_rows(np.asarray(self.encode(texts)), texts), texts))


def open_embedder(name: str, precision: Precision | Literal["onnx", "onnx-int8"] = "auto") -> Embedder:
    """Open a model: a folder, the output of ``samesense train`` or ``export``, a hub name, or ``"default"``.

    Args:
        name: the model.
        precision: arithmetic of torch, or which graph of an exported folder.

    Raises:
        ModelError: if there is no such model, or it is a cross-encoder, which has no embeddings.
    """
    if precision == "onnx" or precision == "onnx-int8":
        return embedder_of(load(name, backend=precision), name)
    return embedder_of(load(name, precision=precision), name)


def embedder_of(model: Model, name: str) -> Embedder:
    """Return a loaded model as what a collection needs of it.

    Raises:
        ModelError: for a cross-encoder.
    """
    if model.onnx is not None:
        return Embedder(model.encode, model.onnx.identity, name, model.onnx.name)
    encoder = model.encoder
    from samesense.encoder.encode import as_encode
    from samesense.encoder.identity import model_identity
    from samesense.encoder.precision import inference_precision

    arithmetic = inference_precision(model.precision, encoder.device)
    return Embedder(as_encode(encoder, precision=arithmetic), model_identity(encoder, arithmetic), name, arithmetic)
