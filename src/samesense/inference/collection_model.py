"""The model behind a collection: an encoder that can be told from any other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.errors import ModelError
from samesense.inference.search import unit_rows
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


def open_embedder(name: str, precision: Precision = "auto") -> Embedder:
    """Open a model: a folder, the output of ``samesense train``, a hub name, or ``"default"``.

    Raises:
        ModelError: if there is no such model, or it is a cross-encoder, which has no embeddings.
    """
    from samesense.encoder.build import build, resolve
    from samesense.encoder.cross import is_cross_encoder
    from samesense.encoder.encode import as_encode
    from samesense.encoder.identity import model_identity
    from samesense.encoder.precision import inference_precision

    if is_cross_encoder(resolve(name)):
        raise ModelError(
            f"{name} is a cross-encoder, which reads two texts together and has no embeddings. Search with an encoder, "
            "and order what it finds: samesense rerank"
        )
    model = build(name)
    arithmetic = inference_precision(precision, model.device)
    return Embedder(as_encode(model, precision=arithmetic), model_identity(model, arithmetic), name, arithmetic)
