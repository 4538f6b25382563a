"""Sentence similarity: train from any supervision, judge honestly, put to work.

import samesense
model = samesense.load("default")
model.similarity("A man is eating.", "Someone has a meal.")
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samesense.data import read_pairs
    from samesense.inference.models.load import load
    from samesense.inference.models.model import Model

__version__ = version("samesense")
__all__ = ["Model", "__version__", "load", "read_pairs"]

_HOMES = {
    "Model": "samesense.inference.models.model",
    "load": "samesense.inference.models.load",
    "read_pairs": "samesense.data",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that ``import samesense`` does not load torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'samesense' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
