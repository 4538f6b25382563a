"""Settings of the Surrogate; see :mod:`samesense.recipes.surrogate.recipe`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from samesense.errors import ConfigError
from samesense.recipes.settings import BI_ONLY, EncoderSettings
from samesense.training.losses.spec import Encoder


class SurrogateSettings(EncoderSettings):
    """Settings of a model that learns the scores of an Origin; the defaults are the paper's, where it states them."""

    encoder: Encoder = Field("bi", description="bi embeds the sentences apart; cross reads both together")
    targets: Literal["score", "spread"] = Field(
        "score", description="Origin's scores as they are, or spread over 0 to 1 from the lowest to the highest"
    )
    held_out_share: float = Field(
        0.01, gt=0, lt=0.5, description="share of the pairs that selects, and a second one that tests what was kept"
    )
    most_pairs: int | None = Field(None, ge=2, description="pairs trained on, of those that are left [all]")
    learning_rate: float = Field(1e-4, gt=0, description="peak learning rate of AdamW")
    weight_decay: float = Field(0.0, ge=0, description="weight decay, not applied to biases and layer norms")
    batch_size: int = Field(64, ge=1, description="examples in a step")
    epochs: float = Field(1.0, gt=0, description="passes over the training data")

    @model_validator(mode="after")
    def _belongs(self) -> SurrogateSettings:
        given = [name for name in BI_ONLY if getattr(self, name) != type(self).model_fields[name].default]
        if self.encoder == "cross" and given:
            received = ", ".join(f"{name} {getattr(self, name)}" for name in given)
            raise ConfigError(
                f"{', '.join(BI_ONLY)} belong to encoder bi; a cross-encoder reads both sentences together and forms "
                f"no vector of either. Received {received}. Leave them out."
            )
        return self
