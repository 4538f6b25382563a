"""Losses of single sentences, with class labels or a teacher; see :mod:`samesense.training.losses.base`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from samesense.losses import batch_all, batch_hard, cosine_matrix, rank_cse, sup_con, teacher_scores
from samesense.losses.cosine import check_number
from samesense.losses.rank_distillation import Rank, RankDistillation
from samesense.training.losses.base import EmbeddingLoss, LabelKind, TermMeans

Teacher = Callable[[Tensor], Tensor]
"""Function from row numbers ``(batch,)`` to the embeddings ``(batch, dim)`` of these sentences."""


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


class BatchTriplet(EmbeddingLoss):
    """Triplets mined in a batch of sentences with class labels: all with a loss, or the hardest of each anchor.

    Args:
        mining: ``"all"`` or ``"hard"``.
        distance: ``"cosine"`` or ``"euclidean"``.
        triplet_margin: how much nearer the positive must be; ``None`` is the default of the loss for the distance.
    """

    takes = "one text column"
    columns = (1, 1)
    labels = "class"

    def __init__(
        self,
        model: nn.Module,
        *,
        mining: Literal["all", "hard"] = "hard",
        distance: Literal["cosine", "euclidean"] = "cosine",
        triplet_margin: float | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        if mining not in ("all", "hard"):
            raise ValueError(f"mining must be 'all' or 'hard'; received {mining!r}.")
        self.settings = {"mining": mining, "distance": distance, "triplet_margin": triplet_margin}

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.batch_all` or :func:`samesense.losses.batch_hard`."""
        mined = batch_all if self.settings["mining"] == "all" else batch_hard
        return mined(tensors[0], labels, distance=self.settings["distance"], margin=self.settings["triplet_margin"])


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
        self.teachers = list(teachers) if gamma else []
        self.weights = [1.0] * len(self.teachers) if weights is None else list(weights)
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
        if not self.teachers:
            self.labels = "none"

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the column twice, so that dropout makes two views of it."""
        return columns * 2 if self.two_views and len(columns) == 1 else columns

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the views, followed by the embeddings of each teacher.

        ValueError if the labels are not one row number per sentence.
        """
        return [*embeddings, *(self._teacher_embeddings(len(embeddings[0]), labels) if self.teachers else [])], None

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return the total of :func:`samesense.losses.rank_cse`."""
        count = len(tensors) - len(self.teachers)
        views = tensors[:count] if self.head is None else [self.head(view) for view in tensors[:count]]
        return self.total(views, tensors[count:])

    def total(self, views: list[Tensor], teacher_vectors: list[Tensor]) -> Tensor:
        """Return the loss of the sentences of all processes.

        ``views`` are one or two tensors of embeddings ``(sentences, dim)``; ``teacher_vectors`` those of each teacher.
        """
        teacher = teacher_scores(teacher_vectors, self.weights) if teacher_vectors else None
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
