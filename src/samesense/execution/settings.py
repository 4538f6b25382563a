"""Base class of all settings: unknown names and numbers beyond use are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from samesense.errors import ConfigError

MOST = 10**9
"""Largest number that a setting takes, unless it is in :data:`LESS`: far beyond any use, and within every type."""

LESS = {
    "seed": 2**32 - 1,
    **dict.fromkeys(("batch_size", "discriminator_batch_size", "generator_batch_size"), 10**6),
    **dict.fromkeys(("learning_rate", "discriminator_learning_rate", "generator_learning_rate"), 1),
}
"""Largest numbers of some settings: numpy's bound of a seed, batches that no machine holds, and steps that
leave nothing of a model."""


def comma_separated(value: Any) -> Any:
    """Split a string at commas, as a flag with a dot passes several words in one; return other values unchanged."""
    if not isinstance(value, str):
        return value
    return value.split(",")


def split_at_commas(value: Any) -> list[Any]:
    """Return the values of one or several words, split at commas."""
    words = [value] if isinstance(value, str | int | float) else value
    return [piece for word in words for piece in (word.split(",") if isinstance(word, str) else [word])]


class Settings(BaseModel):
    """Immutable settings, validated on creation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*")
    @classmethod
    def _is_usable(cls, value: Any, info: ValidationInfo) -> Any:
        most = LESS.get(str(info.field_name), MOST)
        if isinstance(value, int | float) and value > most:
            raise PydanticCustomError("too_large", "input should be at most {most}", {"most": most})
        return value

    def refuse(self, names: Iterable[str], where: str) -> None:
        """Raise ConfigError if one of the named settings was set, which have no effect ``where`` a condition holds."""
        for name in names:
            if name in self.model_fields_set:
                raise ConfigError(
                    f"{name} has no effect where {where}; received {name} {getattr(self, name)}. Leave it out."
                )


Kind = TypeVar("Kind", bound=Settings)


def with_defaults(**defaults: Any) -> Callable[[type[Kind]], type[Kind]]:
    """Give a class other defaults of settings that it inherits."""

    def change(settings: type[Kind]) -> type[Kind]:
        # Each class has its own copies of inherited fields, and builds its schema of them at first use.
        for name, default in defaults.items():
            settings.model_fields[name].default = default
        return settings

    return change
