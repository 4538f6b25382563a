"""Base class of generators with pretrained language models: tokens, padding, identity."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from samesense.context.corpus.words import joiner
from samesense.context.generator.base import Generator
from samesense.errors import DataError, ModelError
from samesense.hashes import content_hash
from samesense.types import END_OF_TEXT

CPU_TOKENS = 1024
"""Tokens of one forward on a CPU, padding included; each has logits over the whole vocabulary."""

ACCELERATOR_TOKENS = 8192
"""The same on an accelerator; not measured."""


KNOWN_TEXTS = 1 << 15
"""Texts whose tokens are cached: some 30 MB."""


class PretrainedGenerator(Generator):
    """A model of transformers with its tokenizer, used without training.

    Raises:
        ModelError: if the tokenizer lacks a special token that is needed.
    """

    form: str

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 128) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.longest = max_tokens
        self.positions: int | None = None
        """Tokens that the model can read together; ``None`` is any number."""

        self._budget = CPU_TOKENS if model.device.type == "cpu" else ACCELERATOR_TOKENS
        # On the instance: a cache of the method would keep every model alive.
        self._tokens = lru_cache(maxsize=KNOWN_TEXTS)(self._tokenised)
        self.precision = str(model.dtype).removeprefix("torch.")
        self.identity = json.dumps([self.form, max_tokens, str(model.dtype), content_hash(_content(model, tokenizer))])

    def ids(self, text: str, *, inside: bool) -> list[int]:
        """Return the first ``max_tokens`` tokens of a sentence; ``inside`` a text, with the space before it."""
        return self._tokens(text, inside)[: self.max_tokens]

    def length(self, text: str, *, inside: bool) -> int:
        """Return the number of tokens of a sentence, without truncation."""
        return len(self._tokens(text, inside))

    def beyond(self, sentences: Sequence[str]) -> list[str]:
        """Return the sentences that are longer than the model reads."""
        return [text for text in sentences if self.length(text, inside=True) > self.max_tokens]

    def _tokenised(self, text: str, inside: bool) -> list[int]:
        ids: list[int] = self.tokenizer(as_it_stands(text, inside=inside), add_special_tokens=False)["input_ids"]
        if not ids:
            raise DataError(f"A sentence must have a token; {text!r} has none for this model. Leave it out.")
        return ids

    def _padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the rows padded to one length, and their attention mask."""
        ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        present = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row)
            present[index, : len(row)] = 1
        return ids.to(self.model.device), present.to(self.model.device)


def start_mark(tokenizer: Any) -> int:
    """Return the token that begins a text.

    The bos token of a chat model may begin a chat turn, after which plain text is improbable: for
    SmolLM2-135M-Instruct, the first three tokens of a sentence cost 9.4 nats after it, and 7.2 after the end of a text.

    Raises:
        ModelError: if the tokenizer has no such token.
    """
    between: int | None = tokenizer.get_vocab().get(END_OF_TEXT)
    marks = [mark for mark in (between, tokenizer.bos_token_id, tokenizer.eos_token_id) if mark is not None]
    if not marks:
        raise ModelError("A text begins with a mark, and this model's tokenizer has neither bos nor eos token.")
    return int(marks[0])


def as_it_stands(text: str, *, inside: bool) -> str:
    """Return a sentence as in running text: ``inside`` a text it follows a space, if its script uses spaces."""
    text = text.strip()
    if inside and text:
        return joiner(text) + text
    return text


def _content(model: Any, tokenizer: Any) -> Iterator[bytes | memoryview]:
    yield json.dumps(sorted(tokenizer.get_vocab().items())).encode()
    config = model.config.to_dict()
    settings = {key: config[key] for key in sorted(config) if key not in ("_name_or_path", "transformers_version")}
    yield json.dumps(settings, default=str).encode()
    for name, value in sorted(model.state_dict().items()):
        yield f"{name} {value.dtype}".encode()
        # As bytes, since numpy has no bfloat16.
        yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
