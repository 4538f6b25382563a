"""What an evaluation demands of its data, and of the scores that a model gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError, ModelError
from samesense.metrics.inputs import check_correlates
from samesense.types import Pair, Scores

WHOLE = ("all", "mean", "wmean")
"""Names of the rows that stand for all of the data."""

MOST_SUBSETS = 30
"""With more, the subset column is taken for something else, such as an identifier."""


def check_inputs(pairs: Sequence[Pair], labels: Sequence[float], subsets: Sequence[str] | None) -> None:
    """Raise before any model runs, if no score could give a correlation with these labels.

    Args:
        pairs: the pairs ``(n,)``.
        labels: the reference similarity of each pair.
        subsets: the subset name of each pair, if there are subsets.

    Raises:
        DataError: if lengths differ, n is less than 2, or labels are not finite or all the same.
    """
    if len(labels) != len(pairs):
        raise DataError(f"There must be one label for each pair, got {len(labels)} labels and {len(pairs)} pairs.")
    if subsets is not None and len(subsets) != len(pairs):
        raise DataError(f"There must be one subset for each pair, got {len(subsets)} and {len(pairs)} pairs.")
    check_correlates(np.arange(len(pairs)), labels)


def subset_members(subsets: Sequence[str] | None) -> dict[str, npt.NDArray[np.intp]]:
    """Return the members of each subset, or nothing if there are not 2 to 30 subsets.

    Args:
        subsets: the subset name of each pair ``(n,)``; a pair with an empty name is in none.

    Returns:
        For each name, by first appearance, the indices of its pairs in ascending order.

    Raises:
        DataError: if a subset has a name that stands for all of the data.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(subsets or ()):
        if name:
            members.setdefault(name, []).append(index)
    if not 2 <= len(members) <= MOST_SUBSETS:
        return {}
    taken = [name for name in WHOLE if name in members]
    if taken:
        raise DataError(f"No subset may be named {taken[0]!r}, which stands for all of the data. Rename it.")
    return {name: np.array(rows, dtype=np.intp) for name, rows in members.items()}


def checked_scores(scores: Scores, pairs: Sequence[Pair]) -> Scores:
    """Return the scores as float64, one finite number a pair.

    Args:
        scores: what the model gave.
        pairs: what it was asked for ``(n,)``.

    Returns:
        Scores ``(n,)``.

    Raises:
        ModelError: if there is another number of scores, or one is not finite (the first is named).
    """
    vector: Scores = np.asarray(scores, dtype=np.float64)
    if vector.shape != (len(pairs),):
        raise ModelError(
            f"There must be one score for each of {len(pairs)} pairs, got an array of shape {vector.shape}."
        )
    bad = ~np.isfinite(vector)
    if bad.any():
        first = int(np.argmax(bad))
        raise ModelError(
            f"Scores must be finite, and that of pair {first} is {vector[first]} "
            f"({int(bad.sum())} of {len(pairs)} are not finite)."
        )
    return vector
