"""What a causal language model says of a sentence: its hidden states, and the words that are likely to follow a prompt.

A sentence is read twice: by itself, up to a low layer, and in a prompt that asks for it in one word, to the end. The
last token of the prompt gives a hidden state and a distribution over the next word.

Source: Jiang et al. 2023 (PromptEOL, arXiv 2307.16645) for the prompt in one word and its last hidden state.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from samesense.context.generator.base import Generator, groups_of
from samesense.context.generator.language_models import CausalGenerator
from samesense.context.generator.pretrained import as_it_stands
from samesense.context.origin.prompt import LAYERS_ABOVE_STATE, OWN_LAYER, PROMPT
from samesense.errors import ConfigError, ModelError
from samesense.execution.unread import Unread, note
from samesense.types import Embeddings, Indices

FEWEST_WORDS = 100
"""Words that a vocabulary must have, so that one of them can say what a sentence is about."""

CPU_TOKENS = 1024
"""Tokens of one forward pass on a CPU: more are not faster."""

ACCELERATOR_TOKENS = 16384
"""The same on an accelerator; not measured."""

LONGEST_WORD = 5
"""Tokens of a word, at most, that is completed for a reader."""

_END_MARKS = ".!?…。！？｡．।॥؟۔։።"
_CLOSING_MARKS = "\"'”’»)]」』）】》"
_PAUSE_MARKS = ",;:，；："


@dataclass(frozen=True)
class Readings:
    """What was read of some sentences."""

    own: Embeddings  # mean hidden state of the sentence's tokens at a low layer, (sentences, width)
    states: Embeddings  # hidden state at the end of the prompt at a high layer, (sentences, width)
    log_probs: Embeddings  # log probability of each word of the vocabulary as the next one, (sentences, words)

    @classmethod
    def concatenate(cls, readings: Sequence[Readings]) -> Readings:
        """Join the readings of several lots of sentences, in their order."""
        arrays = zip(*((part.own, part.states, part.log_probs) for part in readings), strict=True)
        return cls(*(np.concatenate(parts) for parts in arrays))


class Reader:
    """Reads sentences, each as a text of its own and in the prompt.

    A sentence that is read by itself gets a full stop if it ends without a mark: a model would go on with the sentence,
    as after a headline. Its own vector leaves out the token before it, which is an attention sink.

    Args:
        generator: a causal language model.
        prompt: holds ``{text}`` once; what it ends with decides what kind of word follows.
        own_layer: layer of the own vectors, 0 for the embeddings.
        state_layer: layer of the state at the end of the prompt; ``None`` is two below the last.

    Raises:
        ModelError: if the language model is not causal, or has too few words.
        ConfigError: if it has no such layer, or the prompt has no place for the text.
    """

    def __init__(
        self,
        generator: Generator,
        *,
        prompt: str = PROMPT,
        own_layer: int = OWN_LAYER,
        state_layer: int | None = None,
    ) -> None:
        if not isinstance(generator, CausalGenerator):
            raise ModelError(
                f"Next words need a causal language model; received a {generator.protocol}. Name another model."
            )
        if prompt.count("{text}") != 1:
            raise ConfigError(f"A prompt holds {{text}} once, where the sentence goes; received {prompt!r}.")
        config = generator.model.config.get_text_config()
        depth = int(config.num_hidden_layers)
        if state_layer is None:
            state_layer = max(0, depth - LAYERS_ABOVE_STATE)
        for layer in (own_layer, state_layer):
            if not 0 <= layer <= depth:
                raise ConfigError(f"The language model has layers 0 to {depth}; received {layer}.")
        self.generator = generator
        self.prompt = prompt
        self.own_layer = own_layer
        self.state_layer = state_layer
        self.width = int(config.hidden_size)
        self.precision = generator.precision
        self.words = word_tokens(generator.tokenizer)
        if len(self.words) < FEWEST_WORDS:
            raise ModelError(
                f"Next words need a vocabulary with {FEWEST_WORDS} whole words or more; this language model has "
                f"{len(self.words)}, so that its first token says little. Name another model."
            )
        # The last entry changes when this class reads the same model in another way.
        self.identity = json.dumps([generator.identity, generator.start, prompt, own_layer, state_layer, "reader 4"])
        self._model: Any = generator.model
        self._layers = layers_of(self._model, depth)
        self._word_ids = torch.from_numpy(self.words).to(self._model.device)
        self._before, self._behind = prompt.split("{text}")
        self.longest = self._longest()
        self._prefix = self._prompt_prefix()
        self._prefix_keys: Any = None
        self._token_budget = CPU_TOKENS if self._model.device.type == "cpu" else ACCELERATOR_TOKENS

    def order(self, sentences: Sequence[str]) -> Indices:
        """Return the indices of sentences by their number of tokens: those of one length are read together."""
        order: Indices = np.argsort(np.minimum(self.lengths(sentences), self.longest), kind="stable")
        return order

    def lengths(self, sentences: Sequence[str]) -> Indices:
        """Return the number of tokens of each sentence, ``(sentences,)``, unread ones too; of a blank one 1.

        That is the full stop, which is read behind any text.
        """
        lengths = [self.generator.length(closed(text), inside=False) if text.strip() else 1 for text in sentences]
        return np.array(lengths, dtype=np.int64)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each token in a text; ModelError if the tokenizer does not say."""
        tokenizer = self.generator.tokenizer
        if not tokenizer.is_fast:
            raise ModelError("The language model's tokenizer does not say where a token stands: no text can be cut.")
        offsets: list[tuple[int, int]] = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)[
            "offset_mapping"
        ]
        return offsets

    def tokens_per_character(self, sentences: Sequence[str]) -> float:
        """Return the tokens of a character: much more than one in three is another language than the model's."""
        return float(self.lengths(sentences).sum() / max(1, sum(map(len, sentences))))

    def note_unread(self, sentences: Sequence[str]) -> None:
        """Count sentences whose end is not read; see :mod:`samesense.execution.unread`."""
        unread = Unread()
        distinct = list(dict.fromkeys(sentences))
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
        if not text.strip() or unknown not in self._ids_alone(text):
            return False
        return set(self.generator.ids(text, inside=False)) == {unknown}

    @torch.inference_mode()
    def read(self, sentences: Sequence[str]) -> Readings:
        """Return what the model says of some sentences."""
        own = np.empty((len(sentences), self.width), dtype=np.float32)
        states = np.empty_like(own)
        log_probs = np.empty((len(sentences), len(self.words)), dtype=np.float32)
        alone = [[self.generator.start, *self._ids_alone(text)] for text in sentences]
        for rows in self._batches(alone):
            own[rows] = self._own_vectors([alone[row] for row in rows])
        prompts = [self.prompt_ids(text) for text in sentences]
        for rows in self._batches(prompts):
            states[rows], log_probs[rows] = self._end_of_prompts([prompts[row] for row in rows])
        return Readings(own, states, log_probs)

    @torch.inference_mode()
    def complete(self, sentence: str, tokens: Indices) -> list[str]:
        """Return the word that each token begins behind the prompt of a sentence, by the likeliest next tokens.

        A token may be a part of a word, such as ``Gu`` of ``Guitar``.
        """
        tokenizer = self.generator.tokenizer
        ids = torch.tensor([self.prompt_ids(sentence)], device=self._model.device)
        cache = self._model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        cache.batch_repeat_interleave(len(tokens))
        rows = torch.from_numpy(tokens).to(self._model.device)[:, None]
        written = rows
        for _ in range(LONGEST_WORD - 1):
            logits = self._model(input_ids=written, past_key_values=cache, use_cache=True).logits[:, -1]
            written = logits.argmax(-1, keepdim=True)
            rows = torch.cat([rows, written], dim=1)
        return [leading_word(text) for text in tokenizer.batch_decode(rows)]

    def is_frequent(self, word: str) -> bool:
        """Return whether a word, as it stands in running text, is one token: fragments of words are not."""
        forms = (as_it_stands(form, inside=True) for form in (word.lower(), word.capitalize()))
        return any(len(self.generator.tokenizer(form, add_special_tokens=False)["input_ids"]) == 1 for form in forms)

    def prompt_ids(self, sentence: str) -> list[int]:
        """Return the tokens of a sentence in the prompt, the end of a long sentence left out."""
        tokenizer = self.generator.tokenizer
        text = sentence.strip()
        ids = self.generator.ids(text, inside=False)
        if len(ids) >= self.longest:
            text = tokenizer.decode(ids[: self.longest])
        prompt = f"{self._before}{text}{self._behind}"
        return [self.generator.start, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]

    def _longest(self) -> int:
        """Return the tokens of a sentence that are read, so that prompt and word fit in the model's positions."""
        longest = self.generator.max_tokens
        positions = self.generator.positions
        if positions is None:
            return longest
        prompt = self.generator.tokenizer(self._before + self._behind, add_special_tokens=False)["input_ids"]
        room = positions - len(prompt) - 1 - LONGEST_WORD
        if room < 1:
            raise ModelError(f"The prompt does not fit in the {positions} positions of the language model.")
        return min(longest, room)

    def _prompt_prefix(self) -> list[int]:
        """Return the tokens with which every prompt begins: all but the last before the text, which may join it."""
        ids = self.generator.tokenizer(self._before, add_special_tokens=False)["input_ids"]
        return [self.generator.start, *ids[:-1]]

    def _ids_alone(self, sentence: str) -> list[int]:
        return self.generator.ids(closed(sentence), inside=False)[: self.longest]

    def _batches(self, rows: Sequence[Sequence[int]]) -> list[Indices]:
        """Return the indices of rows that are read together: of one length, so that there is no padding."""
        batches = []
        for same in groups_of(np.array([len(row) for row in rows], dtype=np.int64)):
            size = max(1, self._token_budget // len(rows[int(same[0])]))
            batches += [same[start : start + size] for start in range(0, len(same), size)]
        return batches

    def _own_vectors(self, rows: list[list[int]]) -> Embeddings:
        """Return the mean hidden state of the tokens of each row but the first; no layer above is computed."""
        ids = torch.tensor(rows, device=self._model.device)
        # No layer comes after the last one, whose input could be taken.
        if self.own_layer == len(self._layers):
            hidden = self._model.get_decoder()(input_ids=ids).last_hidden_state
        else:
            hidden = self._input_of_layer(self.own_layer, ids)
        vectors: Embeddings = hidden[:, 1:].float().mean(dim=1).cpu().numpy()
        return vectors

    def _input_of_layer(self, layer: int, ids: Tensor) -> Tensor:
        """Return what enters a layer, ``(rows, tokens, width)``, and stop there."""

        def stop(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            raise _Reached(arguments[0] if arguments else named["hidden_states"])

        hook = self._layers[layer].register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self._model.get_decoder()(input_ids=ids, use_cache=False)
        except _Reached as reached:
            return reached.hidden
        finally:
            hook.remove()
        raise ModelError("The language model does not run its layers one after the other. Name another model.")

    def _end_of_prompts(self, rows: list[list[int]]) -> tuple[Embeddings, Embeddings]:
        """Return the state at the last token of each row, and the log probabilities of the next word."""
        ids = torch.tensor(rows, device=self._model.device)
        prefix: dict[str, Any] = {}
        if all(row[: len(self._prefix)] == self._prefix for row in rows):
            prefix["past_key_values"] = self._prefix_cache(len(rows))
            ids = ids[:, len(self._prefix) :]
        # Logits of the last token alone: those of all tokens over the vocabulary would be the largest tensor.
        output = self._model(input_ids=ids, use_cache=True, output_hidden_states=True, logits_to_keep=1, **prefix)
        states = output.hidden_states[self.state_layer][:, -1].float()
        log_probs = output.logits[:, -1].float().log_softmax(-1)[:, self._word_ids]
        return states.cpu().numpy(), log_probs.cpu().numpy()

    def _prefix_cache(self, rows: int) -> Any:
        """Return the keys and values of the prompt's beginning, for a number of rows."""
        if self._prefix_keys is None:
            ids = torch.tensor([self._prefix], device=self._model.device)
            self._prefix_keys = self._model(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values
        cache = copy.deepcopy(self._prefix_keys)  # a forward pass adds to it
        cache.batch_repeat_interleave(rows)
        return cache


class _Reached(Exception):  # noqa: N818 - no error: what was wanted is there
    """A forward pass has come as far as it must."""

    def __init__(self, hidden: Tensor) -> None:
        self.hidden = hidden


def layers_of(model: nn.Module, depth: int) -> nn.ModuleList:
    """Return the layers of a transformer; ModelError if it does not have them in one list."""
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == depth:
            return module
    raise ModelError(f"The language model has no list of its {depth} layers. Name another model.")


def word_tokens(tokenizer: Any) -> Indices:
    """Return the tokens that are a word, or begin one, without a space before it, ``(words,)``."""
    ids = list(range(len(tokenizer)))
    texts = tokenizer.batch_decode([[token] for token in ids])
    pieces = tokenizer.convert_ids_to_tokens(ids)  # SentencePiece writes a space as ▁, and decodes it to nothing
    words = [
        token
        for token, text, piece in zip(ids, texts, pieces, strict=True)
        if len(text) > 1 and text.isalpha() and not piece.startswith("▁")
    ]
    return np.array(words, dtype=np.int64)


def leading_word(text: str) -> str:
    """Return the letters with which a text begins."""
    end = next((index for index, letter in enumerate(text) if not letter.isalpha()), len(text))
    return text[:end]


def closed(sentence: str) -> str:
    """Return a sentence with a full stop, unless it ends with a mark: a model would go on with the sentence itself."""
    text = sentence.rstrip()
    end = text.rstrip(_CLOSING_MARKS)[-1:]
    if end in _END_MARKS:
        return text
    is_east_asian = "\u3040" <= end <= "\u9fff" or end in _PAUSE_MARKS[3:]
    return text.rstrip(_PAUSE_MARKS) + ("。" if is_east_asian else ".")
