"""Folds of labelled pairs for cross-validation, which share no sentence where that is possible."""

from __future__ import annotations

from typing import get_args

import numpy as np
import numpy.typing as npt

from samesense.data.pairs.data import PairData
from samesense.data.pairs.splits import Apart, assign_folds, group_pairs

Folds = npt.NDArray[np.intp]
"""Index of the fold of each pair ``(n,)``."""

FOLDS = 5
"""Default number of folds of a cross-validation."""


def fold_numbers(data: PairData, count: int, seed: int) -> tuple[Folds, Apart]:
    """Return the fold of each pair ``(n,)``, and what folds do not share: sentences, or else pairs in either order.

    Folds have similar sizes and distributions of labels, and do not depend on the order of the rows. Where shared
    sentences connect half of the pairs or more, folds cannot avoid sharing sentences, and only pairs are kept apart.
    """
    # The stricter way comes first.
    for apart in get_args(Apart):
        groups = group_pairs(data.sentences1, data.sentences2, apart)
        if 2 * np.bincount(groups).max() < len(data) and groups.max() >= count:
            break
    return assign_folds(data.sentences1, data.sentences2, data.labels, groups, count, seed), apart
