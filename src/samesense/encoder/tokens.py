"""Reading of texts by a tokenizer of the ``tokenizers`` library, without torch or transformers."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from samesense.encoder.pieces import Cutter
from samesense.encoder.windows import Reading, Span

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def reading_by(tokenizer: Tokenizer, *, prompt: str, special: bool, longest: int | None) -> Reading:
    """Return how a model reads texts by this tokenizer, which may truncate them itself.

    Args:
        tokenizer: is not changed.
        prompt: text that is read before every text.
        special: whether the tokenizer adds special tokens.
        longest: maximum length in tokens, ``None`` for no limit.
    """
    uncut = _uncut(tokenizer)
    cutter = Cutter(unknown_id(uncut), longest, prompt, uncut.normalizer)

    def encodings(texts: list[str]) -> Any:
        return uncut.encode_batch([prompt + text for text in texts], add_special_tokens=special)

    def spans(text: str) -> list[Span]:
        return list(uncut.encode(text, add_special_tokens=False).offsets)

    return Reading(
        longest,
        lambda texts: [len(encoding.ids) for encoding in encodings(texts)],
        spans,
        lambda texts: [cutter.pieces(text, encoding) for text, encoding in zip(texts, encodings(texts), strict=True)],
    )


@lru_cache(maxsize=8)
def _uncut(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer, or a copy, without truncation and padding."""
    if tokenizer.truncation is None and tokenizer.padding is None:
        return tokenizer
    copied = type(tokenizer).from_str(tokenizer.to_str())
    copied.no_truncation()
    copied.no_padding()
    return copied


@lru_cache(maxsize=8)
def unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the unknown token; ``None`` for a tokenizer without one."""
    token = getattr(tokenizer.model, "unk_token", None)
    if token is not None:
        return tokenizer.token_to_id(token)
    if hasattr(tokenizer.model, "nbest_size"):  # a Unigram model, which has no public attribute for it
        unk_id: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")
        return unk_id
    return None
