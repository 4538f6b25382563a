"""Objectives of anchors, positives and negatives; see :mod:`samesense.training.losses.pairs` for what they share."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from samesense.losses import info_nce, multi_positive, triplet
from samesense.training.losses.gather import gather
from samesense.training.losses.pairs import Objective


class Triplet(Objective):
    """Triplet loss: an anchor, a positive and a negative.

    Args:
        model: the sentence-transformers model to train.
        distance: ``"cosine"`` or ``"euclidean"``.
        margin: how much nearer the positive must be; ``None`` takes the loss's own for the distance.
        mini_batch_num_tokens: see :class:`~samesense.training.losses.pairs.Objective`.
    """

    takes = "three text columns: anchor, positive, negative"
    columns = (3, 3)

    def __init__(
        self,
        model: nn.Module,
        *,
        distance: Literal["cosine", "euclidean"] = "cosine",
        margin: float | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"distance": distance, "margin": margin}

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.triplet`."""
        return triplet(*(gather(column) for column in embeddings), **self.settings)


class InfoNCE(Objective):
    """InfoNCE with in-batch negatives: an anchor, its positive, and any number of hard negatives.

    Also known as NT-Xent and multiple negatives ranking. One column alone is embedded twice, and the two dropout views
    of a sentence are anchor and positive: unsupervised SimCSE. Under DDP the candidates of all processes compete.

    Args:
        model: the sentence-transformers model to train.
        head: module from ``(rows, dim)`` to ``(rows, other dim)`` through which embeddings pass in training only, see
            :func:`projection`; it is trained and not kept.
        temperature: divides the cosines; 0.05 is a scale of 20.
        own_negative_weight: added to the logit of an anchor's own hard negative (SimCSE).
        symmetric: average with the opposite direction.
        mini_batch_num_tokens: see :class:`~samesense.training.losses.pairs.Objective`.
    """

    takes = "one text column or more: anchor, positive (or, without it, two views of the anchor), then hard negatives"
    columns = (1, None)

    def __init__(
        self,
        model: nn.Module,
        *,
        head: nn.Module | None = None,
        temperature: float = 0.05,
        own_negative_weight: float = 0.0,
        symmetric: bool = False,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {
            "temperature": temperature,
            "own_negative_weight": own_negative_weight,
            "symmetric": symmetric,
        }
        self.head = head

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a single column twice, so that dropout makes two views of it."""
        return columns * 2 if len(columns) == 1 else columns

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.info_nce`."""
        joined = [gather(column) for column in embeddings]
        anchors, positives, *negatives = joined if self.head is None else [self.head(column) for column in joined]
        return info_nce(anchors, positives, torch.cat(negatives) if negatives else None, **self.settings)


class MultiPositive(Objective):
    """SupMPN's loss: an anchor, several positives, and several negatives.

    Two forms of batch: a column for each place (anchor, the given number of positives, negatives), all of one length;
    or, with labels, three columns of any lengths (anchors; all positives; all negatives, in the order of their anchors)
    and ``(anchors, 2)`` labels that count each anchor's positives and negatives.

    Args:
        model: the sentence-transformers model to train.
        positives: how many of the columns after the anchor are positives; the rest are negatives.
        temperature: divides the cosines.
        mini_batch_num_tokens: see :class:`~samesense.training.losses.pairs.Objective`.
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

    def columns_fit(self, columns: int, labels: Tensor | None) -> bool:
        """Return whether this many columns fit."""
        return columns == 3 if labels is not None else super().columns_fit(columns, labels)

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.multi_positive`.

        Raises:
            ValueError: if the counts do not add up to the rows.
        """
        if labels is not None:
            counts = ragged_counts(labels, [len(column) for column in embeddings])
            return self.ragged(embeddings, counts)
        anchors, *others = (gather(column) for column in embeddings)
        count = self.settings["positives"]
        return multi_positive(
            anchors,
            torch.cat(others[:count]),
            torch.cat([anchors[:0], *others[count:]]),
            positive_owner=torch.arange(len(anchors), device=anchors.device).repeat(count),
            temperature=self.settings["temperature"],
        )

    def ragged(self, embeddings: list[Tensor], counts: Tensor, keys: Tensor | None = None) -> Tensor:
        """Return the loss of anchors with any number of positives and negatives each.

        Args:
            embeddings: those of the anchors, of all positives, and of all negatives, in the order of their anchors.
            counts: ``(anchors, 2)`` numbers of positives and negatives.
            keys: one whole number a text, in the order of the embeddings, equal for texts that count as the same: none
                of these counts against an anchor that it is the same as, or a positive of which it is.
        """
        sizes = [len(column) for column in embeddings]
        anchors, positives, negatives = (gather(column) for column in embeddings)
        counts = gather(counts)
        owners = torch.arange(len(anchors), device=anchors.device)
        positive_owner = owners.repeat_interleave(counts[:, 0])
        exclude = None
        if keys is not None:
            exclude = _excluded([gather(part) for part in torch.split(keys, sizes)], positive_owner)
        return multi_positive(
            anchors,
            positives,
            negatives,
            positive_owner=positive_owner,
            negative_owner=owners.repeat_interleave(counts[:, 1]),
            temperature=self.settings["temperature"],
            exclude=exclude,
        )


def _excluded(keys: list[Tensor], positive_owner: Tensor) -> Tensor:
    """Return ``(anchors, positives + negatives)``: candidates that count as the same as the anchor or a positive of it.

    Texts of one key are numbered through, so that each anchor has a row of the few texts that it may not be pushed
    from, however many positives it has.
    """
    anchors, positives, negatives = keys
    numbers = torch.unique(torch.cat([anchors, positives, negatives]), return_inverse=True)[1]
    own, near, far = torch.split(numbers, [len(anchors), len(positives), len(negatives)])
    known = torch.zeros(len(anchors), int(numbers.max()) + 1, dtype=torch.bool, device=numbers.device)
    known[torch.arange(len(anchors), device=numbers.device), own] = True
    known[positive_owner, near] = True
    return known[:, torch.cat([near, far])]


def ragged_counts(labels: Tensor, rows: list[int]) -> Tensor:
    """Return ``(anchors, 2)`` counts of positives and negatives, checked against the rows of the three columns."""
    if labels.shape != (rows[0], 2) or labels.sum(dim=0).tolist() != rows[1:]:
        raise ValueError(
            f"MultiPositive takes as labels the numbers of positives and negatives of each of {rows[0]} anchors, with "
            f"sums {rows[1]} and {rows[2]}; received shape {tuple(labels.shape)}"
            + (f" with sums {labels.sum(dim=0).tolist()}." if labels.ndim == 2 else ".")
        )
    return labels.long()


def projection(dim: int) -> nn.Module:
    """Return SimCSE's head: one linear layer and tanh, ``(rows, dim)`` to ``(rows, dim)``.

    Source: Gao et al. 2021 (SimCSE), the MLP over the first token; trained only, without supervision.
    """
    return nn.Sequential(nn.Linear(dim, dim), nn.Tanh())
