"""What each token adds to the embedding of a text, where it is a mean of token vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, StaticEmbedding
from sentence_transformers.util import batch_to_device
from torch import Tensor

from samesense.encoder.forward.batching import tokenised
from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.routes import default_prompt
from samesense.errors import ModelError
from samesense.types import Embeddings

CLOSE = 1e-4
"""By how much of its length the sum of the parts may miss the embedding, by rounding in float32."""


class TokenParts(NamedTuple):
    """The tokens of a text.

    Attributes:
        spans: where each stands in the text, from and to; the two are equal for a mark that is not in it.
        vectors: what each adds ``(tokens, dim)``: they sum to the embedding, before it is scaled to unit length.
    """

    spans: list[tuple[int, int]]
    vectors: Embeddings


def token_parts(model: SentenceTransformer, text: str) -> TokenParts:
    """Return what each token of a text adds to its embedding.

    That is its vector, divided by the number of tokens, through the layers behind the pooling, if they are affine. It
    depends on the other tokens too, as they have attended to each other.

    Raises:
        ModelError: with the reason in few words, if the embedding is no such sum.
    """
    with without_dropout(model), torch.inference_mode():
        ids, vectors, behind = _token_vectors(model, text)
        parts, whole = _through(behind, vectors), _through(behind, vectors.mean(dim=0, keepdim=True))[0]
        own = torch.as_tensor(model.encode([text], show_progress_bar=False)[0]).float().cpu()
    parts, whole = parts[:, : len(own)], whole[: len(own)]  # of a model with truncate_dim the first numbers count
    scaled = whole * (own.norm() / whole.norm())  # the model may scale it to unit length
    sums = (parts.mean(dim=0) - whole).norm() <= CLOSE * whole.norm()
    if not sums or (scaled - own).norm() > CLOSE * own.norm():
        raise ModelError("its embedding is no mean of token vectors")
    return TokenParts(_spans(model, text, ids), (parts / len(parts)).numpy().astype(np.float32))


def _token_vectors(model: SentenceTransformer, text: str) -> tuple[list[int], Tensor, list[Any]]:
    """Return ids, vectors ``(tokens, dim)`` and the modules behind the mean; the id is -1 of a token left out of it."""
    features = batch_to_device(tokenised(model, [text]), model.device)
    modules = list(model)
    if isinstance(modules[0], StaticEmbedding):
        ids = features["input_ids"]
        return ids.tolist(), modules[0].embedding.weight[ids].float(), modules[1:]
    places = [place for place, module in enumerate(modules) if isinstance(module, Pooling)]
    if len(places) != 1:
        raise ModelError("it has no pooling of token vectors")
    before, pooling = modules[: places[0]], modules[places[0]]
    for module in before:
        features = module(features)
    counted = features["attention_mask"][0].bool().clone()
    if not pooling.include_prompt:
        counted[: int(features.get("prompt_length", 0))] = False
    vectors = features["token_embeddings"][0][counted].float()
    ids = features["input_ids"][0].tolist()
    return (
        [one if kept else -1 for one, kept in zip(ids, counted.tolist(), strict=True)],
        vectors,
        modules[places[0] + 1 :],
    )


def _through(modules: list[Any], rows: Tensor) -> Tensor:
    """Return rows ``(rows, dim)`` through modules for sentence embeddings, but for the scaling to unit length."""
    features = {"sentence_embedding": rows}
    for module in modules:
        if not isinstance(module, Normalize):
            features = module(features)
    return features["sentence_embedding"].float().cpu()


def _spans(model: SentenceTransformer, text: str, ids: list[int]) -> list[tuple[int, int]]:
    """Return where the tokens stand; those of ``ids`` that are -1 do not count."""
    prompt, tokenizer = default_prompt(model), model.tokenizer
    if isinstance(model[0], StaticEmbedding):
        encoding = tokenizer.encode(prompt + text, add_special_tokens=False)
        known, offsets = encoding.ids, encoding.offsets
    elif getattr(tokenizer, "is_fast", False):
        encoding = tokenizer(prompt + text, return_offsets_mapping=True, verbose=False)
        known, offsets = encoding["input_ids"], encoding["offset_mapping"]
    else:
        raise ModelError("its tokenizer does not say where a token stands")
    if [one for one, own in zip(known, ids, strict=False) if own >= 0] != [own for own in ids if own >= 0]:
        raise ModelError("its tokens are not those of the text alone")
    moved = ((start - len(prompt), end - len(prompt)) for start, end in offsets)
    spans = [(start, end) if start >= 0 else (0, 0) for start, end in moved]
    return [span for span, own in zip(spans, ids, strict=False) if own >= 0]
