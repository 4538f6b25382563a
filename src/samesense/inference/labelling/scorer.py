"""The name of a scorer in a file of labels: its name, and what tells its content from that of another."""

from __future__ import annotations

from contextlib import suppress

from samesense.encoder.names import split_options
from samesense.errors import ConfigError
from samesense.hashes import text_hash
from samesense.inference.calibration.storage import home_of
from samesense.inference.models.model import Model
from samesense.inference.names import split_kind, split_maps

DIGITS = 12
"""Digits of the hash that a name has."""


def name_scorer(model: Model) -> str:
    """Return the name of a model with the first digits of a hash of its content; of a function the name alone.

    A model that was trained again has the name that it had, and gives other labels.
    """
    content = _content(model)
    if not content:
        return model.name
    return f"{model.name}, content {text_hash(content)[:DIGITS]}"


def _content(model: Model) -> str:
    """Return a text that only models with the same scores share; ``""`` for a function, which has no content."""
    if model.home is not None:
        base = split_maps(model.home[0])[0]
        if split_kind(base)[0] in ("", "origin"):
            return home_of(split_options(base).base).fingerprint()
    if model.cross_encoder is not None:
        from samesense.encoder.saving.storage import weights_hash

        return weights_hash(model.cross_encoder)
    if model.embeds:
        with suppress(ConfigError):
            return model.identity
    return ""
