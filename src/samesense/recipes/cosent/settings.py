"""Settings of CoSENT and of the losses it is compared with; see :mod:`samesense.recipes.cosent.recipe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from samesense.data import PairData
from samesense.data.batch_order import count_label_aware_examples
from samesense.data.examples import Examples
from samesense.data.pairs.targets import Targets
from samesense.errors import ConfigError
from samesense.losses.registry import PAIR_LOSSES
from samesense.losses.spec import Encoder, LossSpec
from samesense.recipes.settings import (
    BI_ONLY,
    KEEP_START,
    REFIT,
    EncoderSettings,
    KeepStart,
    bind,
    read_settings,
    shipped,
)


@PAIR_LOSSES.add_settings
class CosentSettings(EncoderSettings):
    """Settings of the CoSENT recipe and of the losses it is compared with; the defaults are the paper's."""

    encoder: Encoder = Field("bi", description="bi embeds the sentences apart; cross reads both together")
    loss: str = Field("cosent", description=f"what is minimised; cross takes {', '.join(PAIR_LOSSES.names('cross'))}")
    batches: Literal["random", "label-aware", "no-duplicates"] = Field(
        "random", description="label-aware: no batch of one label; no-duplicates: no text twice in a batch"
    )
    refit: bool = Field(True, description=REFIT)
    keep_start: KeepStart = Field("unless-higher", description=KEEP_START)

    @model_validator(mode="after")
    def _belongs(self) -> CosentSettings:
        fields = type(self).model_fields
        check_belongs([name for name, value in self if value != fields[name].default], self.loss, self.encoder)
        PAIR_LOSSES.check_batches(self.batches, self.loss, self.encoder)
        if self.grouped and self.batches != "random":
            raise ConfigError(
                f"Groups are dealt into batches as wholes, in random order; received batches {self.batches}. Leave "
                "batches or groups out."
            )
        return self

    @property
    def grouped(self) -> bool:
        """Whether the loss only compares pairs with the same first text."""
        return self.spec.grouped or getattr(self, "groups", None) is not None

    def teaches_beyond_labels(self, train: Examples) -> bool:
        """Return whether entailments of NLI pairs have in-batch negatives.

        They teach the similarity of any sentences, which labels of NLI do not measure.
        """
        if not isinstance(train, PairData) or train.kind != "nli":
            return False
        return self.loss == "info-nce" or (self.loss == "angle" and getattr(self, "in_batch_weight", 0) > 0)

    @property
    def spec(self) -> LossSpec:
        """The loss that is trained."""
        return PAIR_LOSSES.spec(self.loss, self.encoder)

    def targets(self, train: PairData) -> Targets:
        """Return what the loss is trained on; see :meth:`samesense.losses.spec.Losses.targets`."""
        return PAIR_LOSSES.targets(train, self.loss, self.encoder, **dict(self))

    def examples(self, train: PairData) -> int:
        """Return how many examples an epoch has: those that the loss makes of the pairs and that batches take."""
        targets = self.targets(train)
        if self.batches != "label-aware":
            return len(targets)
        return count_label_aware_examples(targets.columns["label"], self.batch_size)


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


def choose(config: str, overrides: Mapping[str, Any], *, kind: str) -> tuple[str, CosentSettings]:
    """Return the settings of a run: the shipped ones for its kind of data, then the user's file, then flags.

    ``config`` is the name of a shipped file, the path of the user's own, or ``"auto"`` for the paper's on data of this
    ``kind``; the name returned is for display.
    """
    file_settings = {} if config == "auto" else read_settings(config)
    stated = {**file_settings, **overrides}
    encoder = stated.get("encoder", "bi")
    loss = stated.get("loss", "cosent")
    check_belongs(overrides, loss, encoder)
    paper = "cosent"
    if encoder == "cross":
        paper = "cosent-cross"
    elif kind == "nli" and config == "auto":
        paper = "cosent-nli"
    papers = {**read_settings("cosent"), **read_settings(paper)}
    user_settings = file_settings
    if config in shipped():
        # Like the paper's, a shipped file loses what has no effect here; a user's file is refused for it.
        papers = {**papers, **file_settings}
        user_settings = {}
    fitting = {name: value for name, value in papers.items() if belongs(name, loss, encoder)}
    return paper if config == "auto" else config, bind(CosentSettings, fitting, user_settings, overrides)
