"""The highest of many scores, without sorting the others."""

from __future__ import annotations

import numpy as np

from samesense.types import Floats, Indices

DECIMALS = 9
"""Scores that are equal to so many decimals are equal: their last bits depend on what was computed beside them."""


def highest(scores: Floats, most: int) -> Indices:
    """Return the places of the highest scores, at most so many, the highest first and equals by place."""
    scores = scores.round(DECIMALS)
    places = np.arange(len(scores))
    if most < len(scores):
        places = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
    found: Indices = places[np.argsort(-scores[places], kind="stable")][:most]
    return found
