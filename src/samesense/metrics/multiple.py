"""Several comparisons at once: p-values that stay honest however many data sets are looked at."""

from __future__ import annotations

import numpy as np

from samesense.errors import DataError
from samesense.metrics.inputs import Numbers, finite_vector


def holm(p_values: Numbers) -> list[float]:
    """Return p-values adjusted so that the chance of any false finding among them stays below the level.

    The smallest of *m* is multiplied by *m*, the next by *m* - 1 and so on; none is smaller than one before it, and
    none larger than 1. It needs no assumption about how the comparisons depend on each other.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".

    Args:
        p_values: one for each comparison ``(m,)``, each in [0, 1]; leave out comparisons that were not made.

    Returns:
        Adjusted p-values in the order given; none for none.

    Raises:
        DataError: if one is not a number in [0, 1].
    """
    given = finite_vector(p_values, "p_values")
    outside = (given < 0) | (given > 1)
    if outside.any():
        first = int(np.argmax(outside))
        raise DataError(f"p-values lie between 0 and 1, and p_values[{first}] is {given[first]:g}.")
    order = np.argsort(given, kind="stable")
    adjusted = np.empty(len(given))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return [float(value) for value in adjusted]
