"""The highest of many scores, without sorting the others."""

from __future__ import annotations

import numpy as np

from samesense.context.generator import Floats, Indices


def highest(scores: Floats, most: int) -> Indices:
    """Return the places of the highest scores, at most so many, the highest first and equals by place."""
    places = np.arange(len(scores))
    if most < len(scores):
        places = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
    found: Indices = places[np.argsort(-scores[places], kind="stable")][:most]
    return found
