"""Candidates of a race: start models, and the settings that each is trained with; nothing here is trained yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError, SamesenseError
from samesense.recipes.planning.learning_rate import HIGH, STATIC
from samesense.recipes.planning.pair_loss import NLI_LOSS
from samesense.recipes.planning.training_plan import TrainingPlan

LOSSES: dict[str, tuple[Mapping[str, Any], ...]] = {
    "scored": ({"loss": "cosent"}, {"loss": "mse"}, {"loss": "angle"}),
    "binary": ({"loss": "cosent"}, {"loss": "info-nce"}, {"loss": "contrastive"}),
    "nli": (NLI_LOSS, {"loss": "cosent"}, {"loss": "softmax"}),
    "triplet": ({"loss": "info-nce"}, {"loss": "triplet"}, {"loss": "cosent"}),
    "tuples": ({"loss": "supmpn"}, {"loss": "info-nce"}),
    "classes": ({"loss": "supmpn"}, {"loss": "supcon"}),
}
"""Settings that are tried by the kind of the data, the default loss first; unlabelled sentences have SimCSE's alone."""

RATES = {"transformer": (HIGH, 2e-5), "static": (STATIC, 1e-3)}
"""Learning rates: the papers' 2e-5 and one for small transformers; token vectors move with larger ones only."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A start model and what was measured of it.

    Attributes:
        name: what tables call it.
        model: folder or name by which it is opened.
        static: vectors of tokens, and no transformer.
        speed: sentences a second that it encodes.
        megabytes: of its weights in memory.
    """

    name: str
    model: str
    static: bool
    speed: float
    megabytes: float


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A start model with the settings that it is trained by."""

    start: Start
    overrides: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What tables call it."""
        return ", ".join([self.start.name, *(_word(key, value) for key, value in self.overrides.items())])


def _word(key: str, value: Any) -> str:
    if key == "loss":
        return str(value)
    return f"{key} {value}"


def kind_of_examples(train: Examples) -> str:
    """Return what the losses to be tried depend on; ConfigError for data that no race is held on."""
    if isinstance(train, PairData):
        return train.kind
    if isinstance(train, TupleData):
        if train.classes:
            return "classes"
        return "tuples"
    if isinstance(train, Sentences):
        return "texts"
    raise ConfigError(
        "A race is held on labelled pairs, anchors with positives, sentences with classes, or unlabelled sentences; "
        f"received {train.source}, {type(train).__name__.lower()}. Train it: samesense train"
    )


def check_selecting(planned: TrainingPlan) -> None:
    """Raise ConfigError for data that no race is held on, or without labelled pairs that select."""
    kind_of_examples(planned.train)
    if planned.dev is None:
        raise ConfigError("A race selects on labelled pairs, and there are none to hold out. Give them: `dev` FILE")


def entrants(planned: TrainingPlan, starts: Sequence[Start]) -> list[Entrant]:
    """Return every start model with every loss and rate that fits the data.

    ``starts`` come best first. The order is that in which entrants are left out from the end where time is short: the
    better a start model, and the more usual a setting, the earlier.
    """
    known_losses = LOSSES.get(kind_of_examples(planned.train))
    losses: list[Mapping[str, Any]] = [{}]
    if known_losses:
        losses = [loss for loss in known_losses if fits(planned, loss)]
    ranked = []
    for rank, start in enumerate(starts):
        rates = RATES["static" if start.static else "transformer"]
        for position, loss in enumerate(losses):
            for second, rate in enumerate(rates):
                entrant = Entrant(start=start, overrides={**loss, "learning_rate": rate})
                ranked.append((rank + position + second, rank, entrant))
    # By ranks alone: entrants have no order, and of equal ranks the first stays first.
    return [entrant for *_, entrant in sorted(ranked, key=lambda item: item[:2])]


def fits(planned: TrainingPlan, overrides: Mapping[str, Any]) -> bool:
    """Return whether the data can be trained on with these settings."""
    try:
        _, settings = planned.method.choose(planned.config, overrides, lambda: planned.train)
        planned.method.check(planned.train, settings)
        # Called only to raise for data of which no example can be made.
        settings.examples(planned.train)
    except SamesenseError:
        return False
    return True
