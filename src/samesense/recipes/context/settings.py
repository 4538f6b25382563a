"""Settings of the way from documents to a model; see :mod:`samesense.recipes.context.recipe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from samesense.recipes.surrogate.settings import SurrogateSettings

if TYPE_CHECKING:
    from samesense.recipes.harvest.settings import HarvestSettings
    from samesense.recipes.origin.settings import OriginSettings

Part = dict[str, Any]


class ContextSettings(SurrogateSettings):
    """Settings of the Surrogate, and of the Origin and the harvest that it learns from."""

    origin_config: str = Field("scaled", description="settings of the Origin: bank, scaled, paper, or a TOML file")
    origin: Part | None = Field(None, description="single settings of the Origin, as in: --origin.contexts 50")
    harvest: Part | None = Field(None, description="settings of the harvest, as in: --harvest.pairs 10000")

    @field_validator("origin", "harvest")
    @classmethod
    def _named_as_fields(cls, value: Part | None) -> Part | None:
        return None if value is None else {key.replace("-", "_"): given for key, given in value.items()}

    @model_validator(mode="after")
    def _parts_are_settings(self) -> ContextSettings:
        if self.origin is not None or self.origin_config != "scaled":
            origin = self.origin_settings()
            if origin.contexts == "retrieved":
                origin.scheme()
        if self.harvest is not None:
            self.harvest_settings()
        return self

    def origin_settings(self) -> OriginSettings:
        """Return the settings of the Origin."""
        from samesense.recipes.origin.settings import choose_origin

        return choose_origin(self.origin_config, self.origin or {})

    def harvest_settings(self) -> HarvestSettings:
        """Return the settings of the harvest."""
        from samesense.recipes.harvest.settings import HarvestSettings
        from samesense.recipes.settings import bind

        return bind(HarvestSettings, self.harvest or {})
