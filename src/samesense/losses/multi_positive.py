"""InfoNCE with several positives and several hard negatives per anchor.

    L_i = mean over own positives p of  -log( exp(s_ip) / (exp(s_ip) + sum over c of exp(s_ic)) )

``s`` is the cosine over the temperature. ``c`` runs over the positives of all other anchors and the negatives of all
anchors, so an anchor's positives never compete with each other. ``exclude`` takes further candidates out of the sum.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from samesense.losses.cosine import check_finite, rowwise, tempered, unit


def multi_positive(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    *,
    positive_owner: Tensor,
    temperature: float = 0.05,
    exclude: Tensor | None = None,
) -> Tensor:
    """Return the multiple-positives loss of one batch under cosine similarity, a scalar.

    Args:
        anchors: ``(n, dim)`` embeddings.
        positives: ``(p, dim)`` embeddings, one or more per anchor.
        negatives: ``(q, dim)`` hard negatives, possibly none; in Eq. 7 each counts against every anchor.
        positive_owner: ``(p,)`` index of the anchor each positive belongs to.
        temperature: divides the cosines; the paper does not give one, 0.05 is the scale of 20 in the released code.
        exclude: ``(n, p + q)`` bool over positives, then negatives: true where a candidate must not count against the
            anchor (the same text as one of its positives). It has no effect on an anchor's own positives.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over anchors, each the mean over its positives.

    Raises:
        ValueError: if shapes do not fit, an owner is no anchor, an anchor has no positive, the temperature is not
            positive, or the mask is not bool.

    Source: Dehghan and Amasyali 2022 (SupMPN), Eq. 7.
    Differs: none in value, and the numbers of positives and negatives may vary from anchor to anchor; ``exclude`` is
        an addition. The released code leaves an anchor's other positives in the denominator with logit 0; here, as in
        Eq. 7, they are not in it.

    Example:
        >>> x = torch.eye(2)
        >>> multi_positive(x, x, x[:0], positive_owner=torch.arange(2), temperature=1.0)  # log(1 + exp(-1))
        tensor(0.3133)
    """
    n = len(anchors)
    check_finite("multi_positive", anchors=anchors, positives=positives, negatives=negatives)
    _check_owners(positives, positive_owner, n)
    count = torch.bincount(positive_owner, minlength=n)
    if (count == 0).any():
        raise ValueError(f"multi_positive needs a positive for every anchor; anchor {int(count.argmin())} has none.")
    candidates = unit(torch.cat([positives, negatives]))
    directions = tempered(unit(anchors), temperature)
    rivals = _rivals(directions, candidates, positive_owner, exclude)
    own_logits = (directions[positive_owner] * candidates[: len(positives)]).sum(dim=1)
    # (p,) log-sum-exp of all rivals minus the logit of each positive
    excess = rivals[positive_owner] - own_logits
    losses = torch.logaddexp(excess, torch.zeros_like(excess))
    return (losses / count[positive_owner]).sum() / max(n, 1)  # a batch without anchors costs 0


def _rivals(anchors: Tensor, candidates: Tensor, positive_owner: Tensor, exclude: Tensor | None) -> Tensor:
    """Return ``(n,)`` log-sum-exp of each anchor's logits for its rival candidates, -inf for none."""
    shape = (len(anchors), len(candidates))
    if exclude is not None and (exclude.shape != shape or exclude.dtype != torch.bool):
        raise ValueError(f"exclude must be bool of shape {shape}; received {exclude.dtype} {tuple(exclude.shape)}.")

    def block(anchors: Tensor, numbers: Tensor, *excluded: Tensor) -> Tensor:
        # Own positives are no rivals; the padding covers the negatives, which are.
        out = F.pad(positive_owner == numbers, (0, len(candidates) - len(positive_owner)))
        for mask in excluded:
            out = out | mask
        with torch.autocast(anchors.device.type, enabled=False):  # autocast would round the product to half precision
            return (anchors @ candidates.T).masked_fill(out, -torch.inf).logsumexp(dim=1)

    numbers = torch.arange(len(anchors), device=positive_owner.device)[:, None]
    masks = () if exclude is None else (exclude,)
    return rowwise(block, anchors, numbers, *masks, width=len(candidates))


def _check_owners(positives: Tensor, owner: Tensor, anchors: int) -> None:
    if owner.shape != positives.shape[:1] or owner.is_floating_point():
        raise ValueError(
            f"positive_owner must name the anchor of each of the {len(positives)} positives by whole number; "
            f"received {owner.dtype} of shape {tuple(owner.shape)}."
        )
    outside = owner[(owner < 0) | (owner >= anchors)]
    if len(outside):
        raise ValueError(
            f"positive_owner must be 0 to {anchors - 1} for {anchors} anchors; received {int(outside[0])}."
        )
