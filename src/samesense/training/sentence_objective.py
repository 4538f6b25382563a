"""Objectives of single sentences, with class labels or a teacher; see :mod:`samesense.training.objective`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from samesense.losses import batch_all, batch_hard, cosine_matrix, rank_cse, sup_con, teacher_scores
from samesense.training.gather import gather
from samesense.training.objective import Objective, joined_labels


class SupCon(Objective):
    """Supervised contrastive loss: sentences with class labels; those of one class are each other's positives.

    Args:
        model: the sentence-transformers model to train.
        temperature: divides the cosines.
        token_budget: see :class:`~samesense.training.objective.Objective`.
    """

    takes = "one text column"
    columns = (1, 1)
    labels = "class"

    def __init__(self, model: nn.Module, *, temperature: float = 0.1, token_budget: int | None = None) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {"temperature": temperature}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.sup_con`."""
        return sup_con(gather(embeddings[0]), joined_labels(labels, self), **self.settings)


class BatchTriplet(Objective):
    """Triplets found in a batch of sentences with class labels: all that cost something, or the hardest an anchor.

    Args:
        model: the sentence-transformers model to train.
        mining: ``"all"`` or ``"hard"``.
        distance: ``"cosine"`` or ``"euclidean"``.
        margin: how much nearer the positive must be; ``None`` takes the loss's own for the distance.
        token_budget: see :class:`~samesense.training.objective.Objective`.
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
        margin: float | None = None,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        if mining not in ("all", "hard"):
            raise ValueError(f"mining must be 'all' or 'hard'; received {mining!r}.")
        self.settings = {"mining": mining, "distance": distance, "margin": margin}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.batch_all` or :func:`samesense.losses.batch_hard`."""
        mined = batch_all if self.settings["mining"] == "all" else batch_hard
        rest = {name: self.settings[name] for name in ("distance", "margin")}
        return mined(gather(embeddings[0]), joined_labels(labels, self), **rest)


class RankCSE(Objective):
    """RankCSE: sentences, and as labels what the teachers make of them.

    A batch goes through the model twice; InfoNCE, consistency and ranking are formed from the cosines of the two views,
    see :func:`samesense.losses.rank_cse`. Under DDP the sentences of all processes are ranked together.

    Args:
        model: the sentence-transformers model to train.
        teacher_dims: widths of the teachers' embeddings, side by side in the labels ``(batch, sum of the widths)``.
        weights: of the teachers; the same for all by default.
        head: module through which embeddings pass in training only; it is trained and not kept.
        token_budget: see :class:`~samesense.training.objective.Objective`.
        settings: further settings of :func:`~samesense.losses.rank_cse`.
    """

    takes = "one text column"
    columns = (1, 1)
    labels = "vector"

    def __init__(
        self,
        model: nn.Module,
        *,
        teacher_dims: Sequence[int],
        weights: Sequence[float] | None = None,
        rank: Literal["listnet", "listmle", "cosent"] = "listmle",
        head: nn.Module | None = None,
        token_budget: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.teacher_dims = list(teacher_dims)
        self.weights = [1.0] * len(self.teacher_dims) if weights is None else list(weights)
        self.settings = {"rank": rank, **settings}
        self.head = head

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the column twice, so that dropout makes two views of it."""
        return columns * 2 if len(columns) == 1 else columns

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return the total of :func:`samesense.losses.rank_cse`.

        Raises:
            ValueError: if the labels are no teacher embeddings of the given widths.
        """
        if labels is None or labels.shape != (len(embeddings[0]), sum(self.teacher_dims)):
            received = "none" if labels is None else f"shape {tuple(labels.shape)}"
            raise ValueError(
                f"RankCSE takes as labels the teachers' embeddings side by side, widths {self.teacher_dims}, a row for "
                f"each of {len(embeddings[0])} sentences; received {received}."
            )
        joined = [gather(view) for view in embeddings]
        one, other = joined if self.head is None else [self.head(view) for view in joined]
        teachers = torch.split(gather(labels), self.teacher_dims, dim=1)
        return rank_cse(cosine_matrix(one, other), teacher_scores(teachers, self.weights), **self.settings).total
