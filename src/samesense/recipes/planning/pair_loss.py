"""The loss of labelled pairs where a user leaves it open and CoSENT is not the best: few scores, and NLI labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.execution.ranks import is_main
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.planning.few_examples import are_few_pairs
from samesense.recipes.settings import EncoderSettings

logger = logging.getLogger(__name__)

OF_THE_LOSS = (
    "loss",
    "temperature",
    "margin",
    "similarity",
    "batches",
    "cosine_weight",
    "in_batch_weight",
    "angle_weight",
)
"""Settings by which a user chooses a loss."""

NLI_LOSS = {"loss": "angle", "cosine_weight": 0.1, "angle_weight": 0.0}
"""Settings of the loss of NLI pairs: InfoNCE of the entailments, and CoSENT of all pairs at a tenth of its weight.

CoSENT alone learns what is entailed, and forgets what is similar (docs/training.md).

Source: Li and Li 2024 (AnglE), who train on NLI by the sum of these two and of a third term.
Differs: the weights are chosen on three starts; without the third term.
"""


def leaves_loss_open(settings: EncoderSettings, options: Mapping[str, Any]) -> bool:
    """Return whether the loss of a bi-encoder of labelled pairs is left open."""
    if any(name in options for name in OF_THE_LOSS):
        return False
    return isinstance(settings, CosentSettings) and settings.encoder == "bi"


def has_few_scores(train: Examples, settings: EncoderSettings, options: Mapping[str, Any]) -> bool:
    """Return whether examples are few scored pairs of a known scale, for a bi-encoder whose loss is left open."""
    if not leaves_loss_open(settings, options):
        return False
    if not isinstance(train, PairData) or train.kind != "scored" or not are_few_pairs(train):
        return False
    if not train.has_known_scale and is_main():
        logger.info(
            "loss cosent: mse learns more from few scored pairs, and needs the scale of the labels; give `label_range`"
        )
    return train.has_known_scale


def choose_mse(settings: EncoderSettings) -> EncoderSettings:
    """Return settings of few scored pairs, which MSE learns better from than CoSENT (docs/training.md)."""
    if is_main():
        logger.info("loss mse: the scored pairs are few; `loss` overrides")
    return settings.model_copy(update={"loss": "mse"})


def choose_nli_loss(settings: EncoderSettings, train: Examples, options: Mapping[str, Any]) -> EncoderSettings:
    """Return settings with :data:`NLI_LOSS` where the examples are NLI pairs and their loss is left open."""
    if not isinstance(train, PairData) or train.kind != "nli" or not leaves_loss_open(settings, options):
        return settings
    if is_main():
        logger.info(
            "loss angle: NLI labels are ranked, and entailments have the other texts of a batch as negatives; `loss` "
            "cosent only ranks"
        )
    return settings.model_copy(update=NLI_LOSS)
