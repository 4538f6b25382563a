"""What a causal language model says of a sentence: how probable each tail of a bank is after it, and its own vector."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig

from samesense.context.corpus.corpus import Window
from samesense.context.generator.base import Generator, groups_of
from samesense.context.generator.language_models import CausalGenerator
from samesense.errors import ConfigError, ModelError
from samesense.execution.unread import Unread, note
from samesense.types import Embeddings, Indices

PREFIXES = 8
"""Sentences of one length that are read together."""

CPU_POSITIONS = 1152
"""Tokens of tails in one forward on a CPU: more are not faster, and each needs a row of the vocabulary's width."""

ACCELERATOR_POSITIONS = 16384
"""The same on an accelerator; not measured."""

ROWS = 64
"""Rows of the vocabulary's width that are held in float32 at once."""

_MARKS, _CLOSING, _PAUSES = ".!?…。！？｡．।॥؟۔։።", "\"'”’»)]」』）】》", ",;:，；："


@dataclass(frozen=True)
class Reading:
    """What was read of some sentences."""

    logs: Embeddings  # log probability of each token of each tail after each sentence, (sentences, windows, tokens)
    own: Embeddings  # mean hidden state of the sentence's tokens at one layer, (sentences, width)


class Reader:
    """Reads sentences, each as a text of its own, and the tails that may come after it.

    A sentence is read once, with a full stop if it ends without a mark. Its keys and values stand before all tails,
    which are one batch of equal lengths. The token before the sentence, which draws the attention of all others to
    itself, has no part in the sentence's vector.

    Args:
        generator: a causal language model.
        layer: whose hidden states are the own vectors, 0 for the embeddings.

    Raises:
        ModelError: if the language model is not causal.
        ConfigError: if it has no such layer.
    """

    def __init__(self, generator: Generator, layer: int = 1) -> None:
        if not isinstance(generator, CausalGenerator):
            raise ModelError(
                f"A bank is scored by a causal language model; received a {generator.protocol}. Name another model."
            )
        config = generator.model.config.get_text_config()
        depth = int(config.num_hidden_layers)
        if not 0 <= layer <= depth:
            raise ConfigError(f"The language model has layers 0 to {depth}; received {layer}.")
        self.generator, self.width, self.vocabulary = generator, int(config.hidden_size), int(config.vocab_size)
        self.layer, self.longest = layer, generator.max_tokens
        self.precision = generator.precision
        self.identity = json.dumps([generator.identity, generator.start, "reading 3"])
        self._model: Any = generator.model
        self._most = CPU_POSITIONS if self._model.device.type == "cpu" else ACCELERATOR_POSITIONS

    def tail(self, window: Window) -> list[int]:
        """Return the tokens of the right side of a window, as they stand behind a sentence."""
        return [token for text in window.right for token in self.generator.ids(text, inside=True)]

    def order(self, sentences: Sequence[str]) -> Indices:
        """Return the places of sentences, by their number of tokens: those of one length are read together."""
        order: Indices = np.argsort(np.minimum(self.lengths(sentences), self.longest), kind="stable")
        return order

    def lengths(self, sentences: Sequence[str]) -> Indices:
        """Return how many tokens each sentence has, ``(sentences,)``, those that are not read too; of a blank one 1.

        That is the full stop, which is read behind whatever text there is.
        """
        lengths = [self.generator.length(closed(text), inside=False) if text.strip() else 1 for text in sentences]
        return np.array(lengths, dtype=np.int64)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text stands in it; ModelError if the tokenizer does not say."""
        tokenizer = self.generator.tokenizer
        if not tokenizer.is_fast:
            raise ModelError("The language model's tokenizer does not say where a token stands: no text can be cut.")
        found: list[tuple[int, int]] = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        return found

    def note_unread(self, sentences: Sequence[str]) -> None:
        """Count sentences of which the end is not read; see :mod:`samesense.execution.unread`."""
        unread, distinct = Unread(), list(dict.fromkeys(sentences))
        unread.see(distinct)
        unread.longest = self.longest
        for text, length in zip(distinct, self.lengths(distinct), strict=True):
            if length > self.longest:
                unread.cut.add(text)
            if self._is_unknown(text):
                unread.unknown.add(text)
        note(unread, self)

    def _is_unknown(self, text: str) -> bool:
        """Return whether all tokens of a text stand for what the tokenizer does not know."""
        unknown = self.generator.tokenizer.unk_token_id
        if not text.strip() or unknown not in self._ids(text):
            return False
        return set(self.generator.ids(text, inside=False)) == {unknown}

    def text(self, tail: Indices) -> str:
        """Return the text of some tokens."""
        return str(self.generator.tokenizer.decode(tail.tolist())).strip()

    @torch.inference_mode()
    def read(self, sentences: Sequence[str], tails: Indices) -> Reading:
        """Return what the model says of ``sentences`` and of ``tails``, ``(windows, tokens)``, after each of them."""
        ids = [self._ids(text) for text in sentences]
        logs = np.empty((len(ids), *tails.shape), dtype=np.float32)
        own = np.empty((len(ids), self.width), dtype=np.float32)
        ahead = torch.from_numpy(tails).to(self._model.device)
        for same in groups_of(np.array([len(one) for one in ids], dtype=np.int64)):
            for start in range(0, len(same), PREFIXES):
                members = same[start : start + PREFIXES]
                logs[members], own[members] = self._together([ids[int(at)] for at in members], ahead)
        return Reading(logs, own)

    @torch.inference_mode()
    def sample(self, sentence: str, count: int, tokens: int, seed: int) -> Indices:
        """Return texts that the model goes on with after a sentence, as tokens, ``(count, tokens)``.

        They are drawn by the model's probabilities alone, without a token that ends a text. How the model is set to
        generate, such as a penalty of repetitions, has no part in it.
        """
        prefix = [self.generator.start, *self._ids(sentence)]
        ids = torch.tensor([prefix], device=self._model.device)
        theirs = self._model.generation_config
        own = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, num_return_sequences=count, min_new_tokens=tokens,
            max_new_tokens=tokens, pad_token_id=prefix[0], eos_token_id=theirs.eos_token_id,
        )  # fmt: skip
        self._model.generation_config = own  # as an argument it would be filled up with what theirs sets
        try:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                whole = self._model.generate(ids, attention_mask=torch.ones_like(ids))
        finally:
            self._model.generation_config = theirs
        drawn: Indices = whole[:, len(prefix) :].cpu().numpy()
        return drawn

    def _ids(self, sentence: str) -> list[int]:
        return self.generator.ids(closed(sentence), inside=False)

    def _together(self, ids: list[list[int]], tails: Tensor) -> tuple[Embeddings, Embeddings]:
        """Read sentences of one length."""
        prefixes = torch.tensor([[self.generator.start, *one] for one in ids], device=self._model.device)
        read = self._model(input_ids=prefixes, use_cache=True, output_hidden_states=True, logits_to_keep=1)
        own = read.hidden_states[self.layer][:, 1:].float().mean(dim=1)
        first = read.logits[:, -1].float().log_softmax(-1)[:, tails[:, 0], None]
        each = max(1, self._most // (len(ids) * max(1, tails.shape[1] - 1)))
        rest = [self._behind(read.past_key_values, len(ids), part) for part in torch.split(tails, each)]
        return torch.cat([first, torch.cat(rest, dim=1)], dim=2).cpu().numpy(), own.cpu().numpy()

    def _behind(self, cache: Any, count: int, tails: Tensor) -> Tensor:
        """Return the log probabilities of all tokens of the tails but the first, ``(count, tails, tokens - 1)``."""
        if tails.shape[1] == 1:
            return torch.empty(count, len(tails), 0, device=tails.device)
        own = copy.deepcopy(cache)  # a forward adds to it
        own.batch_repeat_interleave(len(tails))
        ids = tails.repeat(count, 1)
        logits = self._model(input_ids=ids[:, :-1], past_key_values=own, use_cache=True).logits
        found = _log_p(logits.flatten(0, 1), ids[:, 1:].flatten())
        return found.view(count, len(tails), -1)


def closed(sentence: str) -> str:
    """Return a sentence with a full stop, unless it ends with a mark: a model would go on with the sentence itself."""
    text = sentence.rstrip()
    end = text.rstrip(_CLOSING)[-1:]
    if end in _MARKS:
        return text
    return text.rstrip(_PAUSES) + ("。" if "\u3040" <= end <= "\u9fff" or end in _PAUSES[3:] else ".")


def _log_p(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the log probability of the wanted token of each row, in float32."""
    chosen = logits.gather(1, wanted[:, None])[:, 0].float()
    return chosen - torch.cat([rows.float().logsumexp(-1) for rows in torch.split(logits, ROWS)])
