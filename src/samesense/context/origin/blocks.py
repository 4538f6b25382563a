"""Parts of a sentence's vector, each whitened and of unit length, weighted and joined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from samesense.errors import DataError, ModelError
from samesense.failures import DAMAGED
from samesense.files import replacing
from samesense.types import Embeddings, Floats

CellsOf = Literal["means", "tokens"]
"""What of a tail counts: the mean log probability of its tokens, or that of each token."""


@dataclass(frozen=True)
class Block:
    """One part: what is taken off the numbers of a sentence, the map that whitens them, and how much it counts."""

    name: str
    mean: Floats  # (numbers,)
    matrix: Floats  # (numbers, dim)
    weight: float  # share of this part in the cosine; those of all parts sum to 1

    def centred(self, numbers: Embeddings) -> Floats:
        """Return the numbers of sentences ``(n, numbers)`` as deviations from what is usual."""
        return numbers.astype(np.float64) - self.mean

    def apply(self, numbers: Embeddings) -> Floats:
        """Return rows of length ``sqrt(weight)``, ``(n, dim)``; ModelError if one is exactly what is usual."""
        rows = self.centred(numbers) @ self.matrix
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (lengths > 0).all():
            raise ModelError(f"The part {self.name} of a sentence is exactly the mean, so that it has no direction.")
        unit: Floats = math.sqrt(self.weight) * rows / lengths
        return unit


def joined(parts: Mapping[str, Embeddings], blocks: Sequence[Block]) -> Embeddings:
    """Return unit vectors ``(n, sum of dims)``, whose cosine is the weighted mean of the cosines of all parts.

    Args:
        parts: numbers of the same sentences for each block, by its name, ``(n, numbers)``.
        blocks: what is joined, in their order.
    """
    return np.concatenate([block.apply(parts[block.name]) for block in blocks], axis=1).astype(np.float32)


def write_blocks(path: Path, blocks: Sequence[Block]) -> None:
    """Write blocks as one file."""
    with replacing(path) as beside:
        arrays = {
            f"{block.name}.{part}": getattr(block, part) for block in blocks for part in ("mean", "matrix", "weight")
        }
        with beside.open("wb") as sink:
            np.savez(sink, **arrays)


def read_blocks(path: Path) -> list[Block]:
    """Read what :func:`write_blocks` wrote; DataError if it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            names = dict.fromkeys(key.rpartition(".")[0] for key in arrays)
            return [
                Block(name, arrays[f"{name}.mean"], arrays[f"{name}.matrix"], float(arrays[f"{name}.weight"]))
                for name in names
            ]
    except DAMAGED as error:
        raise DataError(f"{path} holds no whole whitening ({error}). Make the Origin anew.") from error
