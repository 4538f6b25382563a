"""The specification of a loss, from which flags, checks and messages are derived; without torch.

The losses are listed in :mod:`samesense.losses.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, create_model

from samesense.data.columns.labels import Kind
from samesense.data.pairs.data import PairData
from samesense.data.pairs.targets import Targets, grouped_by_first_text
from samesense.errors import ConfigError, DataError
from samesense.losses.lessons import OF_PAIRS, Lesson

if TYPE_CHECKING:
    from torch import nn

Settings = TypeVar("Settings", bound=BaseModel)

Encoder = Literal["bi", "cross"]
"""Bi-encoder, which embeds two texts separately, or cross-encoder, which scores them together."""


class NoSettings(BaseModel):
    """Settings of a loss without any."""


@dataclass(frozen=True, kw_only=True)
class LossSpec:
    """Specification of one loss."""

    name: str  # as in --loss
    module: type[Any]  # class of the loss module; its arguments are the settings
    settings: type[BaseModel] = NoSettings  # arguments of the module
    # makes the columns and labels for the module from the training data
    targets: Callable[..., Targets] | None = None
    target_settings: type[BaseModel] = NoSettings  # arguments of targets
    kinds: tuple[Kind, ...] = ("scored", "binary", "nli", "triplet")  # of the labels that it fits
    takes: str = "labelled pairs"  # these kinds of labels, in words
    batches: tuple[str, ...] = ()  # kinds of batches besides random ones
    encoder: Encoder = "bi"  # kind of encoder that it trains
    lesson: Lesson = OF_PAIRS  # what a batch needs for a non-zero gradient; of a grouped loss, a group in it
    grouped: bool = False  # whether it always compares within groups of one first text

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the loss's settings, by name."""
        return {**self.settings.model_fields, **self.target_settings.model_fields}

    def build(self, model: nn.Module, settings: Any, targets: Targets) -> nn.Module:
        """Return the loss module; ``targets``, which it is trained on, adds arguments such as the number of classes."""
        options = {name: getattr(settings, name) for name in self.settings.model_fields}
        budget = settings.mini_batch_num_tokens
        loss: nn.Module = self.module(model, **options, **targets.settings, mini_batch_num_tokens=budget)
        return loss


_NAMES_IN_SENTENCE_TRANSFORMERS = {
    "CoSENTLoss": "cosent",
    "AnglELoss": "angle",
    "CosineSimilarityLoss": "mse",
    "ContrastiveLoss": "contrastive",
    "OnlineContrastiveLoss": "contrastive",
    "MultipleNegativesRankingLoss": "info-nce",
    "GISTEmbedLoss": "gist",
    "TripletLoss": "triplet",
    "SoftmaxLoss": "softmax",
    "MarginMSELoss": "margin-mse",
    "BatchHardTripletLoss": "batch-hard",
    "BinaryCrossEntropyLoss": "cross-entropy",
    "LambdaLoss": "lambda",
}
"""Losses of sentence-transformers, and the nearest one here."""


class Losses:
    """The losses for one kind of training data, in the order in which messages list them."""

    def __init__(self, *specs: LossSpec) -> None:
        self.specs = specs

    def names(self, encoder: Encoder | None = None) -> list[str]:
        """Return the names of all losses, or of those for one kind of encoder."""
        # A loss has a specification for each kind of encoder.
        return list(dict.fromkeys(spec.name for spec in self.specs if encoder in (None, spec.encoder)))

    def spec(self, name: str, encoder: Encoder = "bi") -> LossSpec:
        """Return the specification of a loss; ConfigError if this kind of encoder has no loss of this name."""
        for spec in self.specs:
            if (spec.name, spec.encoder) == (name, encoder):
                return spec
        nearest = _NAMES_IN_SENTENCE_TRANSFORMERS.get(str(name).removeprefix("Cached"), "")
        hint = f" The nearest to that of sentence-transformers is {nearest}." if nearest in self.names(encoder) else ""
        raise ConfigError(
            f"The losses of encoder {encoder} are {', '.join(self.names(encoder))}; received {name}.{hint}"
        )

    def owners(self, setting: str) -> list[str]:
        """Return the losses to which a setting belongs; empty for a common setting."""
        return list(dict.fromkeys(spec.name for spec in self.specs if setting in spec.fields))

    def belongs(self, setting: str, name: str, encoder: Encoder = "bi") -> bool:
        """Return whether a setting has an effect with this loss."""
        fields_of_loss = [spec.fields for spec in self.specs if (spec.name, spec.encoder) == (name, encoder)]
        return not self.owners(setting) or any(setting in fields for fields in fields_of_loss)

    def check(self, stated: Iterable[str], name: str, encoder: Encoder = "bi") -> None:
        """Raise ConfigError if a stated setting has no effect because it belongs to another loss."""
        if self.names(encoder):  # an unknown encoder is refused elsewhere
            self.spec(name, encoder)
        for setting in stated:
            if not self.belongs(setting, name, encoder):
                owners = self.owners(setting)
                needed = f"loss {' or '.join(owners)}" if name not in owners else "encoder bi"
                raise ConfigError(
                    f"{setting} belongs to {needed}, and this is loss {name} with encoder {encoder}. Leave it out, or "
                    f"choose {needed}."
                )

    def check_batches(self, batches: str, name: str, encoder: Encoder = "bi") -> None:
        """Raise ConfigError if a loss cannot use this kind of batches."""
        if batches != "random" and batches not in self.spec(name, encoder).batches:
            owners = dict.fromkeys(spec.name for spec in self.specs if batches in spec.batches)
            raise ConfigError(
                f"batches {batches} are made for loss {' or '.join(owners)}; received loss {name}. Leave it out."
            )

    def targets(self, data: PairData, name: str, encoder: Encoder = "bi", /, **settings: Any) -> Targets:
        """Return the columns and labels on which a loss is trained; DataError if the labels do not fit."""
        spec = self.spec(name, encoder)
        if data.kind not in spec.kinds or spec.targets is None:
            raise DataError(
                f"{name} takes {spec.takes}; {data.source} has {data.kind} labels. These losses fit: "
                f"{self.fitting(data.kind, encoder)}."
            )
        defaults = spec.target_settings()
        options = {key: settings.get(key, default) for key, default in defaults}
        formed = spec.targets(data, **options)
        if spec.grouped:
            formed = grouped_by_first_text(data, formed, fix="Or take cosent, which compares all pairs")
        return replace(formed, summary=f"{name}: {formed.summary}")

    def fitting(self, kind: Kind, encoder: Encoder = "bi") -> str:
        """Return the names of the losses that fit a kind of labels, in words."""
        *most, last = [spec.name for spec in self.specs if kind in spec.kinds and spec.encoder == encoder]
        if not most:
            return last
        return f"{', '.join(most)} and {last}"

    def add_settings(self, settings: type[Settings]) -> type[Settings]:
        """Return a subclass of ``settings`` with the names of the losses and the settings that are missing in it.

        The description of each setting begins with the losses to which it belongs.
        """
        fields: dict[str, Any] = {}
        for spec in self.specs:
            for name in [name for name in spec.fields if name not in settings.model_fields]:
                # A copy, because losses share the fields of a base class.
                field = copy(spec.fields[name])
                field.description = f"{', '.join(self.owners(name))}: {field.description}"
                fields[name] = (field.annotation, field)
        fields["loss"] = (Literal[tuple(self.names())], copy(settings.model_fields["loss"]))
        extended: Any = create_model(
            settings.__name__, __base__=settings, __module__=settings.__module__, __doc__=settings.__doc__, **fields
        )
        return extended  # type: ignore[no-any-return]
