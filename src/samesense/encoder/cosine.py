"""Cosine scores of pairs from an encoder, and checks of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ModelError
from samesense.failures import shorten_text
from samesense.types import Embeddings, Encode, Pair, Score, Scores

BLOCK_PAIRS = 4096
"""Pairs whose vectors are held in float64 at once."""

SHOWN = 60
"""Characters of a text that a message shows."""


def cosine_score(encode: Encode, encode_first: Encode | None = None) -> Score:
    """Make a score in [-1, 1] from an encoder: the cosine of the two embeddings of a pair.

    Each distinct text is encoded once per call, in order of first appearance; ``encode_first``, if given, encodes the
    first texts of the pairs. Two equal embeddings score exactly 1, so that ties stay ties. The score raises ModelError
    if the encoder returns another number of rows, a number that is not finite, or an embedding of zeros only.
    """

    def score(pairs: Sequence[Pair]) -> Scores:
        if not len(pairs):
            return np.zeros(0, dtype=np.float64)
        if encode_first is None:
            row_of, embeddings = _embed_distinct([text for pair in pairs for text in pair], encode)
            first_row_of = row_of
            first_embeddings = embeddings
        else:
            first_row_of, first_embeddings = _embed_distinct([pair[0] for pair in pairs], encode_first)
            row_of, embeddings = _embed_distinct([pair[1] for pair in pairs], encode)
        first_rows = np.array([first_row_of[first] for first, _ in pairs], dtype=np.intp)
        second_rows = np.array([row_of[second] for _, second in pairs], dtype=np.intp)
        scores = np.empty(len(pairs), dtype=np.float64)
        for start in range(0, len(pairs), BLOCK_PAIRS):
            block = slice(start, start + BLOCK_PAIRS)
            scores[block] = row_cosines(first_embeddings[first_rows[block]], embeddings[second_rows[block]])
        return scores

    return score


def _embed_distinct(texts: Sequence[str], encode: Encode) -> tuple[dict[str, int], npt.NDArray[np.floating]]:
    """Return the row of each distinct text, and their embeddings ``(texts, dim)``."""
    distinct = list(dict.fromkeys(texts))
    rows = nonzero_rows(checked_rows(np.asarray(encode(distinct)), distinct), distinct)
    return {text: row for row, text in enumerate(distinct)}, rows


def checked_rows(embeddings: npt.NDArray[Any], texts: Sequence[str]) -> npt.NDArray[np.floating]:
    """Return the embeddings ``(texts, dim)``; ModelError unless there is one finite row per text."""
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
            f"The embedding of {shorten_text(texts[int(np.argmax(broken))], SHOWN)!r} holds a NaN or an infinity "
            f"({int(broken.sum())} of {len(texts)} texts are affected). The model may have diverged, "
            "or run in a precision too low for it."
        )
    return embeddings


def nonzero_rows(embeddings: npt.NDArray[np.floating], texts: Sequence[str]) -> npt.NDArray[np.floating]:
    """Return the embeddings ``(texts, dim)``; ModelError if one is all zeros and so has no cosine."""
    zero = ~embeddings.any(axis=1)
    if zero.any():
        raise ModelError(
            f"The embedding of {shorten_text(texts[int(np.argmax(zero))], SHOWN)!r} is all zeros, so it has no cosine "
            f"({int(zero.sum())} of {len(texts)} texts are affected). Leave such texts out."
        )
    return embeddings


def row_cosines(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Scores:
    """Return the cosine of each row of ``left`` with that of ``right``, in float64, ``(rows,)``.

    The result depends on the two rows alone, unlike that of a matrix product; equal rows give exactly 1.
    """
    scaled_left = _scaled(left)
    scaled_right = _scaled(right)
    product = np.einsum("ij,ij->i", scaled_left, scaled_right)
    # One root of the product: the length of two equal rows is then their product, to the last bit.
    lengths = np.sqrt(
        np.einsum("ij,ij->i", scaled_left, scaled_left) * np.einsum("ij,ij->i", scaled_right, scaled_right)
    )
    cosines: Scores = np.clip(product / lengths, -1.0, 1.0)
    return cosines


def _scaled(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return ``rows`` in float64, each divided by its largest magnitude, so that no square overflows."""
    exact = rows.astype(np.float64)
    scaled: npt.NDArray[np.float64] = exact / np.abs(exact).max(axis=1, keepdims=True)
    return scaled


def unit(rows: Embeddings) -> Embeddings:
    """Return the rows ``(n, dim)`` scaled to unit length; rows of zeros as they are."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Embeddings = rows / np.maximum(lengths, np.float32(1e-12))
    return scaled
