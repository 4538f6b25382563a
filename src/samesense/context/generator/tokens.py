"""Windows as rows of tokens: the source, the target, and the position of each sentence."""

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


PAD = 0
START = 1
END = 2
SPECIAL = ("<pad>", "<s>", "</s>")


class WindowSentence(NamedTuple):
    """A sentence and its offset in the window: 0 for the centre, -1 for the sentence before, 1 for the one after."""

    text: str
    offset: int


Row = tuple[WindowSentence, ...]
"""Sentences that are encoded together."""


class Packed(NamedTuple):
    """Rows padded to one length: tokens, their positions in their sentences, and the offsets of the sentences."""

    tokens: Indices
    positions: Indices
    offsets: Indices


def split_window(kind: Kind, sentence: str, window: Window) -> tuple[Row, Row]:
    """Return the sentences to read and those to generate, with ``sentence`` as the centre of ``window``."""
    left = tuple(WindowSentence(text, index - len(window.left)) for index, text in enumerate(window.left))
    right = tuple(WindowSentence(text, index + 1) for index, text in enumerate(window.right))
    centre = (WindowSentence(sentence, 0),)
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
    """Turns sentences into tokens that end in the end mark; a long sentence is truncated before its mark."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self._ids: dict[str, Indices] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Tokenize a batch of texts, and forget earlier texts that are not in it."""
        distinct = list(dict.fromkeys(texts))
        self._ids = {text: self._ids[text] for text in distinct if text in self._ids}
        new = [text for text in distinct if text not in self._ids]
        for text, encoding in zip(new, self.tokenizer.encode_batch(new, add_special_tokens=False), strict=True):
            self._ids[text] = np.array([*encoding.ids[: self.max_tokens - 1], END], dtype=np.int64)

    def beyond(self, texts: Sequence[str]) -> list[str]:
        """Return the texts that are truncated."""
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        # The end mark takes one of the tokens.
        return [text for text, encoding in zip(texts, encodings, strict=True) if len(encoding.ids) >= self.max_tokens]

    def ids(self, text: str) -> Indices:
        """Return the tokens of a text that was passed to :meth:`learn`."""
        return self._ids[text]

    def length(self, row: Row) -> int:
        """Return the number of tokens of a row, end marks included."""
        return sum(len(self._ids[sentence.text]) for sentence in row)

    def pack(self, rows: Sequence[Row]) -> Packed:
        """Return the rows, ``(rows, length)`` each, padded at the right."""
        shape = (len(rows), max(self.length(row) for row in rows))
        packed = Packed(*(np.zeros(shape, dtype=np.int64) for _ in Packed._fields))
        for index, row in enumerate(rows):
            start = 0
            for sentence in row:
                ids = self._ids[sentence.text]
                span = slice(start, start + len(ids))
                packed.tokens[index, span] = ids
                packed.positions[index, span] = np.arange(len(ids))
                packed.offsets[index, span] = sentence.offset
                start += len(ids)
        return packed


def shifted(target: Packed) -> Packed:
    """Return the decoder inputs of a target: its tokens shifted right, with the positions of the predicted tokens."""
    tokens = np.concatenate([np.full((len(target.tokens), 1), START), target.tokens[:, :-1]], axis=1)
    return target._replace(tokens=tokens)


def train_tokenizer(texts: Iterable[str], size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer, which has no unknown tokens in any language."""
    # Only training a vocabulary needs the library; its type is imported for checks alone.
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
"""Rows that one target attends to."""


def source_of(read: Row, reading: Reading) -> Source:
    """Return the rows to encode: each sentence by itself, or all of them in one row."""
    if reading == "apart":
        return tuple((sentence,) for sentence in read)
    return (read,)


class Layout:
    """Plans where the states of each row will be; ``packs`` are the rows in that order, batched by length."""

    def __init__(self, tokens: Tokens, sources: Sequence[Source], budget: int) -> None:
        rows = list(dict.fromkeys(row for source in sources for row in source))
        lengths = [tokens.length(row) for row in rows]
        self.packs: list[Packed] = []
        self._spans: dict[Row, Indices] = {}
        end = 0
        for batch in batches_of(lengths, budget):
            members = [rows[index] for index in batch]
            self.packs.append(tokens.pack(members))
            for index, row in zip(batch, members, strict=True):
                self._spans[row] = np.arange(end, end + lengths[index], dtype=np.int64)
                end += lengths[index]

    def state_indices(self, sources: Sequence[Source]) -> Indices:
        """Return the indices of the states of each source, ``(sources, length)``, -1 for padding."""
        spans = [np.concatenate([self._spans[row] for row in source]) for source in sources]
        indices = np.full((len(spans), max(map(len, spans))), -1, dtype=np.int64)
        for row, span in enumerate(spans):
            indices[row, : len(span)] = span
        return indices


def on_device(packed: Packed, device: torch.device | str = "cpu") -> list[Tensor]:
    """Return the three matrices as tensors on a device."""
    return [torch.from_numpy(matrix).to(device) for matrix in packed]


def encode_packs(model: Seq2Seq, packs: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return the states of all rows, ``(tokens, width)``, without padding, in the order of a :class:`Layout`."""
    return torch.cat([model.encode(*pack)[pack[0] != PAD] for pack in packs])


def gather(states: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states at these indices, ``(sources, length, width)``, and a mask of the padding."""
    return states[indices.clamp(min=0)], indices < 0  # padding takes the first state, which attention masks
