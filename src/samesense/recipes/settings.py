"""Settings of a recipe: a shipped file, then the user's own file, then flags; each later one wins."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from samesense.data import PairData
from samesense.data.formats.files import leads_to
from samesense.data.pairs.targets import Targets
from samesense.errors import ConfigError
from samesense.execution.settings import comma_separated
from samesense.training.losses.registry import PAIR_LOSSES
from samesense.training.losses.spec import Encoder, LossSpec
from samesense.training.settings import TrainingSettings
from samesense.types import First, PoolingName, Standardize

Settings = TypeVar("Settings", bound=BaseModel)


MOST_SHOWN = 200
"""Characters of a wrong value that a message shows."""

BI_ONLY = ("pooling", "first", "standardize", "matryoshka")
"""Settings of embeddings, which a cross-encoder does not form."""


class EncoderSettings(TrainingSettings):
    """Settings of every recipe that trains an encoder: the start point, and how it makes a sentence vector.

    A model that brings a pooling, a length and prompts of its own keeps them unless told otherwise. A bare transformer
    has none, and takes the pooling and the training length of the method.
    """

    bare_pooling: ClassVar[PoolingName] = "mean"
    bare_length: ClassVar[int] = 128

    model: str = Field("default", description="folder, hub name, or default: all-MiniLM-L6-v2 from its package")
    pooling: PoolingName | None = Field(None, description="pooling [the model's own; a bare transformer's mean]")
    first: First = Field("layer", description="what first means in first-last: the first layer, or embeddings")
    standardize: Standardize = Field(
        "none", description="spread a start whose texts all lie close together; auto whitens where they do"
    )
    max_seq_length: int | None = Field(
        None, ge=2, description="longest input in training, in tokens [the model's own; a bare transformer's 128]"
    )

    prompt: str | None = Field(
        None, description="text before every text, in training and use, or one of the model's prompts [its default]"
    )
    guard: tuple[str, ...] = Field((), description="pairs on which the model must not get worse")
    merge: bool = Field(False, description="keep weights between start and end, by dev")
    learning_curve: bool = Field(False, description="say what twice the data would give")
    report: bool = Field(True, description="write report.html into the run folder")

    license: str | None = Field(None, description="licence of the model, for its card [the base's]")
    language: tuple[str, ...] = Field((), description="languages of the model, for its card, as in: en,de [the base's]")

    _words = field_validator("language", mode="before")(comma_separated)

    def examples(self, train: Any) -> int:
        """Return how many examples an epoch has."""
        return len(train)

    def for_start(self, *, bare: bool) -> Self:
        """Return the settings with the pooling and the length of the method where the start model has none."""
        if not bare:
            return self
        own: dict[str, Any] = {"max_seq_length": self.max_seq_length or self.bare_length}
        if getattr(self, "encoder", "bi") == "bi":
            own["pooling"] = self.pooling or self.bare_pooling
        return self.model_copy(update=own)


@PAIR_LOSSES.add_settings
class CosentSettings(EncoderSettings):
    """Settings of the CoSENT recipe and of the losses it is compared with; the defaults are the paper's."""

    encoder: Encoder = Field("bi", description="bi embeds the sentences apart; cross reads both together")
    loss: str = Field(
        "cosent", description=f"what is minimised; cross takes {' and '.join(PAIR_LOSSES.names('cross'))}"
    )
    batches: Literal["random", "label-aware", "no-duplicates"] = Field(
        "random", description="label-aware: no batch of one label; no-duplicates: no text twice in a batch"
    )

    @model_validator(mode="after")
    def _belongs(self) -> CosentSettings:
        fields = type(self).model_fields
        check_belongs([name for name, value in self if value != fields[name].default], self.loss, self.encoder)
        PAIR_LOSSES.check_batches(self.batches, self.loss, self.encoder)
        return self

    @property
    def spec(self) -> LossSpec:
        """The loss that is trained."""
        return PAIR_LOSSES.spec(self.loss, self.encoder)

    def targets(self, train: PairData) -> Targets:
        """Return what the loss is trained on; see :meth:`samesense.training.losses.spec.Losses.targets`."""
        return PAIR_LOSSES.targets(train, self.loss, self.encoder, **dict(self))

    def examples(self, train: PairData) -> int:
        """Return how many examples an epoch has: those that the loss makes of the pairs."""
        return len(self.targets(train))


