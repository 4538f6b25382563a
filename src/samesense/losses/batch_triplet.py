"""Triplet losses that find their triplets in a labelled batch.

    batch_all  = mean over the triplets with a loss above 0 of  d(a, p) - d(a, n) + margin
    batch_hard = mean over anchors of  max(0, max over p of d(a, p) - min over n of d(a, n) + margin)

``p`` runs over the others of the anchor's label, ``n`` over all of other labels. An anchor without either is left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from samesense.losses.cosine import cosine_matrix, reduced, widen
from samesense.losses.triplet import Distance, margin_of


def batch_all(
    embeddings: Tensor, labels: Tensor, *, distance: Distance = "cosine", margin: float | None = None
) -> Tensor:
    """Return the mean loss of the batch's triplets that have one, a scalar.

    Args:
        embeddings: ``(n, dim)``.
        labels: ``(n,)`` class of each; only equality counts.
        distance: as in :func:`~samesense.losses.triplet`.
        margin: as in :func:`~samesense.losses.triplet`.

    Returns:
        Scalar in float32 (float64 for float64 embeddings); 0 with gradient zero if no triplet has a loss.

    Raises:
        ValueError: if the shapes do not fit, or distance or margin is out of range.

    Source: Hermans et al. 2017, Eq. 6 averaged over non-zero terms.
    Differs: cosine distance by default. Each anchor's negatives are sorted and summed up once, so time is
        O(n^2 log n) and memory O(n^2) where the triplets themselves are cubic.

    Example:
        >>> batch_all(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 0, 1]))  # 0 - 0.4 + 0.5
        tensor(0.1000)
    """
    distances, positive, negative = _pairs("batch_all", embeddings, labels, distance)
    limits = distances + margin_of(distance, margin)  # a negative nearer than this costs the difference
    ordered = distances.masked_fill(~negative, torch.inf).sort(dim=1).values
    nearer = torch.searchsorted(ordered.detach(), limits.detach())
    sums = torch.cat([ordered.new_zeros(len(ordered), 1), ordered.cumsum(dim=1)], dim=1).gather(1, nearer)
    losses = (nearer * limits - sums)[positive]
    return losses.sum() / nearer[positive].sum().clamp(min=1)  # without a triplet the sum is 0, and stays 0


def batch_hard(
    embeddings: Tensor, labels: Tensor, *, distance: Distance = "cosine", margin: float | None = None
) -> Tensor:
    """Return the mean over anchors of the loss of their furthest positive and nearest negative, a scalar.

    Args:
        embeddings: ``(n, dim)``.
        labels: ``(n,)`` class of each; only equality counts.
        distance: as in :func:`~samesense.losses.triplet`.
        margin: as in :func:`~samesense.losses.triplet`.

    Returns:
        Scalar in float32 (float64 for float64 embeddings); 0 with gradient zero if no anchor has both. Equally far
        positives, or equally near negatives, share the gradient.

    Raises:
        ValueError: if the shapes do not fit, or distance or margin is out of range.

    Source: Hermans et al. 2017, Eq. 5.
    Differs: cosine distance by default; a mean over anchors where Eq. 5 prints the sum.

    Example:
        >>> batch_hard(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]]), torch.tensor([0, 0, 1]))
        tensor(0.1000)
    """
    distances, positive, negative = _pairs("batch_hard", embeddings, labels, distance)
    anchors = positive.any(dim=1) & negative.any(dim=1)
    furthest = distances.masked_fill(~positive, -torch.inf)[anchors].amax(dim=1)
    nearest = distances.masked_fill(~negative, torch.inf)[anchors].amin(dim=1)
    return reduced((furthest - nearest + margin_of(distance, margin)).clamp(min=0), "mean")


def _pairs(loss: str, embeddings: Tensor, labels: Tensor, distance: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return distances, which are of another with the same label, and which of another label, each ``(n, n)``."""
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"{loss} takes embeddings (n, dim) and labels (n,); "
            f"received embeddings {tuple(embeddings.shape)} and labels {tuple(labels.shape)}."
        )
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return _distance_matrix(embeddings, distance), positive, ~same


def _distance_matrix(embeddings: Tensor, distance: str) -> Tensor:
    """Return the distances ``(n, n)``; the Euclidean one from differences, as a matrix product cancels small ones."""
    if distance == "cosine":
        return 1 - cosine_matrix(embeddings, embeddings)
    wide = widen(embeddings)
    with torch.autocast(wide.device.type, enabled=False):
        return torch.cdist(wide, wide, compute_mode="donot_use_mm_for_euclid_dist")
