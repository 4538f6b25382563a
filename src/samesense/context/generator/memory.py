"""Encoder states of many rows, end to end, from which what each target attends to is gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from samesense.context.generator.base import Reading
from samesense.context.generator.batching import batches_of
from samesense.context.generator.tokens import PAD, Ids, Packed, Row, Tokens

if TYPE_CHECKING:
    from samesense.context.generator.transformer import Seq2Seq

Source = tuple[Row, ...]
"""The rows that one target attends to."""


def source_of(read: Row, reading: Reading) -> Source:
    """Return what is read, cut into the rows that are encoded."""
    return tuple((part,) for part in read) if reading == "apart" else (read,)


class Layout:
    """Where the states of each row will be.

    Args:
        tokens: knows the texts of all rows.
        sources: whose rows are to be encoded, each distinct row once.
        budget: most tokens of one pack, padding included.

    Attributes:
        packs: the rows in the order of their states, those of like length together.
    """

    def __init__(self, tokens: Tokens, sources: Sequence[Source], budget: int) -> None:
        rows = list(dict.fromkeys(row for source in sources for row in source))
        lengths = [tokens.length(row) for row in rows]
        self.packs: list[Packed] = []
        self._spans: dict[Row, Ids] = {}
        end = 0
        for batch in batches_of(lengths, budget):
            members = [rows[at] for at in batch]
            self.packs.append(tokens.pack(members))
            for at, row in zip(batch, members, strict=True):
                self._spans[row] = np.arange(end, end + lengths[at], dtype=np.int64)
                end += lengths[at]

    def places(self, sources: Sequence[Source]) -> Ids:
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
