"""What few labelled examples change in the settings that a user leaves open: the steps and the learning rate."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.execution.ranks import is_main
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.held_out.sets import LEAST
from samesense.recipes.methods import Method
from samesense.recipes.mixed.data import Mixture
from samesense.recipes.planning.learning_rate import Rate, rate_for
from samesense.recipes.settings import EncoderSettings, read_settings, shipped
from samesense.recipes.supmpn.settings import SupmpnSettings

logger = logging.getLogger(__name__)

FEW_PAIRS = 1000
"""Labelled pairs below which a run without dev and test is cross-validated: see ``benchmarks/verdict.py``."""

LEAST_STEPS = 30
"""Steps of a training on few labelled pairs or anchors: the few of the papers' epochs would hardly move a start."""

LEAST_NLI_STEPS = 60
"""Steps of a training on few NLI pairs beside in-batch negatives: with half of them three starts learnt less."""


def are_few_pairs(train: Examples) -> bool:
    """Return whether training data are labelled pairs, enough for folds and too few to hold any out."""
    return isinstance(train, PairData) and LEAST <= len(train) < FEW_PAIRS


def fit_settings_to_size(
    settings: EncoderSettings,
    train: Examples,
    method: Method,
    config: str,
    options: Mapping[str, Any],
    *,
    few_scored: bool,
) -> tuple[EncoderSettings, Rate | None]:
    """Return settings with the steps and the learning rate that suit the size of the data, where these are left open.

    It comes after the splits, as the rules count the steps on what is trained on.
    """
    if config == "auto" and options.keys().isdisjoint({"epochs", "max_steps"}):
        settings = _with_least_steps(settings, train)
    if _sets_learning_rate(config, options) or method.has_stages:
        return settings, None
    rate = rate_for(settings, train, few_scored=few_scored)
    return _with_rate(settings, rate), rate


def _with_least_steps(settings: EncoderSettings, examples: Examples) -> EncoderSettings:
    """Return settings of labelled pairs or anchors by which few of them are trained on for enough steps."""
    if not isinstance(settings, (CosentSettings, SupmpnSettings)) or isinstance(examples, Mixture):
        return settings
    least = LEAST_NLI_STEPS if settings.teaches_beyond_labels(examples) else LEAST_STEPS
    steps = settings.steps(settings.examples(cast(Any, examples)))
    if steps >= least:
        return settings
    if is_main():
        logger.info(
            f"{least} steps: {settings.epochs:g} epochs of so few examples would be {steps}; `epochs` overrides"
        )
    return settings.model_copy(update={"max_steps": least})


def _sets_learning_rate(config: str, options: Mapping[str, Any]) -> bool:
    """Return whether the learning rate is settled: by the user, by a file, or by a shipped one, which has a paper's."""
    if config in shipped() or "learning_rate" in options:
        return True
    return config != "auto" and "learning_rate" in read_settings(config)


def _with_rate(settings: EncoderSettings, rate: Rate | None) -> EncoderSettings:
    """Return settings with the learning rate that suits the data, where there is a rule for it."""
    if rate is None:
        return settings
    if is_main():
        logger.info(f"learning rate {rate.value:g}: {rate.why}; `learning_rate` overrides")
    return settings.model_copy(update={"learning_rate": rate.value})
