"""Settings of a recipe: a shipped file, then the user's own file, then flags; each later one wins."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from samesense.data.rows.sources import leads_to
from samesense.encoder.names import TEMPLATE_POOLING, is_template, resolve
from samesense.errors import ConfigError
from samesense.execution.settings import comma_separated
from samesense.hub import check_model
from samesense.training.settings import TrainingSettings
from samesense.types import First, PoolingName, Standardize

Settings = TypeVar("Settings", bound=BaseModel)


MOST_SHOWN = 200
"""Characters of a wrong value that a message shows."""


BI_ONLY = ("pooling", "first", "standardize", "matryoshka")
"""Settings of embeddings, which a cross-encoder does not form."""


KeepStart = Literal["never", "unless-higher", "unless-better"]
"""When the start is kept and the trained model is not: never; unless the trained one's figure is higher; or unless the
verdict is that the trained one is better."""

KEEP_START = (
    "keep the start in place of the trained model: never; unless the trained model's figure is higher; or unless the "
    "verdict is better"
)
"""What ``keep_start`` does, for its help."""

REFIT = "where few examples were held out, train again on all of them at the end"
"""What ``refit`` does, for its help."""


class EncoderSettings(TrainingSettings):
    """Settings of every recipe that trains an encoder: the start point, and how it makes a sentence vector.

    A model that brings a pooling, a length and prompts of its own keeps them unless a setting says otherwise. A bare
    transformer has none, and takes the pooling and the training length of the method.
    """

    bare_pooling: ClassVar[PoolingName] = "mean"
    bare_length: ClassVar[int] = 128

    model: str = Field("default", description="folder, hub name, or default: all-MiniLM-L6-v2 from its package")
    pooling: PoolingName | None = Field(None, description="pooling [the model's own; a bare transformer's mean]")
    first: First = Field("layer", description="what first means in first-last: the first layer, or embeddings")
    standardize: Standardize = Field(
        "none", description="spread a start whose texts all lie close together; auto subtracts their mean where they do"
    )
    max_seq_length: int | None = Field(
        None, ge=2, description="longest input in training, in tokens [the model's own; a bare transformer's 128]"
    )

    prompt: str | None = Field(
        None, description="text before every text, or around it as {text}, or one of the model's prompts [its default]"
    )
    guard: tuple[str, ...] = Field((), description="pairs on which the model must not get worse")
    merge: bool = Field(False, description="keep the weights between start and end that are best on dev")
    learning_curve: bool = Field(False, description="predict what twice the data would give")
    report: bool = Field(True, description="write report.html into the run folder")

    license: str | None = Field(None, description="licence of the model, for its card [the base's]")
    language: tuple[str, ...] = Field((), description="languages of the model, for its card, as in: en,de [the base's]")

    _words = field_validator("language", mode="before")(comma_separated)

    @model_validator(mode="after")
    def _have_effect(self) -> Self:
        for name, (needed, value) in self.without_effect(dict(self)).items():
            raise ConfigError(
                f"{name} has an effect where {needed} is {value}; received {name} {getattr(self, name)} and {needed} "
                f"{getattr(self, needed)}. Leave it out, or change {needed}."
            )
        return self

    @model_validator(mode="after")
    def _kept_adapters(self) -> Self:
        if self.keep_lora and (self.lora is None or self.merge or getattr(self, "encoder", "bi") == "cross"):
            raise ConfigError(
                "`keep_lora` saves the adapters of a bi-encoder by themselves: it needs `lora`, and goes neither with "
                "encoder cross, whose head is trained in full, nor with `merge`, which mixes whole weights."
            )
        return self

    @classmethod
    def without_effect(cls, stated: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Return which stated settings have no effect beside the others: the setting that each needs, and its value."""
        return {}

    @classmethod
    def fitting(cls, shipped: SettingsFile, overrides: Mapping[str, Any]) -> SettingsFile:
        """Return a shipped file without what has no effect beside the settings that are given."""
        idle = cls.without_effect({**shipped, **overrides})
        return SettingsFile({name: value for name, value in shipped.items() if name not in idle}, shipped.name)

    def teaches_beyond_labels(self, train: Any) -> bool:
        """Return whether a model learns more from labelled pairs than a verdict on their labels measures."""
        return False

    def examples(self, train: Any) -> int:
        """Return how many examples an epoch has."""
        return len(train)

    def check_models(self) -> None:
        """Raise ModelError if the start is not there, or to come from a hub that cannot be reached; opens nothing."""
        check_model(resolve(self.model))

    def for_start(self, *, bare: bool) -> Self:
        """Return the settings with the pooling and the length of the method where the start model has none."""
        if not bare:
            return self
        start_settings: dict[str, Any] = {"max_seq_length": self.max_seq_length or self.bare_length}
        if getattr(self, "encoder", "bi") == "bi":
            start_settings["pooling"] = self.pooling or self._bare_pooling()
        return self.model_copy(update=start_settings)

    def _bare_pooling(self) -> PoolingName:
        """Return the pooling of a bare transformer: in a template the last token speaks for the text."""
        if is_template(self.prompt):
            return TEMPLATE_POOLING
        return self.bare_pooling


