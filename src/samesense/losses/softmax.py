"""Softmax classification of a pair from its two embeddings.

    features = [u; v; |u - v|]  (with u * v as an optional fourth part)
    L = mean over pairs of  -log softmax(logits)_label

The linear head from features to logits belongs to the caller and is discarded after training.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from samesense.losses.cosine import check_finite, check_labelled, check_rows, reduced, widen


def softmax_features(u: Tensor, v: Tensor, *, product: bool = False) -> Tensor:
    """Return the input of the classification head for each pair.

    Args:
        u: ``(pairs, dim)`` first embeddings.
        v: ``(pairs, dim)`` second embeddings.
        product: append ``u * v``.

    Returns:
        ``(pairs, 3 dim)``, or ``(pairs, 4 dim)`` with the product, in the type of the embeddings.

    Raises:
        ValueError: if the shapes differ or are not two-dimensional.

    Source: Reimers and Gurevych 2019, classification objective; the product from Conneau et al. 2017 (InferSent).
    Differs: none.
    """
    check_rows("softmax_features", u, v)
    check_finite("softmax_features", u=u, v=v)
    return torch.cat([u, v, (u - v).abs(), *([u * v] if product else [])], dim=1)


def softmax(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of one batch, a scalar.

    Args:
        logits: ``(pairs, classes)``.
        labels: ``(pairs,)`` whole numbers from 0 to classes - 1; which class is which does not matter.

    Returns:
        Scalar in float32 (float64 for float64 logits): the mean over pairs, 0 for none.

    Raises:
        ValueError: if the shapes do not fit, or a label is not a whole number or has no class. No label is skipped.

    Source: Reimers and Gurevych 2019, classification objective.
    Differs: none.

    Example:
        >>> softmax(torch.zeros(2, 4), torch.tensor([0, 3]))  # log 4
        tensor(1.3863)
    """
    check_labelled("softmax", logits, labels)
    if labels.is_floating_point():
        raise ValueError(f"softmax takes whole-number labels; received {labels.dtype}.")
    labels = labels.long()
    classes = logits.shape[1]
    outside = labels[(labels < 0) | (labels >= classes)]
    if len(outside):
        raise ValueError(
            f"softmax takes labels 0 to {classes - 1} for {classes} classes; received {outside[0].item()}."
        )
    return reduced(F.cross_entropy(widen(logits), labels, reduction="none"), "mean")
