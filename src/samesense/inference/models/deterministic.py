"""Vectors by torch that depend on nothing but their text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from samesense.encoder.rows import each_once
from samesense.execution.threads import torch_threads
from samesense.types import Embeddings, Precision

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def encode_alone(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: Precision = "auto",
    normalize: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts`` as :func:`samesense.encoder.encode.encode` does, with bits of the text alone.

    Every text is a batch of its own, on one thread: how products are cut and summed depends on the shape of a batch and
    on the number of threads, and so do the last bits.

    Raises:
        ModelError: if a text is not a string.
    """
    import torch

    from samesense.encoder.precision import autocast, inference_precision

    arithmetic = inference_precision(precision, model.device)
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    dim = model.get_embedding_dimension() or 0

    def one(text: str) -> torch.Tensor:
        features = {
            key: value.to(model.device) if isinstance(value, torch.Tensor) else value
            for key, value in model.preprocess([text], prompt=prompt).items()
        }
        row: torch.Tensor = model(features)["sentence_embedding"][:, :dim]
        return row.float().cpu()

    def embed(block: list[str]) -> Embeddings:
        with torch.inference_mode(), autocast(model.device, arithmetic):
            rows: Embeddings = torch.cat([one(text) for text in block]).numpy()
        return rows

    training = model.training
    model.eval()
    try:
        with torch_threads(1):
            return each_once(texts, embed, dim, normalize=normalize, on_progress=on_progress)
    finally:
        model.train(training)
