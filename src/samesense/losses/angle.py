"""AnglE's full loss, whose first term is that of :class:`~samesense.losses.cosent.CoSENT`.

    L = cosine_weight * CoSENT of the cosines / temperature
      + in_batch_weight * InfoNCE of the positive pairs, against the second sentences of all pairs / temperature
      + angle_weight * CoSENT of AnglE's similarities / angle_temperature

A term of weight 0 is not computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from samesense.data.pairs import targets as pairs
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosent import cosent
from samesense.losses.cosine import angle_scores, row_cosine
from samesense.losses.info_nce import info_nce
from samesense.losses.lazy import torch
from samesense.losses.lessons import OF_ANGLE
from samesense.losses.settings import PositiveAbove, Temperature
from samesense.losses.spec import LossSpec

if TYPE_CHECKING:
    from torch import Tensor, nn


class AngleSettings(Temperature):
    """Settings of AnglE's three terms."""

    angle_temperature: float = Field(1.0, gt=0, description="divides AnglE's similarities")
    cosine_weight: float = Field(1.0, ge=0, description="weight of CoSENT of the cosines")
    in_batch_weight: float = Field(1.0, ge=0, description="weight of InfoNCE of the positive pairs")
    angle_weight: float = Field(1.0, ge=0, description="weight of CoSENT of AnglE's similarities")


class AnglE(EmbeddingLoss):
    """CoSENT of cosines and of AnglE's similarities, and in-batch negatives: pairs with labels on any ordinal scale.

    Args:
        model: the sentence-transformers model to train; its dimension must be even.
        positive_above: pairs with a larger label are positive.
        temperature: divides the cosines.
        angle_temperature: divides AnglE's similarities.
        cosine_weight: weight of CoSENT of the cosines.
        in_batch_weight: weight of InfoNCE, which is left out for a batch without a positive pair.
        angle_weight: weight of CoSENT of AnglE's similarities.

    Raises:
        ValueError: if no weight is above 0, or one is negative.

    Source: Li and Li 2024 (AnglE), the sum of its three objectives; temperatures 0.05, and 1 for the angle.
    Differs: the in-batch term is a mean over positive pairs, in the paper a sum. Equal sentences of a batch are not
        detected and count as negatives of each other; use batches without duplicates.
    """

    labels = "order"

    def __init__(
        self,
        model: nn.Module,
        *,
        positive_above: float,
        temperature: float = 0.05,
        angle_temperature: float = 1.0,
        cosine_weight: float = 1.0,
        in_batch_weight: float = 1.0,
        angle_weight: float = 1.0,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.weights = (cosine_weight, in_batch_weight, angle_weight)
        if min(self.weights) < 0 or not any(self.weights):
            raise ValueError(f"Weights must be >= 0 and one of them above 0; received {self.weights}.")
        self.settings = {
            "positive_above": positive_above,
            "temperature": temperature,
            "angle_temperature": angle_temperature,
            "cosine_weight": cosine_weight,
            "in_batch_weight": in_batch_weight,
            "angle_weight": angle_weight,
        }

    def loss(self, tensors: list[Tensor], labels: Tensor) -> Tensor:
        """Return the weighted sum of the three terms."""
        first, second = tensors
        temperature = self.settings["temperature"]
        angle_temperature = self.settings["angle_temperature"]
        positive = labels > self.settings["positive_above"]
        # As functions, because a term of weight 0 is not computed.
        terms: tuple[Callable[[], Tensor], ...] = (
            lambda: cosent(row_cosine(first, second), labels, temperature=temperature),
            lambda: info_nce(first[positive], second[positive], second[~positive], temperature=temperature),
            lambda: cosent(angle_scores(first, second), labels, temperature=angle_temperature),
        )
        weighted = [weight * term() for weight, term in zip(self.weights, terms, strict=True) if weight]
        return torch.stack(weighted).sum()


def _ordered_labels_with_threshold(data: PairData, *, positive_above: float | None = None) -> Targets:
    return replace(
        pairs.labels_in_order(data), settings={"positive_above": pairs.positive_threshold(data, positive_above)}
    )


ANGLE_OF_PAIRS = LossSpec(
    name="angle",
    module=AnglE,
    lesson=OF_ANGLE,
    settings=AngleSettings,
    targets=_ordered_labels_with_threshold,
    target_settings=PositiveAbove,
    batches=("label-aware", "no-duplicates"),
)
