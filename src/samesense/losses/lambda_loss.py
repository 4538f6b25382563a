"""LambdaLoss: the metric-driven ranking loss of graded lists, NDCG-Loss2++.

    L = -(1 / C) sum over (a, b) of one group with y_a > y_b of w_ab log2 sigmoid((s_a - s_b) / temperature)

    w_ab = (mu |1/D(|i - j|) - 1/D(|i - j| + 1)| + |1/D(i) - 1/D(j)|) |G_a - G_b|

where ``s`` is the score of a pair, ``y`` its label, ``i`` and ``j`` the ranks of a and b in their group by score,
``D(r)`` = log2(1 + r) the discount, ``G`` = (2^y - 1) / maxDCG the gain, normalised by the best DCG of the group, and
``C`` the number of comparisons of the batch.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from samesense.data.pairs import targets as pairs
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.errors import DataError
from samesense.losses.cosine import check_number, check_scores, rowwise, tempered
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.losses.groups import check_groups, count_comparisons, padded_lists, split_groups
from samesense.losses.lazy import F, torch
from samesense.losses.lessons import OF_LOGITS
from samesense.losses.settings import Temperature
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn

HIGHEST_LABEL = 30
"""The gain 2^y - 1 of a higher label leaves float32 no digits for low ones."""


def lambda_loss(
    scores: Tensor, labels: Tensor, *, groups: Tensor, temperature: float = 1.0, mu: float = 10.0
) -> Tensor:
    """Return LambdaLoss of one batch, a scalar.

    Args:
        scores: ``(pairs,)`` score of each pair, such as the logit of a cross-encoder.
        labels: ``(pairs,)`` grades from 0 to 30, whose gain is 2^y - 1.
        groups: ``(pairs,)`` integers; each group is a list to rank, such as the candidates of one query.
        temperature: divides the scores; the sigma of other codes is 1/temperature.
        mu: weight of the term of NDCG-Loss2 beside that of LambdaRank.

    Returns:
        Scalar in float32 (float64 for float64 scores): the mean over comparisons, 0 for none.

    Raises:
        ValueError: if the shapes differ or are not one-dimensional, groups are not integers, a label lies outside 0 to
            30, or temperature or mu is out of range.

    Source: Wang et al. 2018 (CIKM), Eq. 15 to 17, NDCG-Loss2++ with the mean over comparisons of ``LambdaLoss`` of
        sentence-transformers, whose default it is.
    Differs: the paper has no mean. Equal scores rank in the order of the batch. Memory is that of a matrix of the
        largest group, for as many groups at once as fit into a block.

    Example:
        >>> groups = torch.tensor([0, 0])
        >>> lambda_loss(torch.zeros(2), torch.tensor([1.0, 0.0]), groups=groups)  # (10 + 1) (1 - 1 / log2 3)
        tensor(4.0598)
    """
    check_scores("lambda_loss", scores, labels)
    check_groups("lambda_loss", scores, groups)
    check_number("mu", mu, least=0)
    if scores.device.type == "cpu":
        outside = labels[(labels < 0) | (labels > HIGHEST_LABEL)]
        if len(outside):
            raise ValueError(
                f"lambda_loss takes labels from 0 to {HIGHEST_LABEL}; received {outside[0].item():g}. Rescale them."
            )
    scores = tempered(scores, temperature)
    if not len(scores):
        return scores.sum()
    score_lists, label_lists, present = padded_lists(groups, scores, labels.to(scores.dtype))
    size = score_lists.shape[1]
    costs = rowwise(partial(_list_costs, mu=mu), score_lists, label_lists, present, width=size * size)
    return costs.sum() / count_comparisons(labels, groups).clamp(min=1)


def _list_costs(scores: Tensor, labels: Tensor, present: Tensor, *, mu: float) -> Tensor:
    """Return the weighted costs ``(lists,)`` of the comparisons of each list, all arguments ``(lists, size)``."""
    order = scores.masked_fill(~present, -torch.inf).argsort(dim=1, descending=True, stable=True)
    scores = scores.gather(1, order)
    labels = labels.gather(1, order)
    present = present.gather(1, order)
    ranks = torch.arange(1, scores.shape[1] + 2, device=scores.device, dtype=scores.dtype)
    shares = 1 / (1 + ranks).log2()  # 1 / D(1), 1 / D(2), and so on
    discounts = shares[:-1]
    # A place without a pair has label 0, and so no gain.
    best = ((labels.sort(dim=1, descending=True).values.exp2() - 1) * discounts).sum(dim=1)
    gains = (labels.exp2() - 1) / best.clamp(min=1e-10)[:, None]
    steps = (ranks[:-1, None] - ranks[:-1]).abs().long()
    # Of a pair with itself, 0 steps away, nothing is compared.
    ndcg = (shares[(steps - 1).clamp(min=0)] - shares[steps]).abs()
    rank = (discounts[:, None] - discounts).abs()
    weights = (mu * ndcg + rank) * (gains[:, :, None] - gains[:, None, :]).abs()
    compared = (labels[:, :, None] > labels[:, None, :]) & present[:, :, None] & present[:, None, :]
    costs = weights * -F.logsigmoid(scores[:, :, None] - scores[:, None, :]) / math.log(2)
    return costs.masked_fill(~compared, 0).sum(dim=(1, 2))


class LambdaLoss(CrossEncoderLoss):
    """LambdaLoss of the logits; labels are ``[label, group]``, settings as for :func:`lambda_loss`."""

    grouped = True

    def __init__(
        self, model: nn.Module, *, temperature: float = 1.0, mu: float = 10.0, mini_batch_num_tokens: int | None = None
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"temperature": temperature, "mu": mu}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.lambda_loss` of the logits."""
        grades, groups = split_groups("LambdaLoss", labels)
        return lambda_loss(logits, grades, groups=groups, **self.settings)


def _grades(data: PairData) -> Targets:
    low = min(data.labels)
    high = max(data.labels)
    if low < 0 or high > HIGHEST_LABEL:
        raise DataError(
            f"lambda takes labels from 0 to {HIGHEST_LABEL}, as a label y gains 2^y - 1; those of {data.source} run "
            f"from {low:g} to {high:g}. Rescale them, or take cosent with groups = first."
        )
    return pairs.labels_as_they_are(data, ", a label y gains 2^y - 1")


LAMBDA_OF_LOGITS = LossSpec(
    name="lambda",
    encoder="cross",
    module=LambdaLoss,
    lesson=OF_LOGITS,
    settings=Temperature,
    targets=_grades,
    grouped=True,
)
