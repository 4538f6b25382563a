"""Settings of a training on data of several kinds."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from samesense.errors import ConfigError
from samesense.recipes.mixed.data import Mixture
from samesense.recipes.settings import EncoderSettings


class MixedSettings(EncoderSettings):
    """Settings of the whole run; those of each kind stand in ``parts``, under its name."""

    mixing: Literal["proportional", "round-robin", "weighted", "in-turn"] = Field(
        "proportional",
        description="order of the batches of each kind: by their numbers; one of each, until one kind is through; by "
        "weights; or all steps on one before the next",
    )
    weights: tuple[float, ...] | None = Field(
        None, description="weighted, in-turn: share of each kind in the steps, in the order of the data"
    )
    batch_size: int = Field(16, ge=1, description="examples per step [by method]")
    epochs: float = Field(1.0, gt=0, description="passes over the training data; round-robin: over the smallest kind")
    parts: dict[str, dict[str, Any]] = Field({}, description="settings of each kind by its name")

    @model_validator(mode="after")
    def _fits(self) -> MixedSettings:
        weights = "weights"
        impossible: tuple[str, ...] = ("proportional", "round-robin")
        if self.weights is None:
            weights = "no weights"
            impossible = ("weighted",)
        if self.mixing in impossible:
            raise ConfigError(
                "mixing weighted takes weights, in-turn may, and the others do not; received mixing "
                f"{self.mixing} and {weights}. Give both, or neither."
            )
        if self.weights is not None and min(self.weights, default=0.0) <= 0:
            raise ConfigError(
                f"weights takes a number above 0 for each kind; received {', '.join(map(str, self.weights)) or 'none'}."
            )
        return self

    def for_data(self, train: Mixture) -> Self:
        """Return the settings with the number of steps, which depends on the sizes of all kinds."""
        if self.weights is not None and len(self.weights) != len(train.parts):
            names = ", ".join(component.name for component in train.parts)
            raise ConfigError(
                f"weights takes a number for each kind, {names}; received {len(self.weights)} for {len(train.parts)}."
            )
        if self.max_steps:
            return self
        return self.model_copy(update={"max_steps": self._steps(train)})

    def _steps(self, train: Mixture) -> int:
        counts = [component.batches for component in train.parts]
        if self.mixing == "round-robin":
            # The rounds end with the smallest kind.
            batches = len(counts) * min(counts)
        else:
            batches = sum(counts)
        return max(1, math.ceil(self.epochs * batches))
