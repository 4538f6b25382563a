"""InfoNCE on anchors of which only some have a hard negative."""

from __future__ import annotations

from torch import Tensor

from samesense.losses import info_nce
from samesense.training.losses.gather import gather
from samesense.training.losses.pairs import joined_labels
from samesense.training.losses.tuples import InfoNCE


class SomeHardNegatives(InfoNCE):
    """InfoNCE whose hard negatives count where the label is 1, and are only there to fill the column where it is 0.

    A batch without any is then InfoNCE over the positives alone. Which rows count is decided after rows have been
    gathered from all processes, so that every process sends a column of the same kind.
    """

    takes = "three text columns: anchor, positive, hard negative"
    labels = "binary"

    def columns_fit(self, columns: int, labels: Tensor | None) -> bool:
        """Return whether this many columns fit."""
        return columns == 3

    def loss(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        """Return :func:`samesense.losses.info_nce` with the negatives that count."""
        anchors, positives, negatives = (gather(column) for column in embeddings)
        known = joined_labels(labels, self) > 0
        if self.head is not None:
            anchors, positives, negatives = (self.head(column) for column in (anchors, positives, negatives))
        return info_nce(anchors, positives, negatives[known], **self.settings)
