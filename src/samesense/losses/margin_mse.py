"""MarginMSE: differences of scores against differences of labels, such as those of a teacher.

    L = mean over couples (a, b) of one group of ((s_a - s_b) - (y_a - y_b))^2

where ``s`` is the score of a pair and ``y`` its label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.data.pairs import targets as pairs
from samesense.losses.base import CosineLoss
from samesense.losses.cosine import check_scores, widen
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.losses.groups import check_groups, split_groups
from samesense.losses.lazy import torch
from samesense.losses.lessons import TWO_LOGITS, TWO_PAIRS
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor


def margin_mse(scores: Tensor, labels: Tensor, *, groups: Tensor) -> Tensor:
    """Return the mean squared error of the margins of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` score of each pair.
        labels: ``(pairs,)`` target of each pair on the scale of the scores, of which only differences count.
        groups: ``(pairs,)`` integers; margins are those between pairs of one group, such as the candidates of a query.

    Returns:
        Scalar in float32 (float64 for float64 scores): the mean over couples of one group, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, or groups are not integers.

    Source: Hofstätter et al. 2020, section 3.1.
    Differs: groups of any size, where the paper has one positive and one negative passage. All couples of a group
        count, also those of equal labels and of two negatives. By the variance in a group, time is O(n log n).

    Example:
        >>> margin_mse(torch.tensor([3.0, 1.0]), torch.tensor([1.0, 0.0]), groups=torch.tensor([0, 0]))  # (2 - 1)^2
        tensor(1.)
    """
    check_scores("margin_mse", scores, labels)
    check_groups("margin_mse", scores, groups)
    scores = widen(scores)
    errors = scores - labels.to(scores.dtype)
    _, index, sizes = torch.unique(groups, return_inverse=True, return_counts=True)
    means = errors.new_zeros(len(sizes)).index_add(0, index, errors) / sizes
    # The squared differences of n numbers sum up to n times their squared distances from the mean.
    total = (sizes[index] * (errors - means[index]).square()).sum()
    couples = (sizes * (sizes - 1)).sum() / 2
    mean: Tensor = total / couples.clamp(min=1)
    return mean


class MarginMSE(CosineLoss):
    """Mean squared error of the margins of cosines; labels are ``[label, group]``, on the cosine's own scale."""

    labels = "grouped"

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.margin_mse` of the cosines."""
        values, groups = split_groups("MarginMSE", labels)
        return margin_mse(tensors[0], values, groups=groups)


class CrossMarginMSE(CrossEncoderLoss):
    """Mean squared error of the margins of logits, which learn the labels' scale; labels are ``[label, group]``."""

    grouped = True

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.margin_mse` of the logits."""
        values, groups = split_groups("MarginMSE", labels)
        return margin_mse(logits, values, groups=groups)


MARGIN_MSE_OF_PAIRS = LossSpec(
    name="margin-mse",
    module=MarginMSE,
    lesson=TWO_PAIRS,
    targets=pairs.labels_from_0_to_1,
    grouped=True,
)

MARGIN_MSE_OF_LOGITS = LossSpec(
    name="margin-mse",
    encoder="cross",
    module=CrossMarginMSE,
    lesson=TWO_LOGITS,
    targets=pairs.labels_as_they_are,
    grouped=True,
)
