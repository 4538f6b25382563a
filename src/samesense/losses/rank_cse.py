"""RankCSE: contrastive learning that also distils the ranking of a teacher.

    L = contrast * InfoNCE + beta * consistency + gamma * rank

``rank`` is ListNet, ListMLE or row-wise CoSENT of the student's scores against the teacher's. A term of weight 0 is not
computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from samesense.losses.base import EmbeddingLoss, LabelKind, TermMeans
from samesense.losses.cosent import row_cosent
from samesense.losses.cosine import Reduction, check_number, cosine_matrix
from samesense.losses.info_nce import info_nce_scores
from samesense.losses.js_consistency import js_consistency, minus_entropy
from samesense.losses.lazy import torch
from samesense.losses.listwise import listmle, listnet

if TYPE_CHECKING:
    from torch import Tensor, nn

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
    # All three, even where a term has weight 0: a wrong setting is wrong.
    for name, temperature in (("tau1", tau1), ("tau2", tau2), ("tau3", tau3)):
        check_number(name, temperature, above=0)
    ranking: Callable[..., Tensor] = {
        "listnet": partial(listnet, student_temperature=tau2, teacher_temperature=tau3),
        "listmle": partial(listmle, student_temperature=tau2),
        "cosent": partial(row_cosent, temperature=tau2),
    }[rank]
    consistency_loss = js_consistency if consistency == "js" else minus_entropy
    diagonal = rank == "listmle" if include_diagonal is None else include_diagonal
    contrast_term = None
    if contrast:
        contrast_term = info_nce_scores(scores, temperature=tau1, reduction=reduction)
    consistency_term = None
    if beta:
        consistency_term = consistency_loss(scores, temperature=tau1, reduction=reduction)
    rank_term = None
    if gamma:
        rank_term = ranking(scores, teacher, include_diagonal=diagonal, reduction=reduction)
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


if TYPE_CHECKING:
    Teacher = Callable[[Tensor], Tensor]
    """Function from row numbers ``(batch,)`` to the embeddings ``(batch, dim)`` of these sentences."""


class RankCSE(EmbeddingLoss):
    """RankCSE: sentences whose labels are their row numbers, by which the teachers' embeddings are looked up.

    A batch is encoded twice; InfoNCE, consistency and ranking are computed from the cosines of the two views, see
    :func:`samesense.losses.rank_cse`. Under DDP each process looks up its own rows, and the sentences of all processes
    are ranked together.

    Args:
        teachers: the ``rows`` of a :class:`~samesense.training.teachers.TeacherStore`, or any similar function, such as
            ``lambda rows: matrix[rows]``. Not used if ``gamma`` is 0; sentences then have no label.
        weights: weights of the teachers; equal by default.
        gamma: weight of the ranking term; with 0 the teachers are not used.
        rank: formula of the ranking term.
        two_views: encode a batch twice, so that dropout makes two views of it. Otherwise the single view is compared
            with itself, for models without dropout, which learn from the ranking alone.
        head: projection head, used in training only; it is trained and not kept.
        settings: other settings of :func:`~samesense.losses.rank_cse`.

    Raises:
        ValueError: if the ranking term has no teacher, or there is not one weight per teacher.
    """

    takes = "one text column"
    columns = (1, 1)
    labels: LabelKind = "row"

    def __init__(
        self,
        model: nn.Module,
        *,
        teachers: Sequence[Teacher] = (),
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        rank: Rank = "listmle",
        two_views: bool = True,
        head: nn.Module | None = None,
        mini_batch_num_tokens: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if gamma and not teachers:
            raise ValueError("RankCSE needs a teacher for its ranking term; received none. Give one, or gamma=0.")
        # Without the ranking term they are not even asked, as each call costs.
        self.teachers = list(teachers) if gamma else []
        self.weights = [1.0] * len(self.teachers)
        if weights is not None:
            self.weights = list(weights)
        if gamma and len(self.weights) != len(self.teachers):
            raise ValueError(
                f"RankCSE takes one weight a teacher; "
                f"received {len(self.teachers)} teachers and {len(self.weights)} weights."
            )
        self.settings = {"rank": rank, "gamma": gamma, **settings}
        for weight in self.weights:
            check_number("weight of a teacher", weight, least=0)
        self.two_views = two_views
        self.head = head
        self.term_means = TermMeans()
        # Nothing is looked up by row numbers then.
        if not self.teachers:
            self.labels = "none"

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the views, followed by the embeddings of each teacher.

        ValueError if the labels are not one row number per sentence.
        """
        if not self.teachers:
            return [*embeddings], None
        return [*embeddings, *self._teacher_embeddings(len(embeddings[0]), labels)], None

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return the total of :func:`samesense.losses.rank_cse`."""
        count = len(tensors) - len(self.teachers)
        if self.head is None:
            views = tensors[:count]
        else:
            views = [self.head(view) for view in tensors[:count]]
        return self.total(views, tensors[count:])

    def total(self, views: list[Tensor], teacher_vectors: list[Tensor]) -> Tensor:
        """Return the loss of the sentences of all processes.

        ``views`` are one or two tensors of embeddings ``(sentences, dim)``; ``teacher_vectors`` those of each teacher.
        """
        teacher = teacher_scores(teacher_vectors, self.weights) if teacher_vectors else None
        # A single view is compared with itself.
        scores = cosine_matrix(views[0], views[-1])
        terms = rank_cse(scores, teacher, **self.settings)
        self._observe(terms, scores, teacher)
        return terms.total

    def _observe(self, terms: RankDistillation, scores: Tensor, teacher: Tensor | None) -> None:
        """Keep the terms of a training step, and the ranking term of scores that are all equal, for the log."""
        values = {"contrast": terms.info_nce, "consistency": terms.consistency, "rank": terms.rank}
        if terms.rank is not None:
            ranking_alone = {**self.settings, "contrast": 0.0, "beta": 0.0}
            with torch.no_grad():
                values["rank_if_equal"] = rank_cse(torch.zeros_like(scores), teacher, **ranking_alone).rank
        for name, value in values.items():
            if value is not None:
                self.term_means.add(name, value)

    def _teacher_embeddings(self, sentences: int, rows: Tensor | None) -> list[Tensor]:
        """Return the embeddings of this process's sentences by each teacher."""
        if rows is None or rows.is_floating_point() or rows.shape != (sentences,):
            received = "none" if rows is None else f"{rows.dtype} {tuple(rows.shape)}"
            raise ValueError(
                f"{type(self).__name__} takes as labels the row number of each of {sentences} sentences; "
                f"received {received}."
            )
        return [teacher(rows).to(rows.device) for teacher in self.teachers]

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**super().get_config_dict(), "teacher_weights": self.weights, "two_views": self.two_views}
