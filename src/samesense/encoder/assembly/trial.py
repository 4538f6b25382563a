"""A trial of a model on one short text right after loading, to detect modules that do not fit together."""

from __future__ import annotations

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.util import batch_to_device
from torch import Tensor

from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.grad_cache import forward
from samesense.encoder.forward.routes import default_prompt
from samesense.errors import ModelError

TEXT = "a man and 2 dogs"


def trial_embeddings(model: SentenceTransformer) -> list[Tensor]:
    """Return the embedding of a text, ``(1, dim)``, for every route of the model."""
    routed = any(isinstance(module, Router) for module in model.modules())
    tasks = [{"task": "query"}, {"task": "document"}] if routed else [{}]
    prompt = default_prompt(model) or None
    # Gradients stay enabled: those of this output show which weights are used.
    with without_dropout(model):
        inputs = [batch_to_device(model.preprocess([TEXT], prompt=prompt, **task), model.device) for task in tasks]
        return [model(features, **task)["sentence_embedding"] for features, task in zip(inputs, tasks, strict=True)]


def check_embeddings(model: SentenceTransformer) -> None:
    """Raise ModelError unless a model embeds a text in finite numbers and its stated dimension."""
    dim = model.get_embedding_dimension()
    with torch.inference_mode():
        embeddings = trial_embeddings(model)
    _check_finite(embeddings)
    shapes = [tuple(rows.shape) for rows in embeddings]
    truncated = model.truncate_dim is not None
    wrong = [
        shape for shape in shapes if len(shape) != 2 or shape[0] != 1 or not _fits(shape[1], dim, truncated=truncated)
    ]
    if wrong:
        raise ModelError(
            f"A text must have one vector of the {dim} numbers that the model's files state; it has an array of shape "
            f"{wrong[0]}. Do the configurations of its modules belong together?"
        )


def _check_finite(outputs: list[Tensor]) -> None:
    if not all(output.isfinite().all() for output in outputs):
        raise ModelError("Its output for a short text holds a NaN or an infinity. Are weights or settings damaged?")


def _fits(width: int, dim: int | None, *, truncated: bool) -> bool:
    # The stated dimension is the truncated one, and a forward gives the whole vector.
    return dim is None or width == dim or (truncated and width > dim)


def trial_logits(model: CrossEncoder) -> Tensor:
    """Return the logits of a pair ``(1, labels)``."""
    with without_dropout(model):
        features = batch_to_device(model.preprocess([(TEXT, TEXT)], prompt=default_prompt(model) or None), model.device)
        return forward(model, features)


def check_logits(model: CrossEncoder) -> None:
    """Raise ModelError unless a cross-encoder scores a pair."""
    with torch.inference_mode():
        logits = trial_logits(model)
    _check_finite([logits])
    if len(logits.reshape(-1)) != model.num_labels:
        raise ModelError(f"A pair must have {model.num_labels} scores; it has an array of shape {tuple(logits.shape)}.")
