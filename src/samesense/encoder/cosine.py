"""From an encoder to a score of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.execution.progress import progress_bar
from samesense.types import Embeddings, Encode, Pair, Score, Scores

BLOCK_PAIRS = 4096
"""Pairs whose vectors are held in float64 at once."""

SHOWN = 60
"""Characters of a text that a message shows."""


def cosine_score(encode: Encode) -> Score:
    """Make a score in [-1, 1] from an encoder: the cosine of the two embeddings of a pair.

    Each distinct text is encoded once per call, in order of first appearance. Two equal embeddings score exactly 1, so
    that ties stay ties. The score raises ModelError if the encoder gives another number of rows, a number that is not
    finite, or an embedding of zeros only.
    """

    def score(pairs: Sequence[Pair]) -> Scores:
        place: dict[str, int] = {}
        for pair in pairs:
            for text in pair:
                place.setdefault(text, len(place))
        if not place:
            return np.zeros(0, dtype=np.float64)
        texts = list(place)
        embeddings = nonzero_rows(checked_rows(np.asarray(encode(texts)), texts), texts)
        left = np.array([place[first] for first, _ in pairs], dtype=np.intp)
        right = np.array([place[second] for _, second in pairs], dtype=np.intp)
        scores = np.empty(len(pairs), dtype=np.float64)
        for start in range(0, len(pairs), BLOCK_PAIRS):
            part = slice(start, start + BLOCK_PAIRS)
            scores[part] = row_cosines(embeddings[left[part]], embeddings[right[part]])
        return scores

    return score


def checked_rows(embeddings: npt.NDArray[Any], texts: Sequence[str]) -> npt.NDArray[np.floating]:
    """Return the embeddings ``(texts, dim)`` if they are one finite row a text."""
    if embeddings.ndim != 2 or len(embeddings) != len(texts):
        raise ModelError(
            f"The encoder must return one row for each text, a matrix of {len(texts)} rows; "
            f"got an array of shape {embeddings.shape}."
        )
    if not np.issubdtype(embeddings.dtype, np.floating):
        raise ModelError(f"The encoder must return floating-point embeddings, got {embeddings.dtype}.")
    broken = ~np.isfinite(embeddings).all(axis=1)
    if broken.any():
        raise ModelError(
            f"The embedding of {_shown(texts[int(np.argmax(broken))])} holds a NaN or an infinity "
            f"({int(broken.sum())} of {len(texts)} texts are affected). The model may have diverged, "
            "or run in a precision too low for it."
        )
    return embeddings


def nonzero_rows(embeddings: npt.NDArray[np.floating], texts: Sequence[str]) -> npt.NDArray[np.floating]:
    """Return the embeddings ``(texts, dim)`` if each can have a cosine."""
    zero = ~embeddings.any(axis=1)
    if zero.any():
        raise ModelError(
            f"The embedding of {_shown(texts[int(np.argmax(zero))])} is all zeros, so it has no cosine "
            f"({int(zero.sum())} of {len(texts)} texts are affected). Leave such texts out."
        )
    return embeddings


def row_cosines(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Scores:
    """Return the cosine of each row of ``left`` with that of ``right``, in float64, ``(rows,)``.

    It depends on the two rows alone, not on their neighbours as a matrix product does; equal rows give exactly 1.
    """
    one, other = _scaled(left), _scaled(right)
    product = np.einsum("ij,ij->i", one, other)
    lengths = np.sqrt(np.einsum("ij,ij->i", one, one) * np.einsum("ij,ij->i", other, other))
    cosines: Scores = np.clip(product / lengths, -1.0, 1.0)
    return cosines


def _scaled(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return ``rows`` in float64, each divided by its largest magnitude, so that no square overflows."""
    wide = rows.astype(np.float64)
    scaled: npt.NDArray[np.float64] = wide / np.abs(wide).max(axis=1, keepdims=True)
    return scaled


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


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
    """Return the rows of ``texts``, float32 ``(texts, dim)``, in their order; ModelError if a text is not a string.

    ``embed`` gives the rows ``(block, dim)`` of distinct texts, and is called with blocks of like length, the longest
    first. ``normalize`` scales every row to unit length; a row of zeros stays. ``on_progress`` is called with the
    number of texts just finished.
    """
    rows_of: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ModelError(f"Only strings can be encoded; text {row} is {text!r} of type {type(text).__name__}.")
        rows_of.setdefault(text, []).append(row)
    out = np.zeros((len(texts), dim), dtype=np.float32)
    ordered = sorted(rows_of, key=len, reverse=True)
    with progress_bar("encode", "text", len(texts), leave=False, inner=True) as bar:
        for start in range(0, len(ordered), BLOCK_TEXTS):
            block = ordered[start : start + BLOCK_TEXTS]
            embeddings = embed(block)
            if normalize:
                embeddings = unit(embeddings)
            for text, row in zip(block, embeddings, strict=True):
                out[rows_of[text]] = row
            done = sum(len(rows_of[text]) for text in block)
            bar.update(done)
            if on_progress is not None:
                on_progress(done)
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
