"""InfoNCE: each anchor picks its own positive among the candidates of the batch.

    L_i = -log( exp(s_ii / temperature) / sum over candidates j of exp(s_ij / temperature) )

Candidates are the positives of all anchors and, if given, the hard negatives of all anchors. With ``hardness``, each
negative has a weight exp(hardness * cosine) in the sum, which receives no gradient.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from samesense.data.pairs import targets as pairs
from samesense.losses.base import EmbeddingLoss
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
from samesense.losses.lazy import F, torch
from samesense.losses.lessons import IN_BATCH
from samesense.losses.settings import InfoNCESettings, PositiveAbove
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


def info_nce(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor | None = None,
    *,
    temperature: float = 0.05,
    own_negative_weight: float = 0.0,
    symmetric: bool = False,
    hardness: float = 0.0,
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
        hardness: each negative of the first direction counts exp(hardness * cosine) times, without a gradient through
            this weight; 0 counts all once.

    Returns:
        Scalar in float32 (float64 for float64 embeddings): the mean over anchors.

    Raises:
        ValueError: if shapes do not fit, the temperature is not positive, the hardness is negative, or own negatives
            are weighted without one negative for each anchor.

    Source: van den Oord et al. 2018; Gao et al. 2021 (SimCSE), Eq. 1 and, with hard negatives, Eq. 5; the weight from
        the ablation of their hard negatives. ``symmetric``: Günther et al. 2024 (Jina Embeddings 2), as cited by
        sentence-transformers. ``hardness``: Lan et al. 2025 (LLaVE), Eq. 5, as cited there.
    Differs: none by default. Value and gradient are those of ``MultipleNegativesRankingLoss`` of sentence-transformers
        6.2, with ``symmetric`` as directions query_to_doc and doc_to_query with one partition per direction, and
        ``hardness`` as ``hardness_strength`` with ``hardness_mode="all_negatives"``, which without hard negatives is
        ``"in_batch_negatives"``.

    Example:
        >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)  # log(1 + exp(-1))
        tensor(0.3133)
    """
    n = len(anchors)
    check_rows("info_nce", anchors, positives)
    check_finite("info_nce", anchors=anchors, positives=positives, negatives=negatives)
    check_number("own_negative_weight", own_negative_weight)
    check_number("hardness", hardness, least=0)
    # Positives first, so that the positive of anchor i is column i.
    candidates = positives if negatives is None else torch.cat([positives, negatives])
    cosines = cosine_matrix(anchors, candidates)
    logits = tempered(cosines, temperature)
    if own_negative_weight:
        if negatives is None or len(negatives) != n:
            raise ValueError(
                f"own_negative_weight needs one negative for each of the {n} anchors; "
                f"received {0 if negatives is None else len(negatives)}."
            )
        # Columns 0 to n - 1 are positives, so the own negative of anchor i is column n + i.
        own_negatives = torch.eye(n, dtype=logits.dtype, device=logits.device)
        logits = logits + F.pad(own_negative_weight * own_negatives, (n, 0))
    without_hardness = logits
    if hardness:
        # Detached: a weight is a measure of the negative, not something to make smaller.
        log_weights = hardness * cosines.detach()
        log_weights.fill_diagonal_(0)  # own positives
        logits = logits + log_weights
    loss = reduced(_diagonal_cross_entropy(logits), "mean")
    if not symmetric:
        return loss
    # A hard negative has no anchor of its own, so it has no second direction.
    return (loss + reduced(_diagonal_cross_entropy(without_hardness[:, :n].T), "mean")) / 2


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


class PositivesSettings(PositiveAbove):
    """Settings for the extraction of positive pairs and hard negatives."""

    hard_negatives: bool = Field(True, description="negative partners of an anchor compete for it")


class InfoNCE(EmbeddingLoss):
    """InfoNCE with in-batch negatives: an anchor, its positive, and any number of hard negatives.

    Also known as NT-Xent and multiple negatives ranking. A single column is embedded twice, and the two dropout views
    of a sentence are anchor and positive (unsupervised SimCSE). Under DDP the candidates of all processes are compared.
    If only some anchors have a hard negative, labels tell which.

    Args:
        head: projection head, a module from ``(rows, dim)`` to ``(rows, other dim)``, see :func:`projection`; it is
            trained with the model and not kept.
        temperature: divides the cosines; 0.05 is a scale of 20.
        own_negative_weight: added to the logit of an anchor's own hard negative (SimCSE).
        symmetric: average with the opposite direction, where each positive picks its anchor.
        hardness: each negative counts exp(hardness * cosine) times.
        some_negatives: the batch has labels 0 and 1; the hard negative of a row with label 0 is a placeholder.
    """

    takes = "one text column or more: anchor, positive (or, without it, two views of the anchor), then hard negatives"
    columns: tuple[int, int | None] = (1, None)
    two_views = True

    def __init__(
        self,
        model: nn.Module,
        *,
        head: nn.Module | None = None,
        temperature: float = 0.05,
        own_negative_weight: float = 0.0,
        symmetric: bool = False,
        hardness: float = 0.0,
        some_negatives: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {
            "temperature": temperature,
            "own_negative_weight": own_negative_weight,
            "symmetric": symmetric,
            "hardness": hardness,
        }
        self.head = head
        if some_negatives:
            self.takes = "three text columns: anchor, positive, hard negative"
            self.columns = (3, 3)
            self.labels = "binary"

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.info_nce`, without placeholder negatives."""
        anchors, positives, *negatives = tensors if self.head is None else [self.head(column) for column in tensors]
        if labels is not None:
            # after gathering, as all processes must gather columns of the same shape
            negatives = [negatives[0][labels > 0]]
        return info_nce(anchors, positives, torch.cat(negatives) if negatives else None, **self.settings)


def projection(dim: int) -> nn.Module:
    """Return SimCSE's head: one linear layer and tanh, ``(rows, dim)`` to ``(rows, dim)``.

    Source: Gao et al. 2021 (SimCSE), the MLP over the first token; trained only, without supervision.
    """
    return torch.nn.Sequential(torch.nn.Linear(dim, dim), torch.nn.Tanh())


INFO_NCE_OF_PAIRS = LossSpec(
    name="info-nce",
    module=InfoNCE,
    lesson=IN_BATCH,
    settings=InfoNCESettings,
    targets=pairs.positive_pairs,
    target_settings=PositivesSettings,
    batches=("no-duplicates",),
)
