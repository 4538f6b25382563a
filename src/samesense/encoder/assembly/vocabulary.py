"""The tokenizer of a model: its fast form, and the fraction of unknown tokens in texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from samesense.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


def fast_tokenizer(model: Any, needed_for: str) -> Tokenizer:
    """Return the ``tokenizers.Tokenizer`` behind a model's tokenizer; ModelError if it has none."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(backend, Tokenizer):
        raise ModelError(
            f"{needed_for} needs a fast tokenizer (tokenizer.json); this model has a {type(backend).__name__}."
        )
    return backend


def unknown_share(model: SentenceTransformer, texts: Sequence[str]) -> float:
    """Return the fraction of unknown tokens in ``texts``; 0 for a tokenizer without an unknown token.

    It is high for texts in a script that the model does not know. Special tokens are not counted.
    """
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    if unknown is None:
        return 0.0
    tokens = [token for ids in _token_ids(model, texts) for token in ids]
    if not tokens:
        return 0.0
    return tokens.count(unknown) / len(tokens)


def reads_all_alike(model: SentenceTransformer, texts: Sequence[str]) -> bool:
    """Return whether different texts have the same tokens, as those of which the tokenizer knows nothing."""
    distinct = list(dict.fromkeys(texts))
    return len(distinct) > 1 and len({tuple(ids) for ids in _token_ids(model, distinct)}) == 1


def _token_ids(model: SentenceTransformer, texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the tokens of each text, without special ones."""
    for text in texts:
        # Not verbose, as the tokenizer warns of texts beyond the model's length.
        yield model.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
