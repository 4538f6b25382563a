"""Checks of the numbers that metrics take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.types import Floats

Matrix = npt.NDArray[np.floating]
"""Matrix of floats, one row per text."""

Numbers = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer] | npt.NDArray[np.bool_]
"""Anything that numpy turns into a vector of float64."""


def finite_vector(values: Numbers, name: str) -> Floats:
    """Return ``values`` as a float64 vector of finite numbers.

    Raises:
        DataError: if they are not a vector of numbers, or one is NaN or infinite (the first is named).
    """
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as err:
        raise DataError(f"{name} must be a flat list of numbers, and these are not: {err}") from err
    if vector.ndim != 1:
        raise DataError(f"{name} must be a flat list of numbers, got an array of shape {vector.shape}.")
    bad = ~np.isfinite(vector)
    if bad.any():
        first = int(np.argmax(bad))
        raise DataError(
            f"{name} must be finite numbers, and {name}[{first}] is {vector[first]} "
            f"({int(bad.sum())} of {len(vector)} are not finite). Leave such pairs out, or mend what made them."
        )
    return vector


def is_constant(vector: Floats) -> bool:
    """Return whether all numbers of ``vector`` ``(n,)``, n at least 1, are exactly the same."""
    return bool((vector == vector[0]).all())


def matching_vectors(scores: Numbers, labels: Numbers) -> tuple[Floats, Floats]:
    """Return both sides as float64 vectors of one length.

    Raises:
        DataError: if a side is not finite, or lengths differ.
    """
    left = finite_vector(scores, "scores")
    right = finite_vector(labels, "labels")
    if len(left) != len(right):
        raise DataError(f"There must be one score for each label, got {len(left)} scores and {len(right)} labels.")
    return left, right


def check_correlates(scores: Numbers, labels: Numbers) -> tuple[Floats, Floats]:
    """Return both sides as float64 vectors on which a correlation is defined.

    Raises:
        DataError: if a side is not finite or constant, if lengths differ, or if n is less than 2.
    """
    left, right = matching_vectors(scores, labels)
    if len(left) < 2:
        raise DataError(f"The correlation is undefined because it needs at least 2 pairs, got {len(left)}.")
    for name, side in (("scores", left), ("labels", right)):
        if is_constant(side):
            raise DataError(f"The correlation is undefined because {name} are all {side[0]:g}.")
    return left, right
