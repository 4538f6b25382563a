"""Encode texts: each distinct text once, with little padding, rows in the order of the texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch import Tensor

from samesense.encoder.distinct import encode_distinct
from samesense.encoder.forward.batching import embed_columns, tokenize_texts
from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.precision import autocast, inference_precision
from samesense.encoder.forward.reading import UnreadWatch
from samesense.encoder.forward.routes import say_default_route
from samesense.execution.onednn import fast_linear
from samesense.execution.unread import note
from samesense.types import Embeddings, Encode, Precision, TaskName

CPU_TOKENS = 1024
"""Tokens in one forward on a CPU, padding included; 512 to 4,096 were equally fast."""

ACCELERATOR_TOKENS = 16384
"""The same on an accelerator, which needs large forwards to be fully used; not measured."""


def encode(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: Precision = "auto",
    normalize: bool = False,
    batch_tokens: int | None = None,
    on_progress: Callable[[int], None] | None = None,
    task: TaskName | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts``, float32 ``(texts, dim)``, where row *i* belongs to text *i*.

    Equal texts are computed once; the model's own maximum length, prompt and pooling apply. ``precision`` ``"auto"`` is
    bfloat16 where the processor computes in it. ``batch_tokens`` limits the tokens of one forward, padding included; it
    affects speed and memory, not the order. ``on_progress`` is called with the number of texts just finished.

    Texts that are not read in full are counted (:mod:`samesense.execution.unread`). A text without any token gets a
    vector of zeros. ``task`` tells whether the texts are queries or documents, for models that encode them differently,
    as ``encode_query`` and ``encode_document`` of sentence-transformers. ModelError if a text is not a string.
    """
    say_default_route(model, task)
    watch = UnreadWatch(model, task)
    with without_dropout(model):
        rows = encode_distinct(
            texts,
            lambda block: _embed(model, block, precision, batch_tokens, watch, task).cpu().numpy(),
            model.get_embedding_dimension() or 0,
            normalize=normalize,
            on_progress=on_progress,
        )
    note(watch.unread, model)
    return rows


def _embed(
    model: SentenceTransformer,
    texts: list[str],
    precision: Precision,
    batch_tokens: int | None,
    watch: UnreadWatch,
    task: TaskName | None,
) -> Tensor:
    """Return the embeddings of the texts, ``(texts, dim)``, in their order; the forwards sort them by length."""
    device = model.device
    budget = batch_tokens or (CPU_TOKENS if device.type == "cpu" else ACCELERATOR_TOKENS)
    arithmetic = inference_precision(precision, device)
    with torch.inference_mode(), autocast(device, arithmetic), fast_linear(device):
        features = tokenize_texts(model, texts, task=task)
        watch.look(texts, features)
        features = batch_to_device(features, device)
        mask = features.get("attention_mask")
        if mask is None or (read := mask.any(dim=1)).all():
            embeddings = embed_columns(model, [features], mini_batch_num_tokens=budget)[0].float()
        else:  # without special tokens an empty text has no token
            embeddings = torch.zeros(len(texts), model.get_embedding_dimension() or 0, device=device)
            some = {key: value[read] if isinstance(value, Tensor) else value for key, value in features.items()}
            if read.any():
                embeddings[read] = embed_columns(model, [some], mini_batch_num_tokens=budget)[0].float()
    # sentence-transformers applies truncate_dim in its own encode, which is not called here.
    return embeddings[:, : model.get_embedding_dimension()]


def as_encode(model: SentenceTransformer, *, precision: Precision = "auto") -> Encode:
    """Return ``model`` as an :data:`~samesense.types.Encode` function, as evaluation takes it."""

    def run(texts: Sequence[str]) -> Embeddings:
        return encode(model, texts, precision=precision)

    return run
