"""Checks that a tokenizer fits its model: a padding token, and an embedding for every token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from samesense.errors import ModelError


def fit_tokenizers(model: SentenceTransformer | CrossEncoder) -> None:
    """Give each tokenizer of a model without a padding token one, in place.

    ModelError if no token can serve as padding, or a tokenizer has tokens for which the model has no embedding.
    """
    for module in model.modules():
        if isinstance(module, Transformer) and module.tokenizer is not None:
            rows = _embedding_rows(module)
            _check_unknown_token(module.tokenizer)
            # More rows than tokens are common, as tables are padded to a round size; fewer are an error.
            if len(module.tokenizer) > rows:
                _check_vocabulary(module.tokenizer.get_vocab(), _special_tokens(module.tokenizer), rows)
            give_padding(module)
        elif isinstance(module, StaticEmbedding) and module.tokenizer.get_vocab_size() > module.num_embeddings:
            added = module.tokenizer.get_added_tokens_decoder().values()
            special = [token.content for token in added if token.special]
            _check_vocabulary(module.tokenizer.get_vocab(), special, module.num_embeddings)


def give_padding(trunk: Transformer) -> None:
    """Give a tokenizer without a padding token one, in place.

    The attention mask excludes padding from every result, so the end-of-text token can serve.
    """
    tokenizer: Any = trunk.tokenizer
    rows = _embedding_rows(trunk)
    # A padding token that was added to the tokenizer later may have no row in the table.
    if tokenizer.pad_token is None or tokenizer.pad_token_id is None or not tokenizer.pad_token_id < rows:
        candidates = [tokenizer.eos_token, tokenizer.sep_token, tokenizer.unk_token]
        fitting = [token for token in candidates if token is not None and tokenizer.convert_tokens_to_ids(token) < rows]
        if not fitting:
            raise ModelError(
                "A tokenizer needs a token that fills short rows, and this one has no pad_token, eos_token, sep_token "
                "or unk_token that the model has a vector for. Name one in tokenizer_config.json."
            )
        tokenizer.pad_token = fitting[0]


def _special_tokens(tokenizer: Any) -> set[str]:
    """Return the special tokens, also those without a role, which older folders list."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    return {*tokenizer.all_special_tokens, *(token.content for token in added if token.special)}


def _check_unknown_token(tokenizer: Any) -> None:
    """Raise ModelError if the unknown token is not in the vocabulary: transformers would look it up forever."""
    try:
        tokenizer.all_special_ids  # noqa: B018 - only the look-up matters
    except RecursionError as error:
        raise ModelError(
            "The unk_token of a tokenizer must be one of its tokens. Take the tokenizer_config.json that belongs to it."
        ) from error


def _check_vocabulary(vocabulary: dict[str, int], special: Iterable[str], rows: float) -> None:
    """Raise ModelError if a token that texts consist of has no embedding; special tokens need none."""
    special_tokens = set(special)
    without = [token for token, token_id in vocabulary.items() if token_id >= rows and token not in special_tokens]
    if without:
        raise ModelError(
            f"A model must have a vector for each token of its tokenizer; it has {rows}, and {len(without)} tokens lie "
            f"beyond, such as {min(without)!r}. Do tokenizer and weights belong together?"
        )


def _embedding_rows(trunk: Transformer) -> float:
    """Return the number of tokens with an embedding; infinity if the model has no embedding table."""
    try:
        table: Any = trunk.model.get_input_embeddings()
    except NotImplementedError:
        return float("inf")
    count = getattr(table, "num_embeddings", None)
    if isinstance(count, int):
        return count
    return float("inf")
