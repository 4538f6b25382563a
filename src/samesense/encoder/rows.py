"""Rows in the order of their texts, each distinct text computed once; knows nothing of what computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from samesense.errors import ModelError
from samesense.types import Embeddings

BLOCK_TEXTS = 512
"""Texts tokenised at once."""


def each_once(
    texts: Sequence[str],
    embed: Callable[[list[str]], Embeddings],
    dim: int,
    *,
    normalize: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Embeddings:
    """Return the rows of ``texts``, float32 ``(texts, dim)``, in their order.

    Args:
        texts: any number of strings; equal ones are computed once.
        embed: distinct texts to their rows ``(block, dim)``; called with blocks of like length, the longest first.
        dim: width of a row.
        normalize: scale every row to unit length; a row of zeros stays.
        on_progress: called with the number of texts that have just been finished.

    Raises:
        ModelError: if a text is not a string.
    """
    rows_of: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ModelError(f"Only strings can be encoded; text {row} is {text!r} of type {type(text).__name__}.")
        rows_of.setdefault(text, []).append(row)
    out = np.zeros((len(texts), dim), dtype=np.float32)
    for block in _blocks(sorted(rows_of, key=len, reverse=True)):
        embeddings = embed(block)
        if normalize:
            embeddings = unit(embeddings)
        for text, row in zip(block, embeddings, strict=True):
            out[rows_of[text]] = row
        if on_progress is not None:
            on_progress(sum(len(rows_of[text]) for text in block))
    return out


def unit(rows: Embeddings) -> Embeddings:
    """Return the rows ``(n, dim)`` scaled to unit length; rows of zeros as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Embeddings = rows / np.maximum(lengths, np.float32(1e-12))
    return scaled


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield places of ``lengths`` in batches of like length, each within ``budget`` tokens, padding included.

    A text longer than the budget is a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda at: -lengths[at])
    start = 0
    while start < len(order):
        count = max(1, budget // max(1, lengths[order[start]]))
        yield order[start : start + count]
        start += count


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), BLOCK_TEXTS):
        yield texts[start : start + BLOCK_TEXTS]
