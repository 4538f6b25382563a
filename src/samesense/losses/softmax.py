"""Softmax classification of a pair from its two embeddings.

    features = [u; v; |u - v|]  (with u * v as an optional fourth part)
    L = mean over pairs of  -log softmax(logits)_label

The linear head from features to logits belongs to the caller and is discarded after training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from samesense.data.pairs import targets as pairs
from samesense.data.pairs.bins import Bins
from samesense.data.tuples.data import partners_as_classes
from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosine import check_finite, check_labelled, check_rows, reduced, widen
from samesense.losses.lazy import F, torch
from samesense.losses.lessons import OF_ROWS
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


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
    features = [u, v, (u - v).abs()]
    if product:
        features.append(u * v)
    return torch.cat(features, dim=1)


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
    # As an index, 1.5 would silently become class 1.
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


class SoftmaxSettings(BaseModel):
    """Settings of the classification of pairs."""

    product: bool = Field(False, description="add u * v to the features, as InferSent does")


class BinsSettings(BaseModel):
    """Setting for the binning of scores into classes."""

    bins: Bins = Field(None, description="of scores: number of bins of equal width, or edges, as in: 0,1.5,3,5")


class Softmax(EmbeddingLoss):
    """Classification of pairs by (u, v, |u - v|), with integer classes; the head is trained and not kept.

    Args:
        classes: number of classes.
        dim: dimension of the embeddings; ``None`` for that of the model.
        product: add u * v to the features, as InferSent does.
    """

    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        classes: int,
        dim: int | None = None,
        product: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"classes": classes, "product": product}
        dim = model.get_embedding_dimension() if dim is None else dim  # type: ignore[operator]
        # u, v and |u - v|, and u * v if asked for.
        self.head = torch.nn.Linear(dim * (4 if product else 3), classes)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.softmax` of the head's logits."""
        features = softmax_features(*tensors, product=self.settings["product"])
        return softmax(self.head(features.to(self.head.weight.dtype)), labels)


SOFTMAX_OF_PAIRS = LossSpec(
    name="softmax",
    module=Softmax,
    lesson=OF_ROWS,
    settings=SoftmaxSettings,
    targets=pairs.labels_as_classes,
    target_settings=BinsSettings,
    takes="classes: NLI or binary labels, whole scores, or other scores by bins",
    batches=("label-aware",),
)

SOFTMAX_OF_TUPLES = LossSpec(name="softmax", module=Softmax, lesson=OF_ROWS, targets=partners_as_classes)
