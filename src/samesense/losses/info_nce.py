"""InfoNCE: each anchor picks its own positive among the candidates of the batch.

    L_i = -log( exp(s_ii / temperature) / sum over candidates j of exp(s_ij / temperature) )

Candidates are the positives of all anchors and, if given, the hard negatives of all anchors.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from samesense.losses.cosine import (
    Reduction,
    check_finite,
    check_number,
    check_rows,
    cosine_matrix,
    reduced,
    rowwise,
    tempered,
)


def info_nce(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor | None = None,
    *,
    temperature: float = 0.05,
    own_negative_weight: float = 0.0,
    symmetric: bool = False,
) -> Tensor:
    """Return the InfoNCE loss of one batch under cosine similarity, a scalar.

    Args:
        anchors: ``(n, dim)`` embeddings.
        positives: ``(n, dim)`` embeddings, row i belonging to anchor i.
        negatives: ``(m, dim)`` hard negatives, each a candidate of every anchor.
        temperature: divides the cosines; 0.05 is a scale of 20.
        own_negative_weight: added to the logit of an anchor's own hard negative (row i of n), so that this negative
            counts exp(weight) times; 0 counts it once.
        symmetric: average with the opposite direction, where positive i picks anchor i among the anchors. Hard
            negatives take part in the first direction only.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over anchors.

    Raises:
        ValueError: if shapes do not fit, the temperature is not positive, or own negatives are weighted without one
            negative for each anchor.

    Source: van den Oord et al. 2018; Gao et al. 2021 (SimCSE), Eq. 1 and, with hard negatives, Eq. 5; the weight from
        the ablation of their hard negatives.
    Differs: none by default; ``symmetric`` is an addition.

    Example:
        >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + exp(-1))
        tensor(0.3133)
    """
    n = len(anchors)
    check_rows("info_nce", anchors, positives)
    check_finite("info_nce", anchors=anchors, positives=positives, negatives=negatives)
    check_number("own_negative_weight", own_negative_weight)
    candidates = positives if negatives is None else torch.cat([positives, negatives])
    logits = tempered(cosine_matrix(anchors, candidates), temperature)
    if own_negative_weight:
        if negatives is None or len(negatives) != n:
            raise ValueError(
                f"own_negative_weight needs one negative for each of the {n} anchors; "
                f"received {0 if negatives is None else len(negatives)}."
            )
        # Columns 0 to n - 1 are positives, so the own negative of anchor i is column n + i.
        own_negatives = torch.eye(n, dtype=logits.dtype, device=logits.device)
        logits = logits + F.pad(own_negative_weight * own_negatives, (n, 0))
    loss = reduced(_diagonal_cross_entropy(logits), "mean")
    return (loss + reduced(_diagonal_cross_entropy(logits[:, :n].T), "mean")) / 2 if symmetric else loss


def info_nce_scores(scores: Tensor, *, temperature: float = 0.05, reduction: Reduction = "mean") -> Tensor:
    """Return the InfoNCE loss of a score matrix whose diagonal is positive, a scalar.

    Args:
        scores: ``(n, m)`` similarity of anchor i and candidate j, m at least n; candidate i is anchor i's positive.
        temperature: divides the scores.
        reduction: ``"mean"`` or ``"sum"`` over anchors.

    Returns:
        Scalar in float32 (float64 for float64 scores).

    Raises:
        ValueError: if the shapes do not fit, or temperature or reduction is out of range.

    Source: Liu et al. 2023 (RankCSE), the InfoNCE term (a sum); Gao et al. 2021, Eq. 1 (a mean over the batch).
    Differs: none, with the respective reduction.
    """
    if scores.ndim != 2 or scores.shape[1] < scores.shape[0]:
        raise ValueError(
            f"info_nce_scores takes scores (anchors, candidates) with a candidate for each anchor at least; "
            f"received {tuple(scores.shape)}."
        )
    check_finite("info_nce_scores", scores=scores)
    return reduced(_diagonal_cross_entropy(tempered(scores, temperature)), reduction)


def _diagonal_cross_entropy(logits: Tensor) -> Tensor:
    """Return minus the log-probability ``(n,)`` that row i gives column i."""
    return rowwise(partial(torch.logsumexp, dim=1), logits) - logits.diagonal()
