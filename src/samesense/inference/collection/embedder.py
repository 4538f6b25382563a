"""The model behind a collection: an encoder that can be told from any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.encoder.windows import Windows, cut_texts
from samesense.inference.models.model import Model
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings, Encode


@dataclass(frozen=True)
class Embedder:
    """An encoder with its identity.

    Attributes:
        encode: texts in, one embedding a text out.
        identity: everything that decides a vector besides its text; for a model that is loaded, what
            :func:`~samesense.encoder.storage.model_identity` returns.
        name: what the model is called; it is opened by this name where no other is given.
        precision: arithmetic, for people and for opening it again.
        windows: cuts texts into windows that the encoder reads whole.
    """

    encode: Encode
    identity: str
    name: str = ""
    precision: str = "float32"
    windows: Callable[[Sequence[str]], Windows] = cut_texts

    def unit(self, texts: list[str]) -> Embeddings:
        """Return the embeddings of ``texts`` as unit rows, ``(texts, dim)``.

        Raises:
            ModelError: if the encoder does not give one finite row a text that is not all zeros.
        """
        return unit_rows(nonzero_rows(checked_rows(np.asarray(self.encode(texts)), texts), texts))


def embedder_of(model: Model, name: str) -> Embedder:
    """Return a loaded model as what a collection needs of it; ModelError for a cross-encoder."""
    return Embedder(
        model.encode, model.identity, name, model.backend.removeprefix("torch-") or "float32", model.windows
    )
