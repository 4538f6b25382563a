"""The learning rate of a run that names none, where the method's own would hardly move its start model."""

from __future__ import annotations

import json
from typing import NamedTuple

from samesense.data.examples import Examples
from samesense.errors import SamesenseError
from samesense.files import read_json
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.settings import EncoderSettings

STATIC = 1e-2
"""For vectors of tokens without a transformer, which a rate of 2e-5 leaves where they are (docs/training.md)."""

SMALL = 1e-4
"""For few steps of a small transformer on labelled pairs (docs/training.md)."""

FEW_STEPS, SMALL_WIDTH = 500, 384
"""Up to where :data:`SMALL` was measured to be better than the paper's 2e-5, which is of models of 768 numbers."""


class Rate(NamedTuple):
    """A learning rate, and for people why it is taken."""

    value: float
    why: str


def rate_for(settings: EncoderSettings, train: Examples) -> Rate | None:
    """Return the learning rate for a start model and its data; ``None`` keeps that of the method.

    Differs: the papers name one rate for all data; theirs are models of 768 numbers or more, in thousands of steps.
    """
    width = _width(settings.model)
    if width is None:
        return None
    if width == 0:
        return Rate(STATIC, "the start has vectors of tokens and no transformer")
    steps = settings.max_steps or settings.epochs * len(train) / settings.batch_size
    pairs = isinstance(settings, CosentSettings) and settings.encoder == "bi"
    if pairs and steps <= FEW_STEPS and width <= SMALL_WIDTH:
        return Rate(SMALL, f"{steps:.0f} steps of a model of {width} numbers are few for {settings.learning_rate:g}")
    return None


def _width(model: str) -> int | None:
    """Return the width of a transformer, 0 of static vectors; ``None`` where no folder on this machine says it."""
    from samesense.encoder.names import local_folder

    try:
        folder = local_folder(model)
        if folder is None:
            return None
        listed = folder / "modules.json"
        first = json.loads(listed.read_bytes())[0] if listed.is_file() else {"type": "Transformer", "path": ""}
        if str(first["type"]).endswith("StaticEmbedding"):
            return 0
        width = read_json(folder / first["path"] / "config.json").get("hidden_size")
    except (SamesenseError, OSError, ValueError, LookupError, TypeError):  # what opens the model says what is wrong
        return None
    return width if isinstance(width, int) else None
