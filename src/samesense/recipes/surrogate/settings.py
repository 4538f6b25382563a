"""Settings of the Surrogate; see :mod:`samesense.recipes.surrogate.recipe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from samesense.errors import ConfigError
from samesense.execution.settings import with_defaults
from samesense.losses.spec import Encoder
from samesense.recipes.settings import BI_ONLY, EncoderSettings

if TYPE_CHECKING:
    from samesense.recipes.surrogate.data import Harvested


EPOCHS_OF_SENTENCES = 4.0
"""Epochs of training on sentences. Measured: with 2,700 sentences, held-out scores still rise after three."""


@with_defaults(learning_rate=1e-4, weight_decay=0.0, batch_size=64, epochs=1.0)
class SurrogateSettings(EncoderSettings):
    """Settings of training on an Origin's scores; the defaults are the paper's, where it states them."""

    encoder: Encoder = Field("bi", description="bi embeds the sentences apart; cross reads both together")
    learn_from: Literal["auto", "sentences", "pairs"] = Field(
        "auto",
        description="learn the scores of pairs, or the vectors of sentences (of a harvest by next words)",
    )
    targets: Literal["score", "spread"] = Field(
        "score", description="Origin's scores as they are, or spread over 0 to 1 from the lowest to the highest"
    )
    held_out_share: float = Field(
        0.01, gt=0, lt=0.5, description="share of the pairs that selects, and a second one that tests what was kept"
    )
    most_pairs: int | None = Field(None, ge=2, description="most pairs to train on, of those not held out [all]")

    def sentences_fit(self) -> bool:
        """Return whether the settings allow training on sentences: an encoder, unscaled targets, no limit of pairs."""
        return self.learn_from != "pairs" and not self._pair_settings()

    def for_data(self, train: Harvested) -> Self:
        """Return the settings with more epochs for training on sentences, which are fewer than pairs."""
        # A value that was given counts, also one that equals the default.
        if "epochs" in self.model_fields_set or not train.by_sentences:
            return self
        return self.model_copy(update={"epochs": EPOCHS_OF_SENTENCES})

    def _pair_settings(self) -> list[str]:
        """Return the settings that require training on pairs."""
        defaults = {"encoder": "bi", "targets": "score", "most_pairs": None}
        return [f"{name} {getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]

    @model_validator(mode="after")
    def _belongs(self) -> SurrogateSettings:
        changed = [name for name in BI_ONLY if getattr(self, name) != type(self).model_fields[name].default]
        if self.encoder == "cross" and changed:
            received = ", ".join(f"{name} {getattr(self, name)}" for name in changed)
            raise ConfigError(
                f"{', '.join(BI_ONLY)} belong to encoder bi; a cross-encoder reads both sentences together and forms "
                f"no vector of either. Received {received}. Leave them out."
            )
        if self.learn_from == "sentences" and self._pair_settings():
            raise ConfigError(
                f"learn_from sentences teaches an encoder vectors; {' and '.join(self._pair_settings())} is for pairs. "
                "Leave one of them out."
            )
        return self
