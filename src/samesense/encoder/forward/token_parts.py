"""The contribution of each token to the embedding of a text, for models that embed by a mean of token vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from sentence_transformers.util import batch_to_device
from torch import Tensor

from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.routes import default_prompt
from samesense.errors import ModelError
from samesense.types import Embeddings

CLOSE = 1e-4
"""Relative error allowed between the embedding and the sum of its tokens' contributions: float32 rounding."""


class TokenParts(NamedTuple):
    """The tokens of a text and their contributions to its embedding.

    Attributes:
        spans: start and end of each token in the text; equal for a special token, which is not in the text.
        vectors: contribution of each token ``(tokens, dim)``; they sum to the embedding before normalisation.
    """

    spans: list[tuple[int, int]]
    vectors: Embeddings


def token_parts(model: SentenceTransformer, text: str) -> TokenParts:
    """Return the contribution of each token of a text to its embedding.

    It is the token's vector, divided by the number of tokens and passed through the layers behind the pooling, which
    must be affine. It depends on the other tokens too, through attention.

    Raises:
        ModelError: with a short reason, if the embedding is not such a sum.
    """
    with without_dropout(model), torch.inference_mode():
        ids, vectors, later_modules = _token_vectors(model, text)
        token_vectors = _through(later_modules, vectors)
        mean = _through(later_modules, vectors.mean(dim=0, keepdim=True))[0]
        embedding = torch.as_tensor(model.encode([text], show_progress_bar=False)[0]).float().cpu()
    # a model with truncate_dim keeps the first dimensions only
    token_vectors = token_vectors[:, : len(embedding)]
    mean = mean[: len(embedding)]
    scaled = mean * (embedding.norm() / mean.norm())  # the model may normalise its embeddings
    # an affine map of the mean is the mean of the maps; another layer fails this check
    sums = (token_vectors.mean(dim=0) - mean).norm() <= CLOSE * mean.norm()
    if not sums or (scaled - embedding).norm() > CLOSE * embedding.norm():
        raise ModelError("its embedding is no mean of token vectors")
    return TokenParts(_spans(model, text, ids), (token_vectors / len(token_vectors)).numpy().astype(np.float32))


def _token_vectors(model: SentenceTransformer, text: str) -> tuple[list[int], Tensor, list[Any]]:
    """Return ids, vectors ``(tokens, dim)`` and the modules behind the mean; a token left out of it has id -1."""
    features = batch_to_device(tokenize_texts(model, [text]), model.device)
    modules = list(model)
    if isinstance(modules[0], StaticEmbedding):
        ids = features["input_ids"]
        return ids.tolist(), modules[0].embedding.weight[ids].float(), modules[1:]
    pooling_positions = [position for position, module in enumerate(modules) if isinstance(module, Pooling)]
    if len(pooling_positions) != 1:
        raise ModelError("it has no pooling of token vectors")
    earlier_modules = modules[: pooling_positions[0]]
    pooling = modules[pooling_positions[0]]
    for module in earlier_modules:
        features = module(features)
    counted = features["attention_mask"][0].bool().clone()
    if not pooling.include_prompt:  # the pooling leaves the tokens of the prompt out
        counted[: int(features.get("prompt_length", 0))] = False
    vectors = features["token_embeddings"][0][counted].float()
    ids = features["input_ids"][0].tolist()
    return (
        [token_id if is_counted else -1 for token_id, is_counted in zip(ids, counted.tolist(), strict=True)],
        vectors,
        modules[pooling_positions[0] + 1 :],
    )


def _through(modules: list[Any], rows: Tensor) -> Tensor:
    """Return rows ``(rows, dim)`` after the given sentence-embedding modules, normalisation left out."""
    features = {"sentence_embedding": rows}
    for module in modules:
        if not isinstance(module, Normalize):
            features = module(features)
    return features["sentence_embedding"].float().cpu()


def _spans(model: SentenceTransformer, text: str, ids: list[int]) -> list[tuple[int, int]]:
    """Return the character spans of the tokens, without those whose id is -1."""
    prompt = default_prompt(model)
    tokenizer = model.tokenizer
    if isinstance(model[0], StaticEmbedding):
        encoding = tokenizer.encode(prompt + text, add_special_tokens=False)
        all_ids = encoding.ids
        offsets = encoding.offsets
    elif getattr(tokenizer, "is_fast", False):
        encoding = tokenizer(prompt + text, return_offsets_mapping=True, verbose=False)
        all_ids = encoding["input_ids"]
        offsets = encoding["offset_mapping"]
    else:
        raise ModelError("its tokenizer does not say where a token stands")
    counted_ids = [counted_id for counted_id in ids if counted_id >= 0]
    ids_there = [token_id for token_id, counted_id in zip(all_ids, ids, strict=False) if counted_id >= 0]
    if ids_there != counted_ids:
        raise ModelError("its tokens are not those of the text alone")
    # offsets count from the prompt; special tokens and those of the prompt get an empty span
    text_offsets = ((start - len(prompt), end - len(prompt)) for start, end in offsets)
    spans = [(start, end) if start >= 0 else (0, 0) for start, end in text_offsets]
    return [span for span, counted_id in zip(spans, ids, strict=False) if counted_id >= 0]
