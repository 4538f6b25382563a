"""Triplet loss: the positive closer to the anchor than the negative, by a margin.

    L = mean over triplets of  max(0, d(anchor, positive) - d(anchor, negative) + margin)

with ``d`` the Euclidean distance, or ``1 - cos``.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from samesense.losses.cosine import reduced, row_cosine, widen

Distance = Literal["cosine", "euclidean"]
"""``1 - cos``, or the length of the difference."""

# 1 is that of Reimers and Gurevych 2019. Unit vectors a Euclidean 1 apart have the cosine distance 1/2.
MARGINS: dict[str, float] = {"cosine": 0.5, "euclidean": 1.0}
"""Margin of each distance where none is asked for."""


def triplet(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    distance: Distance = "cosine",
    margin: float | None = None,
) -> Tensor:
    """Return the triplet loss of one batch, a scalar.

    Args:
        anchors: ``(triplets, dim)`` embeddings.
        positives: ``(triplets, dim)`` embeddings.
        negatives: ``(triplets, dim)`` embeddings.
        distance: ``"cosine"`` for ``1 - cos``, ``"euclidean"`` for the length of the difference.
        margin: how much further away the negative must be; ``None`` is 0.5 for cosine and 1 for Euclidean distance.
            Cosine distances, and Euclidean distances of unit vectors, lie in [0, 2]: there the margin of 5 that some
            libraries default to is unreachable, and every triplet costs something for ever.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over triplets, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not two-dimensional, or distance or margin is out of range.

    Source: Reimers and Gurevych 2019, triplet objective (Euclidean, margin 1); Schroff et al. 2015.
    Differs: cosine distance by default, as sentences are compared by cosine afterwards. Distances are not squared, and
        where two embeddings coincide the Euclidean distance has gradient 0.

    Example:
        >>> a, p, n = torch.tensor([[[1.0, 0.0]], [[0.6, 0.8]], [[0.8, 0.6]]])
        >>> triplet(a, p, n)  # 0.4 - 0.2 + 0.5
        tensor(0.7000)
    """
    if anchors.ndim != 2 or not anchors.shape == positives.shape == negatives.shape:
        raise ValueError(
            f"triplet takes three matrices of shape (triplets, dim); "
            f"received {tuple(anchors.shape)}, {tuple(positives.shape)} and {tuple(negatives.shape)}."
        )
    margin = margin_of(distance, margin)
    near, far = _distances(anchors, positives, distance), _distances(anchors, negatives, distance)
    return reduced((near - far + margin).clamp(min=0), "mean")


def margin_of(distance: str, margin: float | None) -> float:
    """Return the margin to use with ``distance``; ValueError if either is out of range."""
    if distance not in MARGINS:
        raise ValueError(f"distance must be 'cosine' or 'euclidean'; received {distance!r}.")
    if margin is not None and not margin >= 0:
        raise ValueError(f"margin must be >= 0; received {margin}.")
    return MARGINS[distance] if margin is None else margin


def _distances(u: Tensor, v: Tensor, distance: str) -> Tensor:
    """Return the distance ``(rows,)`` of each row of ``u`` from the same row of ``v``."""
    if distance == "cosine":
        return 1 - row_cosine(u, v)
    lengths: Tensor = torch.linalg.vector_norm(widen(u) - widen(v), dim=1)
    return lengths
