"""The learning rate of a run that names none, where the method's own would hardly move its start model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.encoder.model_files import TransformersConfig, modules_of, read_model_file
from samesense.encoder.names import resolve
from samesense.errors import SamesenseError
from samesense.hub import hub_access
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.settings import EncoderSettings

STATIC = 1e-2
"""For static token vectors, which a rate of 2e-5 leaves where they are (docs/training.md)."""

HIGH = 1e-4
"""For a small transformer on labelled pairs, and for one of base size with few steps (docs/training.md)."""

GENTLE = 5e-5
"""For a small transformer of more than :data:`SHALLOW` layers, for one of base size, each with many steps, and for few
scored pairs by MSE (docs/training.md)."""

MOST_STEPS = 1500
"""Steps up to which small ones take :data:`HIGH`, and those of base size :data:`GENTLE`: measured from 92 to 1,252."""

SMALL_WIDTH = 384
"""Hidden size up to which a transformer is small: measured at 384."""

BASE_WIDTH = 768
"""Hidden size up to which one is of base size: measured at 768 with 12 layers."""

BASE_HIGH_STEPS = 300
"""Steps up to which one of base size takes :data:`HIGH`: measured at 52, 128 and 252."""

SHALLOW = 6
"""Layers up to which :data:`HIGH` is always taken: measured at 6 and 12."""

ENOUGH_STEPS = 200
"""Steps from which on deep ones learn scored and binary pairs by :data:`GENTLE`: measured at 92 and 250."""

_CONFIGS = ["modules.json", "config.json", "*/config.json"]


class Rate(NamedTuple):
    """A learning rate, and the reason for it in words."""

    value: float
    why: str
    of_untuned_start: float | None = None  # for a start that was never tuned for sentences, if it differs


def rate_for(settings: EncoderSettings, train: Examples, *, few_scored: bool = False) -> Rate | None:
    """Return the learning rate for a start model and its data; ``None`` keeps that of the method.

    ``few_scored`` says that the data are few scored pairs, trained on by MSE.

    Differs: the papers name one rate for all data; they train models of hidden size 768 or more, in thousands of steps.
    """
    shape = _shape(settings.model)
    if shape is None:
        return None
    if shape == STATIC_VECTORS:
        return Rate(STATIC, "the start has static token vectors, no transformer")
    if not isinstance(settings, CosentSettings) or not isinstance(train, PairData) or shape.width > BASE_WIDTH:
        return None
    rate = _rate_of_base(settings, train) if shape.width > SMALL_WIDTH else _rate_of_small(settings, train, shape)
    if rate is not None and few_scored and rate.value > GENTLE:
        why = "few scored pairs move a start too far at a higher one"
        return Rate(GENTLE, why, of_untuned_start=rate.value)
    return rate


def _rate_of_base(settings: CosentSettings, train: PairData) -> Rate | None:
    steps = settings.steps(settings.examples(train))
    if steps > MOST_STEPS or settings.encoder == "cross":  # not measured
        return None
    value = HIGH if steps <= BASE_HIGH_STEPS else GENTLE
    return Rate(value, f"{settings.learning_rate:g} is for more than {steps} steps")


def _rate_of_small(settings: CosentSettings, train: PairData, shape: _Shape) -> Rate:
    steps = settings.steps(settings.examples(train))
    why = f"{settings.learning_rate:g} is for models larger than one with a hidden size of {shape.width}"
    if steps > MOST_STEPS:
        return Rate(GENTLE, f"{why}, and {steps} steps are many for a higher one")
    if shape.layers > SHALLOW and _suits_deep(settings, train, steps):
        return Rate(GENTLE, f"{why} and {shape.layers} layers")
    return Rate(HIGH, why)


def _suits_deep(settings: CosentSettings, train: PairData, steps: int) -> bool:
    """Return whether a start of many layers learns better at :data:`GENTLE`.

    NLI labels are further from what starts measure, and cross-encoders start with a new head: both need the higher one.
    """
    return settings.encoder == "bi" and train.kind != "nli" and steps >= ENOUGH_STEPS


class _Shape(NamedTuple):
    """Hidden size and number of layers of a transformer."""

    width: int
    layers: int


STATIC_VECTORS = _Shape(0, 0)


def _shape(model: str) -> _Shape | None:
    """Return the shape of a transformer, zeros of static vectors; ``None`` where it cannot be read."""
    try:
        folder = _configs(model)
        path = ""
        if modules := modules_of(folder):
            first = modules[0]
            # By its end, as the module's path differs between versions of sentence-transformers.
            if first.type.endswith("StaticEmbedding"):
                return STATIC_VECTORS
            path = first.path
        config = read_model_file(folder / path / "config.json", TransformersConfig)
    except (SamesenseError, OSError):  # what opens the model says what is wrong
        return None
    width = config.hidden_size or _other_name(config, "dim", "d_model")
    if width is None:
        return None
    return _Shape(width, config.num_hidden_layers or _other_name(config, "n_layers", "num_layers") or 0)


def _other_name(config: TransformersConfig, *names: str) -> int | None:
    """Return the number that DistilBERT or T5 has under another name."""
    values = [(config.model_extra or {}).get(name) for name in names]
    return next((value for value in values if isinstance(value, int)), None)


def _configs(model: str) -> Path:
    """Return the folder with the settings of a model; of one of the hub they are loaded, so that each run has them."""
    # Takes 0.25 s, which folders need not wait for.
    from huggingface_hub import snapshot_download

    source = resolve(model)
    if Path(source).is_dir():
        return Path(source)
    with hub_access(source):
        return Path(snapshot_download(source, allow_patterns=_CONFIGS))