class SectionsSettings(EncoderSettings):
    """Settings of section triplets; the defaults are those of the recipe's sources."""

    per_document: int = Field(100, ge=1, description="most triplets drawn from a document")
    triplets_seed: int = Field(0, ge=0, description="seed of the drawing, the same for all seeds of a model")
    distance: Literal["cosine", "euclidean"] = Field("euclidean", description="triplet: distance")
    triplet_margin: float | None = Field(
        None, ge=0, description="triplet: how much nearer the positive must be [cosine 0.5, euclidean 1]"
    )
    epochs: float = Field(1.0, gt=0, description="passes over the training data")


def check_belongs(stated: Iterable[str], loss: str, encoder: Encoder = "bi") -> None:
    """Raise if a stated setting would have no effect, because it belongs to another loss or encoder."""
    PAIR_LOSSES.check(stated, loss, encoder)
    for name in stated:
        if not belongs(name, loss, encoder):
            raise ConfigError(
                f"{name} belongs to encoder bi, and this is loss {loss} with encoder {encoder}. "
                "Leave it out, or choose encoder bi."
            )


def belongs(name: str, loss: str, encoder: Encoder = "bi") -> bool:
    """Return whether a setting has an effect with this loss and encoder."""
    return PAIR_LOSSES.belongs(name, loss, encoder) and (encoder == "bi" or name not in BI_ONLY)


def choose(config: str, given: Mapping[str, Any], *, kind: str) -> tuple[str, CosentSettings]:
    """Return the settings of a run: the shipped ones for its kind of data, then the user's file, then flags.

    ``config`` is the name of a shipped file, the path of the user's own, or ``"auto"`` for the paper's on data of this
    ``kind``; the name returned is for people.
    """
    named = {} if config == "auto" else read_settings(config)
    encoder, loss = ({**named, **given}.get(key, default) for key, default in (("encoder", "bi"), ("loss", "cosent")))
    check_belongs(given, loss, encoder)
    paper = "cosent-cross" if encoder == "cross" else "cosent-nli" if kind == "nli" and config == "auto" else "cosent"
    papers, own = {**read_settings("cosent"), **read_settings(paper)}, named
    if config in shipped():
        papers, own = {**papers, **named}, {}
    fitting = {name: value for name, value in papers.items() if belongs(name, loss, encoder)}
    return paper if config == "auto" else config, bind(CosentSettings, fitting, own, given)


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
    """Return what a TOML file holds; ConfigError if it is none, whatever is wrong with it."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except RecursionError as error:
        raise ConfigError(f"{path} is no TOML file that can be read: it is nested too deep.") from error
    except (OSError, ValueError) as error:  # ValueError also of numbers of thousands of digits
        raise ConfigError(f"{path} is no TOML file that can be read: {error}.") from error


def bind(model: type[Settings], *layers: Mapping[str, Any]) -> Settings:
    """Return the settings that ``layers`` give, the later ones winning, checked before anything is computed.

    ConfigError for an unknown key (naming the nearest one) or a value out of range.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer)
    unknown = sorted(set(merged) - set(model.model_fields))
    if unknown:
        near = difflib.get_close_matches(unknown[0], model.model_fields, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(model.model_fields)}."
        raise ConfigError(f"{_place(unknown[0], layers)}There is no setting {unknown[0]!r}.{hint}")
    try:
        return model(**merged)
    except ValidationError as error:
        raise as_config_error(error, _place(str((*error.errors()[0]["loc"], "")[0]), layers)) from error


def _place(key: str, layers: Sequence[Mapping[str, Any]]) -> str:
    """Return the file that a setting stands in, for the start of a message; nothing if it was given otherwise."""
    last = next((layer for layer in reversed(layers) if key in layer), None)
    return f"{last.name}: " if isinstance(last, SettingsFile) else ""


def as_config_error(error: ValidationError, place: str = "") -> ConfigError:
    """Return what pydantic found wrong first, in one line: the setting, its rule, and what was received."""
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"])) or "settings"
    return ConfigError(f"{place}{key}: {first['msg'].lower()}; received {repr(first['input'])[:MOST_SHOWN]}.")
