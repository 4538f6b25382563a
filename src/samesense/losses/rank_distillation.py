"""RankCSE: contrastive learning that also distils the ranking of a teacher.

    L = contrast * InfoNCE + beta * consistency + gamma * rank

``rank`` is ListNet, ListMLE or row-wise CoSENT of the student's scores against the teacher's. A term of weight 0 is not
computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from samesense.losses.cosent import row_cosent
from samesense.losses.cosine import Reduction, check_number, cosine_matrix
from samesense.losses.info_nce import info_nce_scores
from samesense.losses.js_consistency import js_consistency, minus_entropy
from samesense.losses.listwise import listmle, listnet

Rank = Literal["listnet", "listmle", "cosent"]
"""Formula of the ranking term."""

Consistency = Literal["js", "community"]
"""The printed Jensen-Shannon divergence, or what the community code computes instead."""


class RankDistillation(NamedTuple):
    """The composite loss and its unweighted terms, each a scalar; ``None`` for a term of weight 0."""

    total: Tensor
    info_nce: Tensor | None
    consistency: Tensor | None
    rank: Tensor | None


def rank_cse(  # noqa: PLR0913 - the paper's own settings
    scores: Tensor,
    teacher: Tensor | None,
    *,
    rank: Rank,
    contrast: float = 1.0,
    beta: float = 1.0,
    gamma: float = 1.0,
    tau1: float = 0.05,
    tau2: float = 0.05,
    tau3: float = 0.025,
    consistency: Consistency = "js",
    include_diagonal: bool | None = None,
    reduction: Reduction = "mean",
) -> RankDistillation:
    """Return the RankCSE loss of one batch and its terms.

    Args:
        scores: ``(n, n)`` student cosines of sentence i in one view and sentence j in the other.
        teacher: ``(n, n)`` teacher scores, see :func:`teacher_scores`; never receives a gradient. ``None`` where
            ``gamma`` is 0.
        rank: formula of the ranking term.
        contrast: weight of InfoNCE.
        beta: weight of the consistency term.
        gamma: weight of the ranking term.
        tau1: temperature of InfoNCE and consistency.
        tau2: temperature of the student in the ranking term.
        tau3: temperature of the teacher; only ListNet has one.
        consistency: ``"js"`` for the divergence of the paper, ``"community"`` for :func:`minus_entropy`.
        include_diagonal: whether the ranking term includes the diagonal; ``None`` is the default of the formula:
            excluded for ListNet and CoSENT, included for ListMLE.
        reduction: ``"mean"`` or ``"sum"`` over sentences, in all three terms.

    Returns:
        The total and its unweighted terms, scalars in float32 (float64 for float64 scores).

    Raises:
        ValueError: if a shape does not fit, no weight is positive or one is negative, the ranking term has no teacher,
            or rank, consistency, a temperature or the reduction is out of range.

    Source: Liu et al. 2023 (RankCSE), Eq. 6; tau2 and tau3 from its sweep, weights of 0 from its Table 4; Huang et al.
        2024 (TASLP), Table III for ``"cosent"``, where tau2 = 0.05 is their scale of 20.
    Differs: a mean over sentences by default where the paper prints sums; the ratio of the terms is the same. InfoNCE
        has a weight too, 1 by default.

    Example:
        >>> rank_cse(torch.eye(2), torch.eye(2), rank="listmle", tau1=1.0, tau2=1.0).rank  # log(1 + exp(-1))
        tensor(0.3133)
    """
    _check(scores, teacher, (contrast, beta, gamma), rank, consistency)
    for name, temperature in (("tau1", tau1), ("tau2", tau2), ("tau3", tau3)):
        check_number(name, temperature, above=0)
    ranking: Callable[..., Tensor] = {
        "listnet": partial(listnet, student_temperature=tau2, teacher_temperature=tau3),
        "listmle": partial(listmle, student_temperature=tau2),
        "cosent": partial(row_cosent, temperature=tau2),
    }[rank]
    consistency_loss = js_consistency if consistency == "js" else minus_entropy
    diagonal = rank == "listmle" if include_diagonal is None else include_diagonal
    contrast_term = info_nce_scores(scores, temperature=tau1, reduction=reduction) if contrast else None
    consistency_term = consistency_loss(scores, temperature=tau1, reduction=reduction) if beta else None
    rank_term = ranking(scores, teacher, include_diagonal=diagonal, reduction=reduction) if gamma else None
    weighted = zip((contrast, beta, gamma), (contrast_term, consistency_term, rank_term), strict=True)
    total = torch.stack([weight * term for weight, term in weighted if term is not None]).sum()
    return RankDistillation(total, contrast_term, consistency_term, rank_term)


def _check(scores: Tensor, teacher: Tensor | None, weights: Sequence[float], rank: str, consistency: str) -> None:
    if rank not in ("listnet", "listmle", "cosent"):
        raise ValueError(f"rank must be 'listnet', 'listmle' or 'cosent'; received {rank!r}.")
    if consistency not in ("js", "community"):
        raise ValueError(f"consistency must be 'js' or 'community'; received {consistency!r}.")
    if not (all(0 <= weight < math.inf for weight in weights) and any(weights)):
        raise ValueError(
            f"contrast, beta and gamma must be >= 0 and one of them above 0; received {', '.join(map(str, weights))}."
        )
    fits = teacher is None or scores.shape == teacher.shape
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or not fits or (teacher is None and weights[2] > 0):
        received = "no teacher" if teacher is None else str(tuple(teacher.shape))
        raise ValueError(
            "rank_cse takes square matrices of student and teacher scores; "
            f"received {tuple(scores.shape)} and {received}."
        )


def teacher_scores(embeddings: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Return the weighted mean of the teachers' cosine matrices.

    Args:
        embeddings: one ``(n, dim)`` tensor per teacher, of the same n sentences; dims may differ.
        weights: one non-negative number per teacher; they are divided by their sum.

    Returns:
        ``(n, n)`` cosines in float32 (float64 for float64 embeddings), without gradient.

    Raises:
        ValueError: if there is not one weight per teacher, a weight is negative or their sum 0, or the numbers of
            sentences differ.

    Source: Liu et al. 2023 (RankCSE), the ensemble of teachers: weights 1/3 and 2/3 of raw cosines.
    Differs: any number of teachers.

    Example:
        >>> teacher_scores([torch.eye(2), torch.ones(2, 3)], [1, 3])
        tensor([[1.0000, 0.7500],
                [0.7500, 1.0000]])
    """
    if not embeddings or len(embeddings) != len(weights):
        raise ValueError(
            f"teacher_scores takes one weight a teacher; "
            f"received {len(embeddings)} teachers and {len(weights)} weights."
        )
    if not (all(0 <= weight < math.inf for weight in weights) and sum(weights) > 0):
        raise ValueError(f"weights must be >= 0 with a sum above 0; received {list(weights)}.")
    if len({len(rows) for rows in embeddings}) > 1:
        raise ValueError(
            f"teacher_scores takes the same sentences of every teacher; received {[len(rows) for rows in embeddings]}."
        )
    with torch.no_grad():
        total = torch.zeros((), device=embeddings[0].device)
        for x, weight in zip(embeddings, weights, strict=True):
            total = total + cosine_matrix(x, x).mul_(weight / sum(weights))
        return total
