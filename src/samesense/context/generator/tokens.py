"""Windows as rows of tokens: what is read, what is generated, and where each sentence stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from samesense.context.corpus.corpus import Window
from samesense.context.generator.base import Kind, Reading, batches_of
from samesense.errors import DataError
from samesense.types import Indices

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from samesense.context.generator.transformer import Seq2Seq


PAD, START, END = 0, 1, 2
SPECIAL = ("<pad>", "<s>", "</s>")


class Part(NamedTuple):
    """A sentence and its place in the window: 0 for the centre, -1 for the sentence before, 1 for the one after."""

    text: str
    place: int


Row = tuple[Part, ...]
"""Sentences that are encoded together."""


class Packed(NamedTuple):
    """Rows of tokens, padded to one length: tokens, their places in their sentences, and the sentences' places."""

    tokens: Indices
    places: Indices
    sentences: Indices


def parts(kind: Kind, sentence: str, window: Window) -> tuple[Row, Row]:
    """Return what is read and what is generated when ``sentence`` stands in ``window``."""
    left = tuple(Part(text, at - len(window.left)) for at, text in enumerate(window.left))
    right = tuple(Part(text, at + 1) for at, text in enumerate(window.right))
    centre = (Part(sentence, 0),)
    source, target = {
        "sentence": (left + right, centre),
        "left": (centre + right, left),
        "right": (left + centre, right),
        "continuation": (centre, right),
    }[kind]
    if not source or not target:
        raise DataError(
            f"To generate the {kind}, a context must have it and something to read; context {window.id} has "
            f"{len(left)} sentences before its centre and {len(right)} after. Leave such windows out."
        )
    return source, target


class Tokens:
    """Turns sentences into tokens, each ending in the end mark; a sentence too long is cut, the mark kept."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self._known: dict[str, Indices] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Tokenise texts together, in place of those that were known before."""
        wanted = list(dict.fromkeys(texts))
        self._known = {text: self._known[text] for text in wanted if text in self._known}
        new = [text for text in wanted if text not in self._known]
        for text, found in zip(new, self.tokenizer.encode_batch(new, add_special_tokens=False), strict=True):
            self._known[text] = np.array([*found.ids[: self.max_tokens - 1], END], dtype=np.int64)

    def beyond(self, texts: Sequence[str]) -> list[str]:
        """Return those of the texts that are cut."""
        found = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [text for text, one in zip(texts, found, strict=True) if len(one.ids) >= self.max_tokens]

    def ids(self, text: str) -> Indices:
        """Return the tokens of a text that was learnt."""
        return self._known[text]

    def length(self, row: Row) -> int:
        """Return the tokens of a row, end marks included."""
        return sum(len(self._known[part.text]) for part in row)

    def pack(self, rows: Sequence[Row]) -> Packed:
        """Return the rows, ``(rows, length)`` each, padded at the right."""
        shape = (len(rows), max(self.length(row) for row in rows))
        packed = Packed(*(np.zeros(shape, dtype=np.int64) for _ in Packed._fields))
        for at, row in enumerate(rows):
            start = 0
            for part in row:
                ids = self._known[part.text]
                span = slice(start, start + len(ids))
                packed.tokens[at, span] = ids
                packed.places[at, span] = np.arange(len(ids))
                packed.sentences[at, span] = part.place
                start += len(ids)
        return packed


def shifted(target: Packed) -> Packed:
    """Return the decoder inputs for a target: its tokens one step late, with the places of what is predicted."""
    tokens = np.concatenate([np.full((len(target.tokens), 1), START), target.tokens[:, :-1]], axis=1)
    return target._replace(tokens=tokens)


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer: it reads every language, and knows every text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    ahead = iter(texts)
    first = list(islice(ahead, 1))
    if not first:
        raise DataError("A tokenizer is trained on sentences, and there are none.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain(first, ahead), trainer)
    return tokenizer


Source = tuple[Row, ...]
"""The rows that one target attends to."""


def source_of(read: Row, reading: Reading) -> Source:
    """Return what is read, cut into the rows that are encoded."""
    return tuple((part,) for part in read) if reading == "apart" else (read,)


class Layout:
    """Where the states of each row will be; ``packs`` are the rows in that order, those of like length together."""

    def __init__(self, tokens: Tokens, sources: Sequence[Source], budget: int) -> None:
        rows = list(dict.fromkeys(row for source in sources for row in source))
        lengths = [tokens.length(row) for row in rows]
        self.packs: list[Packed] = []
        self._spans: dict[Row, Indices] = {}
        end = 0
        for batch in batches_of(lengths, budget):
            members = [rows[at] for at in batch]
            self.packs.append(tokens.pack(members))
            for at, row in zip(batch, members, strict=True):
                self._spans[row] = np.arange(end, end + lengths[at], dtype=np.int64)
                end += lengths[at]

    def places(self, sources: Sequence[Source]) -> Indices:
        """Return where the states of each source are, ``(sources, length)``, -1 for padding."""
        spans = [np.concatenate([self._spans[row] for row in source]) for source in sources]
        places = np.full((len(spans), max(map(len, spans))), -1, dtype=np.int64)
        for at, span in enumerate(spans):
            places[at, : len(span)] = span
        return places


def on_device(packed: Packed, device: torch.device | str = "cpu") -> list[Tensor]:
    """Return the three matrices as tensors."""
    return [torch.from_numpy(part).to(device) for part in packed]


def encode_packs(model: Seq2Seq, packs: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return the states of all rows, ``(tokens, width)``, without padding, in the order of a :class:`Layout`."""
    return torch.cat([model.encode(*pack)[pack[0] != PAD] for pack in packs])


def gather(states: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states at these places, ``(sources, length, width)``, and where they are padding."""
    return states[places.clamp(min=0)], places < 0
