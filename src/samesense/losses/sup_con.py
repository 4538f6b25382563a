"""Supervised contrastive loss: every other example of the anchor's label is its positive.

    L_i = -1/|P(i)| sum over p in P(i) of log( exp(s_ip / temperature) / sum over a != i of exp(s_ia / temperature) )

where ``s`` is the cosine and ``P(i)`` the positives of anchor i.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from samesense.losses.cosine import Reduction, check_labelled, cosine_matrix, reduced, tempered, without_diagonal


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
