"""Supervised contrastive loss: every other example of the anchor's label is its positive.

    L_i = -1/|P(i)| sum over p in P(i) of log( exp(s_ip / temperature) / sum over a != i of exp(s_ia / temperature) )

where ``s`` is the cosine and ``P(i)`` the positives of anchor i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosine import Reduction, check_labelled, cosine_matrix, reduced, tempered, without_diagonal
from samesense.losses.lazy import F
from samesense.losses.settings import Temperature
from samesense.losses.spec import LossSpec
from samesense.losses.tuples import PlacesSettings, TupleLoss

if TYPE_CHECKING:
    from torch import Tensor, nn


def sup_con(embeddings: Tensor, labels: Tensor, *, temperature: float = 0.1, reduction: Reduction = "mean") -> Tensor:
    """Return the supervised contrastive loss of one batch under cosine similarity, a scalar.

    Args:
        embeddings: ``(n, dim)``.
        labels: ``(n,)`` class of each; only equality counts.
        temperature: divides the cosines; 0.1 as in the paper.
        reduction: ``"mean"`` or ``"sum"`` over the anchors that have a positive; the others are left out.

    Returns:
        Scalar in float32 (float64 for float64 embeddings); 0 with gradient zero if no anchor has a positive.

    Raises:
        ValueError: if the shapes do not fit, or temperature or reduction is out of range.

    Source: Khosla et al. 2020, Eq. 2 (the average outside the logarithm).
    Differs: a mean over anchors by default where Eq. 2 prints a sum; one view of each example, so anchors can lack a
        positive.

    Example:
        >>> sup_con(torch.ones(3, 2), torch.tensor([0, 0, 1]))  # either of two equal candidates: log 2
        tensor(0.6931)
    """
    check_labelled("sup_con", embeddings, labels)
    logits = without_diagonal(tempered(cosine_matrix(embeddings, embeddings), temperature))
    # An anchor is neither its own candidate nor its own positive.
    positive = without_diagonal(labels[:, None] == labels)
    count = positive.sum(dim=1)
    total = -F.log_softmax(logits, dim=1).masked_fill(~positive, 0).sum(dim=1)
    # anchors without a positive are left out; without the clamp their 0/0 would still make the gradient NaN
    return reduced((total / count.clamp(min=1))[count > 0], reduction)


class SupCon(EmbeddingLoss):
    """Supervised contrastive loss: sentences with class labels; those of the same class are positives.

    Args:
        temperature: divides the cosines.
    """

    takes = "one text column"
    columns = (1, 1)
    labels = "class"

    def __init__(self, model: nn.Module, *, temperature: float = 0.1, mini_batch_num_tokens: int | None = None) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"temperature": temperature}

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.sup_con`."""
        return sup_con(tensors[0], labels, **self.settings)


class TupleSupCon(TupleLoss, SupCon):
    """SupCon on tuples."""


SUP_CON_OF_TUPLES = LossSpec(name="supcon", module=TupleSupCon, settings=Temperature, target_settings=PlacesSettings)
