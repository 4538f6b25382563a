"""Consistency of a score matrix: the distributions of its rows against those of its columns.

    L = sum over i of JS(P_i || Q_i),   P_i = softmax(row i of S / temperature),  Q_i = softmax(column i)
    JS(P || Q) = 1/2 KL(P || M) + 1/2 KL(Q || M),   M = (P + Q) / 2

Swapping the two views transposes the matrix, so the loss asks both views of a sentence to rank the others alike.
:func:`minus_entropy` is what a public implementation computes instead, for comparison.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from samesense.losses.cosine import Reduction, check_finite, reduced, rowwise, tempered, widen
from samesense.losses.lazy import F, torch

if TYPE_CHECKING:
    from torch import Tensor


def js_consistency(scores: Tensor, *, temperature: float = 0.05, reduction: Reduction = "sum") -> Tensor:
    """Return the Jensen-Shannon divergence between rows and columns of a score matrix, a scalar.

    Args:
        scores: ``(n, n)`` similarity of sentence i in one view and sentence j in the other, diagonal included.
        temperature: divides the scores.
        reduction: ``"sum"`` over i, or ``"mean"``.

    Returns:
        Scalar in float32 (float64 for float64 scores): 0 if the matrix is symmetric, at most log 2 per i.

    Raises:
        ValueError: if the matrix is not square, or temperature or reduction is out of range.

    Source: Liu et al. 2023 (RankCSE), the ranking consistency term.
    Differs: none. This is the printed divergence; :func:`minus_entropy` is what a public implementation computes.

    Example:
        >>> js_consistency(torch.tensor([[1.0, 0.2], [0.2, 1.0]]))
        tensor(0.)
    """
    _check_square("js_consistency", scores)

    def divergence(rows: Tensor, columns: Tensor) -> Tensor:
        return js_divergence(*(F.log_softmax(tempered(side, temperature), dim=1) for side in (rows, columns)))

    return reduced(rowwise(divergence, scores, scores.T), reduction)


def minus_entropy(scores: Tensor, *, temperature: float = 0.05, reduction: Reduction = "sum") -> Tensor:
    """Return minus the mean entropy of the rows and columns of a score matrix, a scalar.

        L = sum over i of 1/2 (sum P_i log P_i + sum Q_i log Q_i)

    It does not compare P with Q. It is lowest where both are uniform, so it pulls all scores of a list together.

    Args:
        scores: ``(n, n)``, as in :func:`js_consistency`.
        temperature: divides the scores.
        reduction: ``"sum"`` over i, or ``"mean"``.

    Returns:
        Scalar in float32 (float64 for float64 scores), from -log n per i to 0.

    Raises:
        ValueError: if the matrix is not square, or temperature or reduction is out of range.

    Source: none in a paper; the consistency term of the community code of RankCSE (perceptiveshawty/RankCSE), which
        clamps the logarithm of M, never positive, to a constant above 0.
    Differs: without that constant, 1e-7 per i, which has no gradient.

    Example:
        >>> minus_entropy(torch.zeros(2, 2))  # 2 log 2
        tensor(-1.3863)
    """
    _check_square("minus_entropy", scores)

    def certainty(rows: Tensor, columns: Tensor) -> Tensor:
        log_p, log_q = (F.log_softmax(tempered(side, temperature), dim=1) for side in (rows, columns))
        return 0.5 * (log_p.exp() * log_p + log_q.exp() * log_q).sum(dim=1)

    return reduced(rowwise(certainty, scores, scores.T), reduction)


def _check_square(loss: str, scores: Tensor) -> None:
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise ValueError(f"{loss} takes a square matrix of scores; received {tuple(scores.shape)}.")
    check_finite(loss, scores=scores)


def js_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return the Jensen-Shannon divergence of two distributions given by their logarithms.

    Args:
        log_p: ``(..., outcomes)`` natural logarithms of probabilities, -inf for impossible.
        log_q: the same shape.

    Returns:
        ``(...)`` in nats, float32 (float64 for float64): 0 for equal distributions, log 2 for disjoint ones.

    Raises:
        ValueError: if the shapes differ.

    Source: Lin 1991.
    Differs: none in value. M is never formed: ``log(p / m) = log 2 - log(1 + q / p)`` stays exact where the
        distributions agree and where probabilities underflow.

    Example:
        >>> js_divergence(torch.tensor([0.0, -torch.inf]), torch.tensor([-torch.inf, 0.0]))
        tensor(0.6931)
    """
    logarithms = {"log_p": log_p, "log_q": log_q}
    if log_p.shape != log_q.shape:
        raise ValueError(f"js_divergence takes one shape; received {tuple(log_p.shape)} and {tuple(log_q.shape)}.")
    # minus infinity is the logarithm of 0; any other infinity is an error
    check_finite(
        "js_divergence", **{name: tensor.masked_fill(tensor.isneginf(), 0) for name, tensor in logarithms.items()}
    )
    log_p = widen(log_p)
    log_q = widen(log_q)
    return 0.5 * (_against_middle(log_p, log_q) + _against_middle(log_q, log_p)).sum(dim=-1)


def _against_middle(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Return ``p log(p / m)``, 0 where p is 0."""
    ratio = (log_q - log_p).masked_fill(log_p.isneginf(), 0)  # an infinite ratio would make the gradient 0 times inf
    return log_p.exp() * (math.log(2) - torch.logaddexp(ratio, torch.zeros_like(ratio)))
