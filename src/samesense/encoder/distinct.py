"""Encode each distinct text once, in batches of similar length, with any encoder; needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from samesense.encoder.cosine import unit
from samesense.errors import ModelError
from samesense.execution.progress import progress_bar
from samesense.failures import excerpt
from samesense.types import Embeddings

BLOCK_TEXTS = 512
"""Texts tokenised at once."""


def encode_distinct(
    texts: Sequence[str],
    embed: Callable[[list[str]], Embeddings],
    dim: int,
    *,
    normalize: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts``, float32 ``(texts, dim)``, in order; ModelError if a text is not a string.

    ``embed`` returns the rows ``(block, dim)`` of distinct texts; it is called with blocks of similar length, the
    longest texts first. ``normalize`` scales every row to unit length; a row of zeros stays. ``on_progress`` is called
    with the number of texts just finished.
    """
    rows_of: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ModelError(
                f"Only strings can be encoded; text {row} is {excerpt(text)} of type {type(text).__name__}."
            )
        rows_of.setdefault(text, []).append(row)
    out = np.zeros((len(texts), dim), dtype=np.float32)
    ordered = sorted(rows_of, key=len, reverse=True)
    with progress_bar("encode", "text", len(texts), leave=False, inner=True) as bar:
        for start in range(0, len(ordered), BLOCK_TEXTS):
            block = ordered[start : start + BLOCK_TEXTS]
            try:
                embeddings = embed(block)
            except TypeError as error:
                # Tokenizers refuse a text that is no UTF-8 without saying which.
                raise _not_a_text(block) or error from error
            if normalize:
                embeddings = unit(embeddings)
            for text, row in zip(block, embeddings, strict=True):
                out[rows_of[text]] = row
            done = sum(len(rows_of[text]) for text in block)
            bar.update(done)
            if on_progress is not None:
                on_progress(done)
    return out


def _not_a_text(texts: Sequence[str]) -> ModelError | None:
    """Return the error of the first text with half of a surrogate pair, which is no character."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return ModelError(
                f"Only texts of whole characters can be encoded; {text[:60]!r} holds half of a surrogate pair at place "
                f"{error.start}. Read its file again as UTF-8, or delete it there."
            )
    return None


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield indices of ``lengths`` in batches of similar length, each within ``budget`` tokens, padding included."""
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    for start, end in within_budget([lengths[position] for position in order], budget):
        yield order[start:end]


def within_budget(lengths: Sequence[int], budget: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of batches, for rows sorted by descending length, each within ``budget`` padded tokens.

    A row longer than the budget is a batch by itself.
    """
    start = 0
    while start < len(lengths):
        end = min(len(lengths), start + max(1, budget // max(1, lengths[start])))
        yield start, end
        start = end
