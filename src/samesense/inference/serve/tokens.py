"""Count the tokens of texts, and decode token ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from samesense.encoder.assembly.vocabulary import fast_tokenizer
from samesense.errors import DataError
from samesense.inference.onnx.format import TOKENIZER

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from samesense.inference.models.model import Model

UNLIMITED = 2**31
"""The ``longest`` of a model that reads texts of any length."""


class Tokens(Protocol):
    """The parts of a model's tokenizer that a server needs; texts are truncated after ``longest`` tokens."""

    longest: int

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text before truncation, special ones included."""

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of token ids; DataError if no text has these tokens."""


class FastTokens:
    """Counts and decodes with its own copy of a tokenizer of the ``tokenizers`` library."""

    def __init__(self, tokenizer: Tokenizer, longest: int, *, prompt: str = "", special: bool = True) -> None:
        """Copy a tokenizer, without truncation and padding.

        ``prompt`` is what the model puts before every text; its tokens count towards ``longest``. ``special`` adds
        special tokens.
        """
        self._tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.longest = longest
        self._prompt = prompt
        self._special = special

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text before truncation, prompt and special ones included."""
        read = [self._prompt + text for text in texts]
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch(read, add_special_tokens=self._special)]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text that the tokenizer encodes as exactly these ids, with or without its special tokens."""
        text = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        again = self._tokenizer.encode(text)
        bare = [token for token, special in zip(again.ids, again.special_tokens_mask, strict=True) if not special]
        if list(ids) not in (again.ids, bare):
            listed = str(list(ids)[:8])
            if len(ids) > 8:
                listed += " ..."
            raise DataError(
                f"Token ids must be those of the served model's tokenizer, which does not turn any text into {listed}. "
                "Send the text itself."
            )
        return str(text)


class Words:
    """Counts words, for models without a tokenizer, such as functions; they read texts of any length."""

    longest = UNLIMITED

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of words of each text, at least 1."""
        return [max(1, len(text.split())) for text in texts]

    def text(self, ids: Sequence[int]) -> str:
        """Raise DataError: there are no ids."""
        raise DataError("The served model has no tokenizer, and so no token ids. Send texts.")


def served_tokens(model: Model) -> Tokens:
    """Return what counts and decodes a model's tokens."""
    if model.exported is not None:
        # An exported folder is served without torch, by the file of its tokenizer.
        from tokenizers import Tokenizer

        description = model.exported.description
        tokenizer = Tokenizer.from_file(str(model.exported.folder / TOKENIZER))
        longest = description.max_tokens or UNLIMITED
        return FastTokens(tokenizer, longest, prompt=description.prompt, special=description.special_tokens)
    if model.cross_encoder is None and not model.backend:
        return Words()
    return tokens_of(model.encoder if model.cross_encoder is None else model.cross_encoder)


def tokens_of(model: Any) -> FastTokens:
    """Return what counts and decodes the tokens of a SentenceTransformer or CrossEncoder."""
    # Loads torch, which such a model has loaded already.
    from samesense.encoder.forward.routes import default_prompt

    tokenizer = fast_tokenizer(model, "Serving, which counts tokens,")
    special = tokenizer is not model.tokenizer  # a static model holds the bare tokenizer, and reads no special tokens
    longest = model.max_seq_length or UNLIMITED  # a static model's is infinite
    return FastTokens(tokenizer, int(min(longest, UNLIMITED)), prompt=default_prompt(model), special=special)
