"""Losses over the tuples of :class:`~samesense.training.tuple_batches.TupleBatches`, ragged or not.

SupMPN and the losses it is compared with use the same batches; each arranges the embeddings for its own formula. The
triplet loss needs tuples of one positive and one negative. For SupCon and BatchHard the anchor and its positives form a
class, and each negative is a class by itself, unless its text is also an anchor or a positive of the batch: then it
belongs to that class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from samesense.data.tuples.augmentations import PARAPHRASER, AugmentName
from samesense.data.tuples.completion import Guard
from samesense.losses.base import EmbeddingLoss
from samesense.losses.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

EMPTY = -1
"""Label of a place without a text."""

TAKES = "one text column, put together by TupleBatches out of anchors with their row numbers as labels"


class Filter(BaseModel):
    """Setting of losses that can filter false negatives."""

    false_negative_filter: Guard = Field(
        "same",
        description="texts left out as negatives of an anchor: same: equal to it or a positive of it; near: also of "
        "the same words; off: none",
    )


class DrawnSettings(BaseModel):
    """Settings for drawing and padding tuples, and for encoding equal texts."""

    resample: Literal["epoch", "fixed"] = Field("epoch", description="draw tuples again each epoch, or once")
    encode_once: bool = Field(True, description="encode equal sentences of a batch once; copies of an anchor apart")
    tuples: Literal["padded", "ragged"] = Field(
        "padded",
        description="padded fills all places, copies of the anchor as positives unless the loss takes one; ragged "
        "leaves them empty",
    )


class FilteredDrawnSettings(DrawnSettings, Filter):
    """Settings of tuples whose negatives are filtered when they are drawn."""


class PlacesSettings(DrawnSettings):
    """Settings of tuples with several positives and negatives."""

    positives: int = Field(5, ge=1, description="places for positives of an anchor")
    negatives: int = Field(5, ge=0, description="places for negatives of an anchor")
    augment: AugmentName = Field(
        "none", description="how places for positives are filled before copies of the anchor are taken"
    )
    augment_share: float | None = Field(
        None, gt=0, le=1, description="share of words, or of texts [deletion 0.1, synonym 0.2, paraphrase 0.5]"
    )
    paraphraser: str = Field(PARAPHRASER, description="paraphrase: folder or hub name of a seq2seq model")


@dataclass(frozen=True)
class UnfoldedBatch:
    """The embeddings and keys of a batch of tuples."""

    # embeddings of the anchors, all positives and all negatives, in the order of their anchors
    columns: list[Tensor]
    counts: Tensor  # (anchors, 3) numbers of positives, of negatives, and of positives that may not be drawn
    keys: Tensor  # one number per text, in the order of the embeddings, equal for texts that count as the same
    extra_keys: Tensor  # keys of positives that may not be drawn, in the order of their anchors


def unfold(texts: Tensor, labels: Tensor | None, positives: int) -> UnfoldedBatch:
    """Return the tuples of a batch from the embeddings of its texts ``(texts, dim)``, each once.

    Labels are ``(batch, 3, places)``; see :class:`~samesense.training.tuple_batches.TupleBatches`.
    """
    if labels is None or labels.ndim != 3 or labels.shape[1] != 3 or labels.shape[2] <= positives:
        received = "none" if labels is None else f"shape {tuple(labels.shape)}"
        raise ValueError(
            f"Tuples need labels (batch, 3, places) with more than {positives} places; received {received}. Take "
            "TupleBatches as the trainer's data_collator."
        )
    numbers, keys, extra_keys = labels.unbind(dim=1)
    # On a GPU, an index out of range would end the run with an assertion that names nothing.
    if int(numbers.max()) >= len(texts):
        raise ValueError(f"The labels name text {int(numbers.max())}, and the batch has {len(texts)} texts.")
    column_slices = [slice(0, 1), slice(1, 1 + positives), slice(1 + positives, None)]
    filled = [numbers[:, columns_of_role] != EMPTY for columns_of_role in column_slices]
    columns = [
        texts[numbers[:, columns_of_role][mask]] for columns_of_role, mask in zip(column_slices, filled, strict=True)
    ]
    has_extra = extra_keys != EMPTY
    counts = torch.stack([mask.sum(dim=1) for mask in (*filled[1:], has_extra)], dim=1)
    text_keys = torch.cat(
        [keys[:, columns_of_role][mask] for columns_of_role, mask in zip(column_slices, filled, strict=True)]
    )
    return UnfoldedBatch(columns, counts, text_keys, extra_keys[has_extra])


class TupleLoss(EmbeddingLoss):
    """Base of losses over tuples with ``positives`` places for positives; the formula is that of the other base."""

    takes = TAKES
    columns = (1, 1)
    labels = "class"

    def __init__(self, *model: Any, positives: int = 5, **settings: Any) -> None:
        super().__init__(*model, **settings)
        self.positives = positives

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return all texts in one column, and their classes."""
        return as_classes(unfold(embeddings[0], labels, self.positives))


def as_classes(batch: UnfoldedBatch) -> tuple[list[Tensor], Tensor]:
    """Return the embeddings of all texts in one column, and the class of each; a positive has that of its anchor.

    Anchors that share a text, as anchor or positive in any process, form one class. A negative with such a text belongs
    to its class; any other negative is a class by itself.
    """
    from samesense.losses.gather import gather  # loads torch

    anchors, positives, _ = torch.split(batch.keys, [len(column) for column in batch.columns])
    texts = gather(torch.cat([anchors, positives]))
    owners = gather(torch.cat([anchors, anchors.repeat_interleave(batch.counts[:, 0])]))
    # links between anchors and their texts form a graph, whose connected components are the classes
    numbers, inverse = torch.unique(torch.cat([texts, owners, batch.keys]), return_inverse=True)
    text, owner, all_indices = torch.split(inverse, [len(texts), len(owners), len(batch.keys)])
    return [torch.cat(batch.columns)], numbers[_component_labels(text, owner, len(numbers))[all_indices]]


def _component_labels(first: Tensor, second: Tensor, count: int) -> Tensor:
    """Return the lowest node in the connected component of each node; edges link ``first`` and ``second``."""
    lowest = torch.arange(count, device=first.device)
    while True:  # pass the lowest node along the edges until nothing changes
        link_lowest = torch.minimum(lowest[first], lowest[second])
        updated = lowest.scatter_reduce(0, first, link_lowest, "amin").scatter_reduce(0, second, link_lowest, "amin")
        if torch.equal(updated, lowest):
            return lowest
        lowest = updated
