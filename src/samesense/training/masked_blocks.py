"""Running text as blocks of tokens, some of which are masked, for masked language modelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from samesense.errors import DataError
from samesense.losses.mlm import IGNORED
from samesense.types import Indices

FEW_DOCUMENTS = 10
"""Below this number of documents, blocks are held out and not whole documents."""

LEAST = 8
"""Minimum length of a block in tokens."""

MOST_HELD_OUT = 500
"""Maximum number of held-out blocks."""


class BlockMaker:
    """Cuts documents into blocks of tokens, and masks them.

    Of the chosen tokens, 80 % are masked, 10 % replaced by random ones, and 10 % unchanged. If the tokenizer has no
    mask token, an underscore is used. Source: Devlin et al. 2019, section 3.1; BehnamGhader et al. 2024, D.1.
    Differs: the same fraction of every block is chosen, instead of each token independently.

    Args:
        tokenizer: of the model.
        length: maximum length of a block in tokens.
        masked: fraction of tokens to be predicted.
        decoder: never choose the first token, since a decoder predicts a token from the one before.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, length: int, masked: float, *, decoder: bool = False
    ) -> None:
        self.tokenizer = tokenizer
        self.masked = masked
        self.first = int(decoder)
        # the special tokens that the tokenizer puts around any text
        text_ids = self._ids("a")
        all_ids = list(tokenizer("a")["input_ids"])
        position = next((i for i in range(len(all_ids)) if all_ids[i : i + len(text_ids)] == text_ids), 0)
        self.before = all_ids[:position]
        self.after = all_ids[position + len(text_ids) :]
        self.size = length - len(self.before) - len(self.after)
        mask = tokenizer.mask_token_id
        self.mask: int = self._ids("_")[-1] if mask is None else mask
        self.special = {*tokenizer.all_special_ids}
        if tokenizer.pad_token_id is not None:
            self.pad: int = tokenizer.pad_token_id
        else:
            self.pad = self.mask

    def _ids(self, text: str) -> list[int]:
        # Not verbose: it warns of documents longer than the model reads, and these are cut into blocks.
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def cut_blocks(self, document: Iterable[Sequence[str]]) -> Iterator[list[int]]:
        """Yield the blocks of a document, with the sentences of each section joined; the last block may be short."""
        ids = [token for section in document if section for token in self._ids(" ".join(section))]
        for start in range(0, len(ids), self.size):
            block = ids[start : start + self.size]
            if len(block) >= LEAST:
                yield [*self.before, *block, *self.after]

    def mask_block(self, block: Sequence[int], chance: np.random.Generator) -> tuple[list[int], list[int]]:
        """Return a block with some tokens masked, and its labels, :data:`IGNORED` for tokens that were not chosen."""
        free = [
            position for position, token in enumerate(block) if position >= self.first and token not in self.special
        ]
        ids = list(block)
        labels = [IGNORED] * len(block)
        for position in chance.permutation(free)[: max(1, round(self.masked * len(free)))]:
            labels[position] = block[position]
            draw = chance.random()
            if draw < 0.8:
                ids[position] = self.mask
            elif draw < 0.9:
                ids[position] = int(chance.integers(len(self.tokenizer)))
        return ids, labels

    def collate(self, examples: Sequence[tuple[list[int], list[int]]]) -> dict[str, Tensor]:
        """Return examples as tensors ``(blocks, tokens)``, padded to the longest."""
        ids, labels = ([torch.tensor(row) for row in rows] for rows in zip(*examples, strict=True))
        return {
            "ids": pad_sequence(ids, batch_first=True, padding_value=self.pad),
            "attention": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
            "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
        }


@dataclass(frozen=True)
class MaskedBlocks(Dataset):  # type: ignore[type-arg]
    """Blocks in the order of training, with a new mask in each pass; an example depends on its index alone."""

    blocks: Sequence[list[int]]
    maker: BlockMaker
    count: int  # number of examples in all passes
    seed: tuple[int, ...]
    shuffled: bool = True

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[list[int], list[int]]:
        if not 0 <= index < self.count:
            raise IndexError(index)
        epoch, number = divmod(index, len(self.blocks))
        if self.shuffled:
            number = int(_shuffle(self.seed, epoch, len(self.blocks))[number])
        # the seed includes the index, so that workers and resumed runs mask alike
        return self.maker.mask_block(self.blocks[number], np.random.default_rng([*self.seed, epoch, index]))


@lru_cache(maxsize=2)
def _shuffle(seed: tuple[int, ...], epoch: int, count: int) -> Indices:
    return np.random.default_rng([*seed, epoch]).permutation(count)


def hold_out_blocks(
    documents: Sequence[Sequence[list[int]]], fraction: float, seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Return training blocks and held-out blocks; whole documents are held out, unless there are only a few.

    At most :data:`MOST_HELD_OUT` blocks are held out, and no document with more than half of all blocks; if every
    document has more, single blocks are held out. DataError if there are fewer than two blocks.
    """
    blocks = [block for document in documents for block in document]
    if len(blocks) < 2:
        raise DataError(f"At least two blocks of {LEAST} tokens are needed, and the documents give {len(blocks)}.")
    target = max(1, min(MOST_HELD_OUT, round(fraction * len(blocks))))
    first_limit = max(target, min(MOST_HELD_OUT, len(blocks) // 2))  # the first document may exceed the target
    if len(documents) >= FEW_DOCUMENTS:
        units: Sequence[Sequence[list[int]]] = documents
    else:
        units = [[block] for block in blocks]
    training: list[list[int]] = []
    held_out: list[list[int]] = []
    for index in np.random.default_rng(seed).permutation(len(units)):
        limit = target if held_out else first_limit
        if len(held_out) + len(units[index]) <= limit:
            held_out.extend(units[index])
        else:
            training.extend(units[index])
    if not held_out:  # every document is too long: hold out single blocks
        return hold_out_blocks([blocks], fraction, seed)
    if not training:  # a few short documents: leave all but one block for training
        return held_out[1:], held_out[:1]
    return training, held_out
