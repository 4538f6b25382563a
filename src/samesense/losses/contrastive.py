"""Contrastive loss: positive pairs to cosine 1, negative pairs below a threshold.

    L = mean over pairs of  1/2 y (1 - s)^2 + 1/2 (1 - y) max(0, s - threshold)^2

In terms of the distance ``d = 1 - s`` the second part is ``max(0, margin - d)^2`` with ``margin = 1 - threshold``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from samesense.data.pairs import targets as pairs
from samesense.losses.base import CosineLoss
from samesense.losses.cosine import check_number, check_scores, reduced, widen
from samesense.losses.settings import PositiveAbove
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


def contrastive(scores: Tensor, labels: Tensor, *, threshold: float = 0.0, literal: bool = False) -> Tensor:
    """Return the contrastive loss of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` cosine of each pair.
        labels: ``(pairs,)`` 1 for similar, 0 for not.
        threshold: a negative pair below it costs nothing; the margin of the cosine distance is ``1 - threshold``,
            so 0 is a margin of 1 and 0.5 a margin of 0.5. Use a high one with hard negatives.
        literal: use the second term as printed, ``max(threshold, s)^2``.

    Returns:
        Scalar in float32 (float64 for float64 scores): the mean over pairs, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, or a label is neither 0 nor 1.

    Source: Hadsell et al. 2006 on the cosine distance; Huang et al. 2024 (TASLP), Eq. 2 for ``literal``.
    Differs: the default hinge subtracts the threshold where Eq. 2 prints ``max(threshold, s)^2``. The two agree at
        threshold 0. Above it the printed pull on a negative pair is s, not its excess over the threshold; below it the
        printed form draws the pair to 0 for any threshold, though the published results change with it.

    Example:
        >>> contrastive(torch.tensor([0.8, 0.8]), torch.tensor([1, 0]), threshold=0.4)  # (0.02 + 0.08) / 2
        tensor(0.0500)
    """
    check_scores("contrastive", scores, labels)
    check_number("threshold", threshold)
    # A graded label would silently be a mixture of both terms.
    unknown = labels[(labels != 0) & (labels != 1)]
    if len(unknown):
        raise ValueError(
            f"contrastive takes labels 0 and 1; received {unknown[0].item()}. Cut graded labels at a score first."
        )
    scores = widen(scores)
    labels = labels.to(scores.dtype)
    far = scores.clamp(min=threshold) if literal else (scores - threshold).clamp(min=0)
    return reduced(0.5 * labels * (1 - scores).square() + 0.5 * (1 - labels) * far.square(), "mean")


class ContrastiveSettings(BaseModel):
    """Settings of the contrastive loss."""

    threshold: float = Field(0.0, ge=-1, lt=1, description="negatives below this cosine cost nothing")
    literal: bool = Field(False, description="Eq. 2 of the CoSENT paper as printed, instead of the hinge")


class Contrastive(CosineLoss):
    """Contrastive loss on cosines: pairs with labels 0 and 1; settings as for :func:`contrastive`."""

    labels = "binary"

    def __init__(
        self,
        model: nn.Module,
        *,
        threshold: float = 0.0,
        literal: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"threshold": threshold, "literal": literal}

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.contrastive` of the cosines."""
        return contrastive(tensors[0], labels, **self.settings)


CONTRASTIVE_OF_PAIRS = LossSpec(
    name="contrastive",
    module=Contrastive,
    settings=ContrastiveSettings,
    targets=pairs.labels_cut_in_two,
    target_settings=PositiveAbove,
    kinds=("scored", "binary", "triplet"),
    takes="labels 0 and 1, or scores, which it cuts in two",
    batches=("label-aware",),
)