Shipped = Literal["", "distil", "origin"]
"""For what settings are shipped: the methods of training, or one of the recipes with a folder of their own."""


def shipped(of: Shipped = "") -> list[str]:
    """Return the names of the shipped settings files."""
    names = (entry.name for entry in _configs(of).iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def _configs(of: Shipped) -> Traversable:
    return files("samesense.recipes") / "configs" / of


def read_settings(name: str, of: Shipped = "") -> SettingsFile:
    """Return a shipped settings file (by name) or the user's own (by path); ConfigError if it is no TOML file."""
    if name in shipped(of):
        return SettingsFile(read_toml(_configs(of) / f"{name}.toml"), name)
    if not leads_to(name, Path.is_file):
        raise ConfigError(
            f"`config` takes a TOML file or one of {', '.join(shipped(of))}; received {name!r}, which is neither."
        )
    return SettingsFile(read_toml(Path(name).expanduser()), name)


class SettingsFile(dict[str, Any]):
    """The settings of a file, which messages name."""

    def __init__(self, content: Mapping[str, Any], name: str) -> None:
        super().__init__(content)
        self.name = name


def read_toml(path: Path | Traversable) -> dict[str, Any]:
    """Return the contents of a TOML file; ConfigError if it cannot be read or parsed."""
    try:
        # Some editors begin a file with a byte order mark, which tomllib refuses.
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: there is no such file. Check the spelling and the working directory.") from error
    except RecursionError as error:
        raise ConfigError(f"{path} is no TOML file that can be read: it is nested too deep.") from error
    except (OSError, ValueError) as error:  # ValueError also of numbers of thousands of digits
        raise ConfigError(f"{path} is no TOML file that can be read: {error}.") from error


def bind(model: type[Settings], *layers: Mapping[str, Any]) -> Settings:
    """Return the settings that ``layers`` give, the later ones winning, checked before anything is computed.

    A path stands for its text, as that of the folder of a model.
    ConfigError for an unknown key (naming the nearest one) or a value out of range.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer)
    merged = {key: str(value) if isinstance(value, Path) else value for key, value in merged.items()}
    check_known(merged, model.model_fields, lambda key: _place(key, layers))
    try:
        return model(**merged)
    except ValidationError as error:
        # What a validator of the whole model raises has no location.
        raise as_config_error(error, _place(str((*error.errors()[0]["loc"], "")[0]), layers)) from error


OTHER_NAMES = {
    "lr": "learning_rate",
    "bs": "batch_size",
    "per_device_train_batch_size": "batch_size",
    "gradient_accumulation_steps": "mini_batch_num_tokens",
    "num_train_epochs": "epochs",
    "fp16": "precision",
    "bf16": "precision",
    "model_name_or_path": "model",
    "random_state": "seed",
}
"""Settings of other programs, whose names are far from those here."""


def check_known(
    keys: Iterable[str], fields: Collection[str], location_of: Callable[[str], str] = lambda key: ""
) -> None:
    """Raise ConfigError for an unknown key, naming the nearest one; ``location_of`` says where a key stands."""
    # The first by name, so that the message does not depend on the order of a set.
    unknown = min(set(keys) - set(fields), default=None)
    if unknown is not None:
        ours = OTHER_NAMES.get(unknown)
        near = [ours] if ours in fields else difflib.get_close_matches(unknown, fields, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(fields)}."
        raise ConfigError(f"{location_of(unknown)}There is no setting {unknown!r}.{hint}")


def _place(key: str, layers: Sequence[Mapping[str, Any]]) -> str:
    """Return the file that a setting stands in, for the start of a message; nothing if it was given otherwise."""
    # The last layer with the setting is the one that has won.
    last = next((layer for layer in reversed(layers) if key in layer), None)
    if not isinstance(last, SettingsFile):
        return ""
    return f"{last.name}: "


def as_config_error(error: ValidationError, location: str = "") -> ConfigError:
    """Return what pydantic found wrong first, in one line: the setting, its rule, and what was received."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "settings"
    rule = "is a list, in brackets"
    if first["type"] not in ("tuple_type", "list_type"):
        rule = first["msg"].lower()
    received = repr(first["input"])[:MOST_SHOWN]
    # A model that is loaded already, whose representation is long.
    if first["type"] == "string_type" and any(hasattr(first["input"], name) for name in ("encode", "save_pretrained")):
        rule = "is a name; save what is in memory, as by model.save_pretrained(FOLDER), and give the folder"
        received = type(first["input"]).__name__
    return ConfigError(f"{location}{key}: {rule}; received {received}.")
