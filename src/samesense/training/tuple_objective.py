"""Objectives of anchors, positives and negatives; see :mod:`samesense.training.objective` for what they share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from samesense.losses import info_nce, multi_positive, triplet
from samesense.training.gather import gather
from samesense.training.objective import Objective


class Triplet(Objective):
    """Triplet loss: an anchor, a positive and a negative.

    Args:
        model: the sentence-transformers model to train.
        distance: ``"cosine"`` or ``"euclidean"``.
        margin: how much nearer the positive must be; ``None`` takes the loss's own for the distance.
        token_budget: see :class:`~samesense.training.objective.Objective`.
    """

    takes = "three text columns: anchor, positive, negative"
    columns = (3, 3)

    def __init__(
        self,
        model: nn.Module,
        *,
        distance: Literal["cosine", "euclidean"] = "cosine",
        margin: float | None = None,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {"distance": distance, "margin": margin}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.triplet`."""
        return triplet(*(gather(column) for column in embeddings), **self.settings)


class InfoNCE(Objective):
    """InfoNCE with in-batch negatives: an anchor, its positive, and any number of hard negatives.

    Also known as NT-Xent and multiple negatives ranking. Under DDP the candidates of all processes compete.

    Args:
        model: the sentence-transformers model to train.
        temperature: divides the cosines; 0.05 is a scale of 20.
        own_negative_weight: added to the logit of an anchor's own hard negative (SimCSE).
        symmetric: average with the opposite direction.
        token_budget: see :class:`~samesense.training.objective.Objective`.
    """

    takes = "two text columns or more: anchor, positive, then hard negatives"
    columns = (2, None)

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 0.05,
        own_negative_weight: float = 0.0,
        symmetric: bool = False,
        token_budget: int | None = None,
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.settings = {
            "temperature": temperature,
            "own_negative_weight": own_negative_weight,
            "symmetric": symmetric,
        }

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.info_nce`."""
        anchors, positives, *negatives = (gather(column) for column in embeddings)
        return info_nce(anchors, positives, torch.cat(negatives) if negatives else None, **self.settings)


class MultiPositive(Objective):
    """SupMPN's loss: an anchor, a fixed number of positives, and any number of negatives.

    Args:
        model: the sentence-transformers model to train.
        positives: how many of the columns after the anchor are positives; the rest are negatives.
        temperature: divides the cosines.
        token_budget: see :class:`~samesense.training.objective.Objective`.
    """

    takes = "an anchor column, the given number of positive columns, then negative columns"
    columns = (2, None)

    def __init__(
        self, model: nn.Module, *, positives: int = 5, temperature: float = 0.05, token_budget: int | None = None
    ) -> None:
        super().__init__(model, token_budget=token_budget)
        self.columns = (1 + positives, None)
        self.settings = {"positives": positives, "temperature": temperature}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.multi_positive`."""
        count = self.settings["positives"]
        anchors, *others = (gather(column) for column in embeddings)
        owners = torch.arange(len(anchors), device=anchors.device)
        return multi_positive(
            anchors,
            torch.cat(others[:count]),
            torch.cat([anchors[:0], *others[count:]]),
            positive_owner=owners.repeat(count),
            negative_owner=owners.repeat(len(others) - count),
            temperature=self.settings["temperature"],
        )
