"""What is known of a loss in one place, and what flags, checks and messages derive from it; without torch.

The losses themselves stand in :mod:`samesense.training.losses.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, create_model

from samesense.data.formats.labels import Kind
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets
from samesense.errors import ConfigError, DataError
from samesense.training.losses.lessons import OF_PAIRS, Lesson

if TYPE_CHECKING:
    from torch import nn

Settings = TypeVar("Settings", bound=BaseModel)

Encoder = Literal["bi", "cross"]
"""Two sentences embedded apart and compared by cosine, or read together and scored."""


class NoSettings(BaseModel):
    """A loss without settings of its own."""


@dataclass(frozen=True, kw_only=True)
class LossSpec:
    """One loss."""

    name: str  # as in --loss
    module: str  # class of the loss module below samesense.training.losses, as in pairs.CoSENT
    settings: type[BaseModel] = NoSettings  # what the module takes by these names
    # forms the columns and labels that the module takes out of the training data
    targets: Callable[..., Targets] | None = None
    target_settings: type[BaseModel] = NoSettings  # what targets takes by these names
    kinds: tuple[Kind, ...] = ("scored", "binary", "nli", "triple")  # of the labels that it fits
    takes: str = "labelled pairs"  # the labels that it fits, in words
    batches: tuple[str, ...] = ()  # how its batches can be formed, besides at random
    encoder: Encoder = "bi"  # the kind of encoder that it trains
    lesson: Lesson = OF_PAIRS  # what a batch must have for it to be learnt from

    @property
    def fields(self) -> dict[str, Any]:
        """The settings that belong to the loss, by name."""
        return {**self.settings.model_fields, **self.target_settings.model_fields}

    def build(self, model: nn.Module, settings: Any, targets: Targets) -> nn.Module:
        """Return the loss module.

        ``targets`` is what it is trained on, of which it may take the number of classes and the like.
        """
        own = {name: getattr(settings, name) for name in self.settings.model_fields}
        budget = settings.mini_batch_num_tokens
        made: nn.Module = loss_class(self.module)(model, **own, **targets.settings, mini_batch_num_tokens=budget)
        return made


def loss_class(module: str) -> Any:
    """Return a class below ``samesense.training.losses``, named as in ``pairs.CoSENT``."""
    file, _, name = module.rpartition(".")
    return getattr(import_module(f"samesense.training.losses.{file}"), name)


class Losses:
    """The losses of one kind of training data, in the order in which they are proposed."""

    def __init__(self, *specs: LossSpec) -> None:
        self.specs = specs

    def names(self, encoder: Encoder | None = None) -> list[str]:
        """Return the names of all losses, or of those for one kind of encoder."""
        return list(dict.fromkeys(spec.name for spec in self.specs if encoder in (None, spec.encoder)))

    def spec(self, name: str, encoder: Encoder = "bi") -> LossSpec:
        """Return a loss; ConfigError if this kind of encoder has none of this name."""
        for spec in self.specs:
            if (spec.name, spec.encoder) == (name, encoder):
                return spec
        raise ConfigError(f"The losses of encoder {encoder} are {', '.join(self.names(encoder))}; received {name}.")

    def owners(self, setting: str) -> list[str]:
        """Return the losses to which a setting belongs; none if it belongs to all."""
        return list(dict.fromkeys(spec.name for spec in self.specs if setting in spec.fields))

    def belongs(self, setting: str, name: str, encoder: Encoder = "bi") -> bool:
        """Return whether a setting has an effect with this loss."""
        own = [spec.fields for spec in self.specs if (spec.name, spec.encoder) == (name, encoder)]
        return not self.owners(setting) or any(setting in fields for fields in own)

    def check(self, stated: Iterable[str], name: str, encoder: Encoder = "bi") -> None:
        """Raise if a stated setting would have no effect, because it belongs to another loss."""
        if self.names(encoder):  # an unknown encoder is left to the check of its own setting
            self.spec(name, encoder)
        for setting in stated:
            if not self.belongs(setting, name, encoder):
                owners = self.owners(setting)
                needed = "encoder bi" if name in owners else f"loss {' or '.join(owners)}"
                raise ConfigError(
                    f"{setting} belongs to {needed}, and this is loss {name} with encoder {encoder}. Leave it out, or "
                    f"choose {needed}."
                )

    def check_batches(self, batches: str, name: str, encoder: Encoder = "bi") -> None:
        """Raise if batches cannot be formed in this way for a loss."""
        if batches != "random" and batches not in self.spec(name, encoder).batches:
            owners = dict.fromkeys(spec.name for spec in self.specs if batches in spec.batches)
            raise ConfigError(
                f"batches {batches} are made for loss {' or '.join(owners)}; received loss {name}. Leave it out."
            )

    def targets(self, data: PairData, name: str, encoder: Encoder = "bi", /, **settings: Any) -> Targets:
        """Return what a loss is trained on."""
        spec = self.spec(name, encoder)
        if data.kind not in spec.kinds or spec.targets is None:
            raise DataError(
                f"{name} takes {spec.takes}; {data.source} has {data.kind} labels. These losses fit: "
                f"{self.fitting(data.kind, encoder)}."
            )
        defaults = spec.target_settings()
        own = {key: settings.get(key, default) for key, default in defaults}
        made = spec.targets(data, **own)
        return Targets(made.columns, f"{name}: {made.summary}", made.settings)

    def fitting(self, kind: Kind, encoder: Encoder = "bi") -> str:
        """Return the losses that fit a kind of labels, in words."""
        *most, last = [spec.name for spec in self.specs if kind in spec.kinds and spec.encoder == encoder]
        return f"{', '.join(most)} and {last}" if most else last

    def add_settings(self, settings: type[Settings]) -> type[Settings]:
        """Give a class of settings the choices of ``loss``, and the settings of all losses that it has not itself.

        Their descriptions begin with the losses to which they belong.
        """
        found: dict[str, Any] = {}
        for spec in self.specs:
            for name in [name for name in spec.fields if name not in settings.model_fields]:
                field = copy(spec.fields[name])
                field.description = f"{', '.join(self.owners(name))}: {field.description}"
                found[name] = (field.annotation, field)
        found["loss"] = (Literal[tuple(self.names())], copy(settings.model_fields["loss"]))
        made: Any = create_model(
            settings.__name__, __base__=settings, __module__=settings.__module__, __doc__=settings.__doc__, **found
        )
        return made  # type: ignore[no-any-return]
