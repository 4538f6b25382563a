"""The learning rate of a run that names none, where the method's own would hardly move its start model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from samesense.data.examples import Examples
from samesense.encoder.model_files import Modules, TransformersConfig, read_model_file
from samesense.encoder.names import resolve
from samesense.errors import SamesenseError
from samesense.hub import hub_access
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.settings import EncoderSettings

STATIC = 1e-2
"""For static token vectors, which a rate of 2e-5 leaves where they are (docs/training.md)."""

SMALL = 1e-4
"""For few steps of a small transformer on labelled pairs (docs/training.md)."""

FEW_SCORED = 5e-5
"""For few scored pairs by MSE and a small transformer that was tuned for sentences (docs/training.md)."""

FEW_STEPS = 500
"""Steps up to which :data:`SMALL` is taken: measured from 92 to 480."""

SMALL_WIDTH = 384
"""Hidden size up to which :data:`SMALL` is taken: measured at 384."""

_CONFIGS = ["modules.json", "config.json", "*/config.json"]


class Rate(NamedTuple):
    """A learning rate, and the reason for it in words."""

    value: float
    why: str
    of_untuned_start: float | None = None  # for a start that was never tuned for sentences, if it differs


def rate_for(settings: EncoderSettings, train: Examples, *, few_scored: bool = False) -> Rate | None:
    """Return the learning rate for a start model and its data; ``None`` keeps that of the method.

    ``few_scored`` says that the data are few scored pairs, trained on by MSE.

    Differs: the papers name one rate for all data; they train models of hidden size 768 or more in thousands of steps.
    """
    width = _width(settings.model)
    if width == 0:
        return Rate(STATIC, "the start has static token vectors, no transformer")
    pairs = isinstance(settings, CosentSettings) and settings.encoder == "bi"
    if not pairs or width is None or width > SMALL_WIDTH:
        return None
    steps = settings.steps(settings.examples(train))
    if steps > FEW_STEPS:
        return None
    if few_scored:
        return Rate(FEW_SCORED, "few scored pairs move a small start too far at a higher one", of_untuned_start=SMALL)
    return Rate(SMALL, f"{steps} steps are few for {settings.learning_rate:g} with a hidden size of {width}")


def _width(model: str) -> int | None:
    """Return the hidden size of a transformer, 0 of static vectors; ``None`` where it cannot be read."""
    try:
        folder = _configs(model)
        listed = folder / "modules.json"
        path = ""
        if listed.is_file():
            first = read_model_file(listed, Modules).root[0]
            # By its end, as the module's path differs between versions of sentence-transformers.
            if first.type.endswith("StaticEmbedding"):
                return 0
            path = first.path
        return read_model_file(folder / path / "config.json", TransformersConfig).hidden_size
    except (SamesenseError, OSError):  # what opens the model says what is wrong
        return None


def _configs(model: str) -> Path:
    """Return the folder with the settings of a model; of one of the hub they are loaded, so that each run has them."""
    # Takes 0.25 s, which folders need not wait for.
    from huggingface_hub import snapshot_download

    source = resolve(model)
    if Path(source).is_dir():
        return Path(source)
    with hub_access(source):
        return Path(snapshot_download(source, allow_patterns=_CONFIGS))
