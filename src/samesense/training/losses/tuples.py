"""Losses of anchors, positives and negatives; see :mod:`samesense.training.losses.base` for what they share."""

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
        triplet_margin: how much nearer the positive must be; ``None`` takes the loss's own for the distance.
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

    Also known as NT-Xent and multiple negatives ranking. One column alone is embedded twice, and the two dropout views
    of a sentence are anchor and positive: unsupervised SimCSE. Under DDP the candidates of all processes compete.
    Where only some anchors have a hard negative, labels say which.

    Args:
        head: module from ``(rows, dim)`` to ``(rows, other dim)`` through which embeddings pass in training only, see
            :func:`projection`; it is trained and not kept.
        temperature: divides the cosines; 0.05 is a scale of 20.
        own_negative_weight: added to the logit of an anchor's own hard negative (SimCSE).
        symmetric: average with the opposite direction.
        some_negatives: the batch has labels 0 and 1: the hard negative of a row with 0 only fills the column.
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
            self.columns, self.labels = (3, 3), "binary"

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a single column twice, so that dropout makes two views of it."""
        return columns * 2 if len(columns) == 1 else columns

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return :func:`samesense.losses.info_nce`, of the negatives that count."""
        anchors, positives, *negatives = tensors if self.head is None else [self.head(column) for column in tensors]
        if labels is not None:
            # only now: every process has to send a column of the same kind, whichever of its rows count
            negatives = [negatives[0][labels > 0]]
        return info_nce(anchors, positives, torch.cat(negatives) if negatives else None, **self.settings)


class MultiPositive(EmbeddingLoss):
    """SupMPN's loss: an anchor, several positives, and several negatives, as many of each anchor as of every other.

    For numbers that vary see :class:`~samesense.training.losses.tuple_batches.TupleMultiPositive`.

    Args:
        positives: how many of the columns after the anchor are positives; the rest are negatives.
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
        """Return anchors, all positives and all negatives, and how many of both each anchor has."""
        anchors, *others = embeddings
        number = self.settings["positives"]
        sides = [
            torch.stack(side, dim=1).flatten(0, 1) if side else anchors[:0]
            for side in (others[:number], others[number:])
        ]
        counts = torch.tensor([[number, len(others) - number]], device=anchors.device)
        return [anchors, *sides], counts.expand(len(anchors), 2)

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.multi_positive` of anchors with any number of positives and negatives each.

        Args:
            tensors: embeddings of the anchors, of all positives, and of all negatives, in the order of their anchors;
                then, for each of the three, one whole number a text, if some count as the same, and those of further
                positives: none of these counts against an anchor that it is the same as, or a positive of which it is.
            labels: ``(anchors, 2)`` numbers of positives and negatives, ``(anchors, 3)`` with those of further ones.
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
            exclude=_excluded(keys, positive_owner, owners.repeat_interleave(labels[:, 2])) if keys else None,
        )


def _excluded(keys: list[Tensor], positive_owner: Tensor, further_owner: Tensor) -> Tensor:
    """Return ``(anchors, positives + negatives)``: candidates that count as the same as the anchor or a positive of it.

    Texts of one key are numbered through, so that each anchor has a row of the few texts that it may not be pushed
    from, however many positives it has.
    """
    numbers = torch.unique(torch.cat(keys), return_inverse=True)[1]
    own, near, far, further = torch.split(numbers, [len(column) for column in keys])
    known = torch.zeros(len(own), int(numbers.max()) + 1, dtype=torch.bool, device=numbers.device)
    known[torch.arange(len(own), device=numbers.device), own] = True
    known[positive_owner, near] = True
    known[further_owner, further] = True
    return known[:, torch.cat([near, far])]


def projection(dim: int) -> nn.Module:
    """Return SimCSE's head: one linear layer and tanh, ``(rows, dim)`` to ``(rows, dim)``.

    Source: Gao et al. 2021 (SimCSE), the MLP over the first token; trained only, without supervision.
    """
    return nn.Sequential(nn.Linear(dim, dim), nn.Tanh())
