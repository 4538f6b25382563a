"""Binary cross-entropy of a cross-encoder's logits, its usual loss.

    L = mean over pairs of  -y log p - (1 - y) log(1 - p)

with ``p`` the sigmoid of the pair's logit and ``y`` its label from 0 to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from samesense.data.pairs import targets as pairs
from samesense.losses.cosine import check_scores, reduced, widen
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.losses.lazy import F
from samesense.losses.lessons import OF_ROWS
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor


class CrossEntropy(CrossEncoderLoss):
    """Binary cross-entropy of the logits, the usual loss of a cross-encoder, with labels from 0 to 1.

    Source: Huang et al. 2024 (TASLP), section V-E, as the baseline of CoSENT.
    Differs: one logit and a sigmoid, with the value of ``BinaryCrossEntropyLoss`` of sentence-transformers. The blog's
        code has two logits and a softmax.
    """

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over pairs of -y log p - (1 - y) log(1 - p), with p the sigmoid of the logit.

        ValueError if a label lies outside 0 to 1.
        """
        check_scores("CrossEntropy", logits, labels)
        outside = labels[(labels < 0) | (labels > 1)]
        if len(outside):
            raise ValueError(f"CrossEntropy takes labels from 0 to 1; received {outside[0].item():g}.")
        logits = widen(logits)
        losses = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
        return reduced(losses, "mean")


CROSS_ENTROPY_OF_LOGITS = LossSpec(
    name="cross-entropy",
    encoder="cross",
    module=CrossEntropy,
    lesson=OF_ROWS,
    targets=pairs.labels_from_0_to_1,
    batches=("label-aware",),
)
