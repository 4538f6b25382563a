"""Mean squared error of score and label.

    L = mean over pairs of (s - y)^2

where ``s`` is the similarity of a pair and ``y`` its label, on one scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.data.pairs import targets as pairs
from samesense.losses.base import CosineLoss
from samesense.losses.cosine import check_scores, reduced, widen
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor


def mse(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean squared error of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` cosine of each pair.
        labels: ``(pairs,)`` target of each pair on the scale of the scores; gold scores of 0 to 5 are divided by 5.

    Returns:
        Scalar in float32 (float64 for float64 scores): the mean over pairs, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional.

    Source: Reimers and Gurevych 2019, regression objective; Sun et al. 2022 (TACL), L2 of the Surrogate on harvested
        similarities: the same function of other labels.
    Differs: none.

    Example:
        >>> mse(torch.tensor([0.5, 1.0]), torch.tensor([0.0, 1.0]))
        tensor(0.1250)
    """
    check_scores("mse", scores, labels)
    scores = widen(scores)
    return reduced((scores - labels.to(scores.dtype)).square(), "mean")


class MSE(CosineLoss):
    """Mean squared error of the cosine: pairs with labels on the cosine's own scale, usually 0 to 1."""

    labels = "number"

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.mse` of the cosines."""
        return mse(tensors[0], labels)


class CrossMSE(CrossEncoderLoss):
    """Mean squared error of the logits, which learn the scale of the labels.

    Source: Sun et al. 2022 (TACL), section 5.6, "the BERT-style model ... with the L2 regression loss".
    Differs: none. The paper has no activation either.
    """

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.mse` of the logits."""
        return mse(logits, labels)


MSE_OF_PAIRS = LossSpec(name="mse", module=MSE, targets=pairs.labels_from_0_to_1, batches=("label-aware",))
