"""The few shapes that every layer shares: a pair, the two protocols, and the one result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Embeddings = npt.NDArray[np.float32]
"""Float matrix ``(texts, dim)``, row *i* belonging to text *i*."""

Scores = npt.NDArray[np.float64]
"""Float vector ``(pairs,)``; larger means more similar."""

Pair = tuple[str, str]

Encode = Callable[[Sequence[str]], Embeddings]
"""Text in, embeddings out: order preserved, one row a text."""

Score = Callable[[Sequence[Pair]], Scores]
"""Pairs in, similarity scores out: order preserved, one number a pair."""


PoolingName = Literal["mean", "cls", "max", "first-last", "last-2"]
"""How token vectors become a sentence vector; see :mod:`samesense.encoder.pooling`."""

First = Literal["layer", "embeddings"]
"""What "first" means in first-last pooling: the first transformer layer, or the embedding layer."""

Precision = Literal["auto", "float32", "bfloat16"]
"""Arithmetic of a model; ``auto`` decides by the machine."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number of an evaluation, with all that is needed to compare it with another.

    Attributes:
        task: what was judged, such as ``"sts"``.
        dataset: name of the data, such as ``"stsb.test"``.
        split: ``"train"``, ``"dev"``, ``"test"``, or ``""`` where the data has no splits.
        subset: name of a part of the data; ``"all"``, ``"mean"`` or ``"wmean"`` for the whole.
        metric: name of the quantity, such as ``"spearman"``.
        value: the quantity in its natural unit (a correlation lies in [-1, 1]).
        low: lower end of the 95 % interval, where one was computed.
        high: upper end of the 95 % interval.
        n: number of examples behind the value.
        protocol: everything that changes the number, in words.
        model: name or folder of what was judged.
        seed: seed of the training run, where known.
        seconds: wall time spent on it.

    Raises:
        ValueError: if a number is not finite. A missing value is an absent result, never a zero.
    """

    task: str
    dataset: str
    split: str
    subset: str
    metric: str
    value: float
    n: int
    protocol: str
    model: str
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "seconds"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(
                    f"A Result holds finite numbers only; {name} is {number} ({self.dataset}, {self.metric})."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are present, as plain JSON types."""
        return {key: value for key, value in asdict(self).items() if value is not None}
