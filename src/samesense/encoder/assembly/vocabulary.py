"""The tokenizer of a model: is it a fast one, and does it know the script of some texts?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from samesense.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


def fast_tokenizer(model: Any, needed_for: str) -> Tokenizer:
    """Return the tokenizer of the ``tokenizers`` library behind a model's own; ModelError if it has none."""
    from tokenizers import Tokenizer

    own = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(own, Tokenizer):
        raise ModelError(
            f"{needed_for} needs a fast tokenizer (tokenizer.json); this model has a {type(own).__name__}."
        )
    return own


def unknown_share(model: SentenceTransformer, texts: Sequence[str]) -> float:
    """Return the share of the tokens of ``texts`` that stand for "unknown"; 0 for a tokenizer that has no such token.

    A model of another language reads texts as one unknown token. Special tokens around a text are not counted.
    """
    tokenizer = model.tokenizer
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown is None:
        return 0.0
    tokens = [
        token for text in texts for token in tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    ]
    return tokens.count(unknown) / len(tokens) if tokens else 0.0
