"""Losses over the tuples of :class:`~samesense.training.tuple_batches.TupleBatches`, ragged or not.

SupMPN and what it is compared with see the same batches; each arranges the embeddings as its own loss takes them. The
triplet loss needs tuples of one positive and one negative. For SupCon and BatchHard the anchor and its positives are a
class, and each negative is one of its own, unless the batch has its text as an anchor or a positive: then it is of that
class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from samesense.data.tuples.completion import Guard
from samesense.training.losses.base import EmbeddingLoss, gather
from samesense.training.losses.sentences import BatchTriplet, SupCon
from samesense.training.losses.tuples import MultiPositive, Triplet
from samesense.training.tuple_batches import EMPTY

TAKES = "one text column, put together by TupleBatches out of anchors with their row numbers as labels"


@dataclass(frozen=True)
class UnfoldedBatch:
    """A batch, unfolded."""

    # embeddings of the anchors, of all positives, and of all negatives, in the order of their anchors
    columns: list[Tensor]
    counts: Tensor  # (anchors, 3) numbers of positives, of negatives, and of positives that may not be there
    keys: Tensor  # one number a text, in the order of the embeddings; texts that count as the same share it
    further: Tensor  # the numbers of positives that may not be there, in the order of their anchors


def unfolded(texts: Tensor, labels: Tensor | None, positives: int) -> UnfoldedBatch:
    """Return the tuples of a batch.

    Texts are ``(texts, dim)`` embeddings, each once, labels ``(batch, 3, places)``; see
    :class:`~samesense.training.tuple_batches.TupleBatches`.
    """
    if labels is None or labels.ndim != 3 or labels.shape[1] != 3 or labels.shape[2] <= positives:
        received = "none" if labels is None else f"shape {tuple(labels.shape)}"
        raise ValueError(
            f"Tuples need labels (batch, 3, places) with more than {positives} places; received {received}. Take "
            "TupleBatches as the trainer's data_collator."
        )
    numbers, keys, further = labels.unbind(dim=1)
    if int(numbers.max()) >= len(texts):
        raise ValueError(f"The labels name text {int(numbers.max())}, and the batch has {len(texts)} texts.")
    parts = [slice(0, 1), slice(1, 1 + positives), slice(1 + positives, None)]
    stands = [numbers[:, part] != EMPTY for part in parts]
    columns = [texts[numbers[:, part][there]] for part, there in zip(parts, stands, strict=True)]
    more = further != EMPTY
    counts = torch.stack([there.sum(dim=1) for there in (*stands[1:], more)], dim=1)
    own = torch.cat([keys[:, part][there] for part, there in zip(parts, stands, strict=True)])
    return UnfoldedBatch(columns, counts, own, further[more])


class TupleMultiPositive(MultiPositive):
    """SupMPN's loss on tuples of any size.

    Args:
        positives: places for positives.
        false_negative_filter: unless ``"off"``, texts that count as the same as the anchor or one of its positives are
            no negatives of it.
        settings: further settings of :class:`MultiPositive`, and the model.
    """

    takes = TAKES
    labels = "class"

    def __init__(self, *model: Any, positives: int = 5, false_negative_filter: Guard = "same", **settings: Any) -> None:
        super().__init__(*model, positives=positives, **settings)
        self.columns = (1, 1)
        self.settings["false_negative_filter"] = false_negative_filter

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the tuples as :meth:`MultiPositive.loss` takes them."""
        found = unfolded(embeddings[0], labels, self.settings["positives"])
        keys = [*torch.split(found.keys, [len(column) for column in found.columns]), found.further]
        return [*found.columns, *(keys if self.settings["false_negative_filter"] != "off" else ())], found.counts


class _OnTuples(EmbeddingLoss):
    """Tuples with the number of places for positives that ``positives`` says; the rest is the other base's."""

    takes = TAKES
    columns = (1, 1)
    labels = "class"

    def __init__(self, *model: Any, positives: int = 5, **settings: Any) -> None:
        super().__init__(*model, **settings)
        self.positives = positives

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return all texts in one column, and their classes."""
        return classified(unfolded(embeddings[0], labels, self.positives))


class TupleTriplet(_OnTuples, Triplet):
    """The triplet loss on tuples of one positive and one negative."""

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return anchors, positives and negatives."""
        return unfolded(embeddings[0], labels, 1).columns, None


class TupleSupCon(_OnTuples, SupCon):
    """SupCon on tuples."""


class TupleBatchTriplet(_OnTuples, BatchTriplet):
    """Triplets found among the texts of tuples."""


def classified(found: UnfoldedBatch) -> tuple[list[Tensor], Tensor]:
    """Return the embeddings of all texts in one column, and the class of each: a positive has that of its anchor.

    Anchors that share a text, as anchor or positive in any process, are one class. A negative with such a text is of
    its class, and any other of its own.
    """
    anchors, positives, _ = torch.split(found.keys, [len(column) for column in found.columns])
    texts = gather(torch.cat([anchors, positives]))
    owners = gather(torch.cat([anchors, anchors.repeat_interleave(found.counts[:, 0])]))
    numbers, places = torch.unique(torch.cat([texts, owners, found.keys]), return_inverse=True)
    text, owner, each = torch.split(places, [len(texts), len(owners), len(found.keys)])
    return [torch.cat(found.columns)], numbers[_lowest_linked(text, owner, len(numbers))[each]]


def _lowest_linked(first: Tensor, second: Tensor, count: int) -> Tensor:
    """Return for each of ``count`` numbers the lowest one that links, ``(links,)`` of either end, lead to from it."""
    lowest = torch.arange(count, device=first.device)
    while True:
        least = torch.minimum(lowest[first], lowest[second])
        lower = lowest.scatter_reduce(0, first, least, "amin").scatter_reduce(0, second, least, "amin")
        if torch.equal(lower, lowest):
            return lowest
        lowest = lower
