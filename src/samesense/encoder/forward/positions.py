"""The maximum length of a model, which is limited by its positions."""

from __future__ import annotations

from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.util import batch_to_device

from samesense.encoder.forward.dropout import without_dropout
from samesense.execution.positions import table_limit

UNLIMITED = 10**9
"""Limit for a model that has no position embeddings and states no length."""

_TEXT = "a man and a dog and a man"
"""Some words are repeated, so that token ids do not ascend as position ids do."""


def position_limit(model: SentenceTransformer | CrossEncoder) -> int:
    """Return the longest input for which a model has positions, by its position embeddings or its configuration.

    For a model with several transformers, as for routes, it is the smallest of theirs.
    """
    pairs = isinstance(model, CrossEncoder)
    return min((_positions(trunk, pairs=pairs) for trunk in _trunks(model)), default=UNLIMITED)


def set_length(model: SentenceTransformer | CrossEncoder, tokens: int | None) -> None:
    """Set the maximum length of a model in tokens, limited by its positions.

    ``None`` keeps the current length, within the limit. A model without a limit, such as a static one, is unchanged.
    """
    for trunk in _trunks(model):
        length = trunk.max_seq_length if tokens is None else tokens
        if isinstance(length, int):
            trunk.max_seq_length = min(length, _positions(trunk, pairs=isinstance(model, CrossEncoder)))


def _trunks(model: SentenceTransformer | CrossEncoder) -> list[Transformer]:
    return [module for module in model.modules() if isinstance(module, Transformer) and module.tokenizer is not None]


def _positions(trunk: Transformer, *, pairs: bool) -> int:
    text: Any = (_TEXT, _TEXT) if pairs else _TEXT
    # a forward tells which ids the model looks up in its position embeddings
    features = batch_to_device(trunk.preprocess([text]), trunk.model.device)
    with without_dropout(trunk):
        limit = table_limit(lambda: trunk(features), features["input_ids"].shape[1])
    if limit is not None:
        return limit
    stated = getattr(trunk.model.config, "max_position_embeddings", None)
    # XLNet's configuration states -1, which is no limit.
    if isinstance(stated, int) and stated > 0:
        return stated
    return UNLIMITED
