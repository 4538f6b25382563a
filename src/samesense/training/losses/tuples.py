"""Losses of anchors, positives and negatives; for their base see :mod:`samesense.training.losses.base`."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from samesense.losses import info_nce, multi_positive, triplet
from samesense.training.losses.base import EmbeddingLoss


class Triplet(EmbeddingLoss):
    """Triplet loss: an anchor, a positive and a negative.

    Args:
        distance: ``"cosine"`` or ``"euclidean"``.
        triplet_margin: how much nearer the positive must be; ``None`` is the default of the loss for the distance.
    """

    takes = "three text columns: anchor, positive, negative"
    columns = (3, 3)

    def __init__(
        self,
        model: nn.Module,
        *,
        distance: Literal["cosine", "euclidean"] = "cosine",
        triplet_margin: float | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"distance": distance, "triplet_margin": triplet_margin}

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.triplet`."""
        return triplet(*tensors, distance=self.settings["distance"], margin=self.settings["triplet_margin"])


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
        symmetric: average with the opposite direction.
        some_negatives: the batch has labels 0 and 1; the hard negative of a row with label 0 is a placeholder.
    """

    takes = "one text column or more: anchor, positive (or, without it, two views of the anchor), then hard negatives"
    columns: tuple[int, int | None] = (1, None)

    def __init__(
        self,
        model: nn.Module,
        *,
        head: nn.Module | None = None,
        temperature: float = 0.05,
        own_negative_weight: float = 0.0,
        symmetric: bool = False,
        some_negatives: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"temperature": temperature, "own_negative_weight": own_negative_weight, "symmetric": symmetric}
        self.head = head
        if some_negatives:
            self.takes = "three text columns: anchor, positive, hard negative"
            self.columns = (3, 3)
            self.labels = "binary"

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a single column twice, so that dropout makes two views of it."""
        return columns * 2 if len(columns) == 1 else columns

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.info_nce`, without placeholder negatives."""
        anchors, positives, *negatives = tensors if self.head is None else [self.head(column) for column in tensors]
        if labels is not None:
            # after gathering, as all processes must gather columns of the same shape
            negatives = [negatives[0][labels > 0]]
        return info_nce(anchors, positives, torch.cat(negatives) if negatives else None, **self.settings)


class MultiPositive(EmbeddingLoss):
    """SupMPN's loss: an anchor, several positives, and several negatives, in equal numbers for all anchors.

    For varying numbers see :class:`~samesense.training.losses.tuple_batches.TupleMultiPositive`.

    Args:
        positives: number of positive columns after the anchor; all later columns are negatives.
        temperature: divides the cosines.
    """

    takes = "an anchor column, the given number of positive columns, then negative columns"
    columns: tuple[int, int | None] = (2, None)

    def __init__(
        self,
        model: nn.Module,
        *,
        positives: int = 5,
        temperature: float = 0.05,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.columns = (1 + positives, None)
        self.settings = {"positives": positives, "temperature": temperature}

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return anchors, all positives and all negatives, and the numbers of both for each anchor."""
        anchors, *columns = embeddings
        positives = self.settings["positives"]
        sides = [
            torch.stack(side, dim=1).flatten(0, 1) if side else anchors[:0]
            for side in (columns[:positives], columns[positives:])
        ]
        counts = torch.tensor([[positives, len(columns) - positives]], device=anchors.device)
        return [anchors, *sides], counts.expand(len(anchors), 2)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.multi_positive` of anchors with any number of positives and negatives each.

        Args:
            tensors: embeddings of the anchors, of all positives, and of all negatives, in the order of their anchors;
                then, if false negatives are filtered, the keys of the texts of each of the three, and the keys of
                additional positives. A candidate with the key of an anchor, or of one of its positives, is not a
                negative of that anchor.
            labels: ``(anchors, 2)`` numbers of positives and negatives, ``(anchors, 3)`` with those of additional ones.
        """
        anchors, positives, negatives, *keys = tensors
        owners = torch.arange(len(anchors), device=anchors.device)
        positive_owner = owners.repeat_interleave(labels[:, 0])
        return multi_positive(
            anchors,
            positives,
            negatives,
            positive_owner=positive_owner,
            temperature=self.settings["temperature"],
            exclude=_exclusion_mask(keys, positive_owner, owners.repeat_interleave(labels[:, 2])) if keys else None,
        )


def _exclusion_mask(keys: list[Tensor], positive_owner: Tensor, extra_owner: Tensor) -> Tensor:
    """Return a mask ``(anchors, positives + negatives)`` of candidates with the key of the anchor or of its positives.

    Keys are renumbered first, so that the intermediate mask has one column per distinct key of the batch.
    """
    numbers = torch.unique(torch.cat(keys), return_inverse=True)[1]
    anchors, positives, negatives, extra = torch.split(numbers, [len(column) for column in keys])
    same = torch.zeros(len(anchors), int(numbers.max()) + 1, dtype=torch.bool, device=numbers.device)
    same[torch.arange(len(anchors), device=numbers.device), anchors] = True
    same[positive_owner, positives] = True
    same[extra_owner, extra] = True
    return same[:, torch.cat([positives, negatives])]


def projection(dim: int) -> nn.Module:
    """Return SimCSE's head: one linear layer and tanh, ``(rows, dim)`` to ``(rows, dim)``.

    Source: Gao et al. 2021 (SimCSE), the MLP over the first token; trained only, without supervision.
    """
    return nn.Sequential(nn.Linear(dim, dim), nn.Tanh())
