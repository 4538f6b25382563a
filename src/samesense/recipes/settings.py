"""Settings of a recipe: a shipped file, then the user's own file, then flags; each later one wins."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from samesense.errors import ConfigError
from samesense.training.settings import TrainingSettings
from samesense.types import First, PoolingName

Settings = TypeVar("Settings", bound=BaseModel)


class CosentSettings(TrainingSettings):
    """Settings of the CoSENT recipe; the defaults are the paper's."""

    temperature: float = Field(0.05, gt=0, description="divides the cosines; 0.05 is the papers' scale of 20")
    margin: float = Field(0.0, ge=0, description="labels must differ by more than this to be compared")
    model: str = Field("default", description="folder, hub name, or default: all-MiniLM-L6-v2 from its package")
    pooling: PoolingName | None = Field(None, description="pooling [the model's own, or mean if it has none]")
    first: First = Field("layer", description="what first means in first-last: the first layer, or embeddings")
    max_seq_length: int | None = Field(128, ge=2, description="longest input in tokens")


def shipped() -> list[str]:
    """Return the names of the shipped settings files."""
    folder = files("samesense.recipes") / "configs"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_settings(name: str) -> dict[str, Any]:
    """Return the content of a shipped settings file (by name) or of the user's own (by path).

    Raises:
        ConfigError: if there is no such file, or it is not TOML.
    """
    entry = files("samesense.recipes") / "configs" / f"{name}.toml" if name in shipped() else Path(name)
    if not entry.is_file():
        raise ConfigError(
            f"--config takes a TOML file or one of {', '.join(shipped())}; received {name!r}, which is neither."
        )
    try:
        return tomllib.loads(entry.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name} is not a TOML file: {error}.") from error


def bind(model: type[Settings], *layers: Mapping[str, Any]) -> Settings:
    """Return the settings that ``layers`` give, the later ones winning, checked before anything is computed.

    Raises:
        ConfigError: for an unknown key (naming the nearest one) or a value out of range.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer)
    unknown = sorted(set(merged) - set(model.model_fields))
    if unknown:
        near = difflib.get_close_matches(unknown[0], model.model_fields, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(model.model_fields)}."
        raise ConfigError(f"There is no setting {unknown[0]!r}.{hint}")
    try:
        return model(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "settings"
        raise ConfigError(f"{key}: {first['msg'].lower()}; received {first['input']!r}.") from error
