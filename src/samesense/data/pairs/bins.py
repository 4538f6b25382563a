"""Converts graded scores to classes: by given bins, or one class for each integer score.

Source: none in the papers. Huang et al. 2024 (TASLP), section V-B, call softmax "not available" on scores, and Reimers
    and Gurevych 2019 (Sentence-BERT) train on STS-B by regression.
Differs: bins are those of ``numpy.histogram``: each includes its lower edge, the last one both edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from samesense.data.conventions.numbers import number_text
from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.execution.settings import split_at_commas
from samesense.types import Floats, Indices

MOST_WHOLE_SCORES = 11
"""Most different integer scores that become one class each: the ratings from 0 to 10."""

_RULE = "`bins` takes the number of bins, 2 or more, or three finite, rising edges or more, as in: 5 or 0,1.5,3,5"


def parse_bins(value: Any) -> Any:
    """Return the number of bins, or their edges; the values of a flag may be separated by commas.

    ConfigError if there would be fewer than two bins, or the edges do not rise.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str | list | tuple):
        raise ConfigError(f"{_RULE}; received {value!r}.")
    try:
        numbers = [float(piece) for piece in split_at_commas(value)]
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{_RULE}; received {value!r}.") from error
    # nan and inf are floats, and no edges.
    finite = all(map(np.isfinite, numbers))
    # One number is the number of bins, and not an edge.
    if len(numbers) == 1 and finite and numbers[0].is_integer() and numbers[0] >= 2:
        return int(numbers[0])
    rising = all(low < high for low, high in pairwise(numbers))
    if len(numbers) < 3 or not finite or not rising:
        raise ConfigError(f"{_RULE}; received {', '.join(map(number_text, numbers)) or 'none'}.")
    return tuple(numbers)


Bins = Annotated[int | tuple[float, ...] | None, BeforeValidator(parse_bins)]
"""A number of bins of equal width on the scale of the labels, or the edges of the bins; ``None`` for none."""


@dataclass(frozen=True)
class ScoreClasses:
    """Scores as classes numbered from 0; every class has a pair.

    Attributes:
        classes: class number of each pair, ``(pairs,)``.
        names: name of each class: ``"0 to 1"`` for a bin, ``"3"`` for an integer score.
        counts: number of pairs of each class.
        empty: names of the bins without a pair, which are left out.
        description: how the classes were made, in words.
    """

    classes: Indices
    names: tuple[str, ...]
    counts: tuple[int, ...]
    empty: tuple[str, ...]
    description: str

    @property
    def summary(self) -> str:
        """The number of classes, how they were made, and the number of pairs of each, as a line of text."""
        sizes = ", ".join(f"{name}: {count:,}" for name, count in zip(self.names, self.counts, strict=True))
        line = f"{len(self.names)} classes, {self.description} (pairs of {sizes})"
        if not self.empty:
            return line
        return f"{line}; empty and left out: {', '.join(self.empty)}"


def classify_scores(data: PairData, bins: int | tuple[float, ...] | None) -> ScoreClasses:
    """Return the classes of scored pairs.

    Without ``bins`` each score is a class if all are integers and there are at most ``MOST_WHOLE_SCORES`` of them.

    Raises:
        DataError: if bins are needed and not given, the scale is not known, a score lies outside the edges, or all
            pairs are in one class.

    Example:
        >>> from samesense import read
        >>> rows = [("a b", "c d", 0.4), ("e f", "g h", 3.1), ("i j", "k l", 5.0)]
        >>> classify_scores(read(rows, label_range=(0, 5)), 5).names
        ('0 to 1', '3 to 4', '4 to 5')
    """
    labels = np.asarray(data.labels, dtype=np.float64)
    if bins is None:
        return _classify_whole_scores(data, labels)
    edges = _equal_edges(data, bins) if isinstance(bins, int) else np.asarray(bins)
    outside = np.flatnonzero((labels < edges[0]) | (labels > edges[-1]))
    if len(outside):
        first = int(outside[0])
        row = "" if data.rows is None else f" (row {data.rows[first]})"
        raise DataError(
            f"{data.source}: bins take scores from {number_text(edges[0])} to {number_text(edges[-1])}; "
            f"{len(outside):,} of {len(labels):,} lie outside, the first {number_text(labels[first])}{row}. "
            "Give edges that hold all scores."
        )
    width = "in bins of equal width" if isinstance(bins, int) else "in bins by their edges"
    # The upper end of the scale belongs to the last bin.
    positions = np.minimum(np.searchsorted(edges, labels, side="right") - 1, len(edges) - 2)
    names = [f"{number_text(low)} to {number_text(high)}" for low, high in pairwise(edges)]
    return _without_empty(data, positions, names, f"scores {width}")


def _classify_whole_scores(data: PairData, labels: Floats) -> ScoreClasses:
    values = np.unique(labels)
    if len(values) > MOST_WHOLE_SCORES or np.any(values % 1):
        raise DataError(
            f"softmax takes classes, and the labels of {data.source} are graded: {len(values):,} different scores from "
            f"{number_text(values[0])} to {number_text(values[-1])}. Give `bins`, the number of classes of equal width "
            "on their scale, or the edges, as in: bins 5; or take a loss that reads scores as they are: cosent, mse."
        )
    names = [number_text(value) for value in values]
    return _without_empty(data, np.searchsorted(values, labels), names, "each whole score its own")


def _equal_edges(data: PairData, bins: int) -> Floats:
    low, high = data.known_scale("Give the edges of the bins, or the scale as label_range LOW HIGH")
    # Rounded to 12 digits, so that an edge is 0.6 and not 0.6000000000000001.
    return np.array([float(f"{edge:.12g}") for edge in np.linspace(low, high, bins + 1)])


def _without_empty(data: PairData, positions: Indices, names: Sequence[str], description: str) -> ScoreClasses:
    counts = Counter(positions.tolist())
    used = sorted(counts)
    if len(used) < 2:
        raise DataError(
            f"{data.source}: softmax tells classes apart, and all {len(data):,} pairs are of one: {names[used[0]]}. "
            "Give more bins, or other edges."
        )
    return ScoreClasses(
        classes=np.searchsorted(used, positions),
        names=tuple(names[position] for position in used),
        counts=tuple(counts[position] for position in used),
        empty=tuple(name for position, name in enumerate(names) if position not in counts),
        description=description,
    )
