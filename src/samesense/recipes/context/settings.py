"""Settings of the way from documents to a model; see :mod:`samesense.recipes.context.recipe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, field_validator, model_validator

from samesense.errors import ConfigError
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.settings import KEEP_START, KeepStart, bind, read_settings
from samesense.recipes.surrogate.settings import SurrogateSettings

if TYPE_CHECKING:
    from samesense.recipes.context.documents import Documents
    from samesense.recipes.origin.settings import OriginSettings

Part = dict[str, Any]

HELD_OUT_DOCUMENTS = 0.1
"""Share of the documents with sections on which the model is evaluated, and from which nothing is learnt."""

FEWEST_HELD_OUT = 8
"""Pairs that the held-out share is at least: which they are chance decides, and 1 of 3,000 such parts is empty."""


class ContextSettings(SurrogateSettings):
    """Settings of the Surrogate, and of the Origin and the harvest that it learns from."""

    origin_config: str = Field("words", description="settings of the Origin: words, scaled, paper, or a TOML file")
    origin: Part | None = Field(None, description="single settings of the Origin, as in: --origin.reference 1000")
    harvest: Part | None = Field(None, description="settings of the harvest, as in: --harvest.pairs 10000")
    keep_start: KeepStart = Field("unless-better", description=KEEP_START)

    @field_validator("origin", "harvest")
    @classmethod
    def _named_as_fields(cls, value: Part | None) -> Part | None:
        if value is None:
            return None
        return {key.replace("-", "_"): field_value for key, field_value in value.items()}

    @model_validator(mode="after")
    def _parts_are_settings(self) -> ContextSettings:
        origin = self.origin_settings()
        harvest = self.harvest_settings()
        if origin.contexts == "retrieved":
            # Made only to raise for settings that contradict each other.
            origin.scheme()
        harvest.check_contexts(origin.contexts)
        self._check_held_out(harvest.pairs)
        return self

    def _check_held_out(self, pairs: int) -> None:
        """Raise, before hours are spent, if hardly any pair would be held out to select or test the Surrogate."""
        if pairs * self.held_out_share < FEWEST_HELD_OUT:
            raise ConfigError(
                f"At least {FEWEST_HELD_OUT} harvested pairs must select the best state; held_out_share "
                f"{self.held_out_share:g} of harvest.pairs {pairs:,} is {pairs * self.held_out_share:g}. Give a larger "
                "held_out_share, or harvest more."
            )

    def for_data(self, train: Documents) -> Self:  # type: ignore[override]
        """Return the settings as they are: the Surrogate's data are not there yet."""
        return self

    def check_models(self) -> None:
        """Raise ModelError if the start or the language model cannot be had; opens nothing."""
        super().check_models()
        self.origin_settings().check_language_model()

    def origin_settings(self) -> OriginSettings:
        """Return the settings of the Origin."""
        from samesense.recipes.origin.settings import OriginSettings  # loads scipy

        usual = {"held_out_documents": HELD_OUT_DOCUMENTS}
        return bind(OriginSettings, usual, read_settings(self.origin_config, "origin"), self.origin or {})

    def harvest_settings(self) -> HarvestSettings:
        """Return the settings of the harvest."""
        return bind(HarvestSettings, self.harvest or {})


def surrogate_settings(settings: ContextSettings, **overrides: Any) -> SurrogateSettings:
    """Return the settings of the Surrogate with ``overrides``; epochs that were not given are left to its data."""
    names = set(SurrogateSettings.model_fields) - ({"epochs"} - settings.model_fields_set)
    return SurrogateSettings(**{name: getattr(settings, name) for name in names} | overrides)
