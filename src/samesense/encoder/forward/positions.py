"""How many tokens of a text a model reads, which are never more than it has positions for."""

from __future__ import annotations

from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.util import batch_to_device

from samesense.encoder.forward.dropout import without_dropout
from samesense.execution.positions import table_limit

UNLIMITED = 10**9
"""Tokens of a model that has no table of positions and states no length."""

_TEXT = "a man and a dog and a man"
"""Some words come twice, so that their own numbers do not rise from one to the next."""


def positions_of(model: SentenceTransformer | CrossEncoder) -> int:
    """Return the longest input for which a model has positions: of tables, or as its configuration states.

    Of a model with several transformers, by which texts take different routes, that of the one with the fewest.
    """
    pairs = isinstance(model, CrossEncoder)
    return min((_positions(trunk, pairs=pairs) for trunk in _trunks(model)), default=UNLIMITED)


def set_length(model: SentenceTransformer | CrossEncoder, tokens: int | None) -> None:
    """Have a model read so many tokens of a text or a pair, and no more than it has positions for.

    ``None`` is as many as it has read so far; what has no limit, such as a static model, is left as it is.
    """
    for trunk in _trunks(model):
        wanted = trunk.max_seq_length if tokens is None else tokens
        if isinstance(wanted, int):
            trunk.max_seq_length = min(wanted, _positions(trunk, pairs=isinstance(model, CrossEncoder)))


def _trunks(model: SentenceTransformer | CrossEncoder) -> list[Transformer]:
    return [module for module in model.modules() if isinstance(module, Transformer) and module.tokenizer is not None]


def _positions(trunk: Transformer, *, pairs: bool) -> int:
    text: Any = (_TEXT, _TEXT) if pairs else _TEXT
    features = batch_to_device(trunk.preprocess([text]), trunk.model.device)
    with without_dropout(trunk):
        limit = table_limit(lambda: trunk(features), features["input_ids"].shape[1])
    if limit is not None:
        return limit
    stated = getattr(trunk.model.config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) and stated > 0 else UNLIMITED  # XLNet states -1
