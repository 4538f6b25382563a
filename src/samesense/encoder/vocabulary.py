"""Does the tokenizer know the script of these texts? A model of another language reads them as one unknown token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def unknown_share(model: SentenceTransformer, texts: Sequence[str]) -> float:
    """Return the share of the tokens of ``texts`` that stand for "unknown"; 0 for a tokenizer that has no such token.

    Special tokens that the tokenizer adds around a text are not counted.
    """
    tokenizer = model.tokenizer
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is None:
        return 0.0
    tokens = [token for text in texts for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
    return tokens.count(unknown) / len(tokens) if tokens else 0.0
