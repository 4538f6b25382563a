"""The few shapes that every layer shares: a pair, the protocols, and the one result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

Embeddings = npt.NDArray[np.float32]
"""Float matrix ``(texts, dim)``, row *i* belonging to text *i*."""

Scores = npt.NDArray[np.float64]
"""Float vector ``(pairs,)``; larger means more similar."""

Floats = npt.NDArray[np.float64]

Indices = npt.NDArray[np.int64]

Pair = tuple[str, str]

Row = tuple[int, Mapping[str, object]]
"""Row number as the file counts it, and the cells by column name."""

Encode = Callable[[Sequence[str]], Embeddings]
"""Text in, embeddings out: order preserved, one row a text."""

Score = Callable[[Sequence[Pair]], Scores]
"""Pairs in, similarity scores out: order preserved, one number a pair."""


PoolingName = Literal["mean", "cls", "max", "lasttoken", "first-last", "last-2"]
"""How token vectors become a sentence vector; see :mod:`samesense.encoder.assembly.pooling`."""

Standardize = Literal["auto", "none", "mean", "whiten"]
"""What is done to a start model: nothing, its mean taken off, or whitened; auto by how narrow its cone is."""

First = Literal["layer", "embeddings"]
"""What "first" means in first-last pooling: the first transformer layer, or the embedding layer."""

END_OF_TEXT = "<|endoftext|>"
"""The mark between documents in the pretraining of GPT-2 and later models; a chat template may name another bos."""

TaskName = Literal["query", "document"]
"""What a text is looked for with, or found; as sentence-transformers has it."""

Precision = Literal["auto", "float32", "bfloat16"]
"""Arithmetic of a model; ``auto`` decides by the machine."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number of an evaluation, with all that is needed to compare it with another.

    Attributes:
        task: the suite, such as ``"sts"``.
        dataset: name of the data, such as ``"stsb.test"``.
        split: ``"train"``, ``"dev"``, ``"test"``, or ``""`` where the data has no splits.
        subset: name of a part of the data; ``"all"``, ``"mean"`` or ``"wmean"`` for the whole.
        metric: name of the quantity, such as ``"spearman"``.
        value: the quantity in its natural unit (a correlation lies in [-1, 1]).
        low: lower end of the 95 % interval, where one was computed.
        high: upper end of the 95 % interval.
        n: number of examples behind the value.
        protocol: everything that changes the number, in words.
        model: name or folder of the model.
        seed: seed of the training run, where known.
        seconds: wall time to encode and score; ``None`` where it was not measured, as embeddings were remembered.

    Raises:
        ValueError: if a number is not finite. A missing value is an absent result, never a zero.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}  # of what is read from a file

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


EvidenceStatistic = Literal["spearman", "average_precision", "f1", "mean"]
"""The figure that evidence explains: one of values and labels, or the mean of values."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What lies behind one figure, example by example: for paired comparisons, figures and case studies."""

    task: str  # as in the Result that it explains, as are dataset, metric, model and seed
    dataset: str
    metric: str
    model: str
    statistic: EvidenceStatistic
    values: Scores  # per example the model's score, its decision (f1: 1 for positive), or its outcome (1 for right)
    labels: Scores | None  # the reference (n,); None for a mean
    examples: Sequence[Pair] | Sequence[str]  # (n,), the same and in the same order for every model
    seed: int | None = None

    @property
    def has_scores(self) -> bool:
        """Whether the values are scores of pairs that have labels, which can be ranked and drawn."""
        return self.labels is not None and self.statistic != "f1"


@dataclass(frozen=True)
class TaskResult:
    """The results of one task for one model, and the evidence behind them."""

    results: list[Result]
    evidence: list[Evidence] = field(default_factory=list)


Marked = Sequence[tuple[str, float]]
"""A text in pieces, each with what it adds to a score."""


class Scorer(Protocol):
    """What is evaluated; :class:`~samesense.inference.models.model.Model` is one."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def protocol(self) -> str:
        """Everything about it that changes a figure, in words."""

    @property
    def seed(self) -> int | None:
        """Seed of the training run behind it, where known."""

    @property
    def embeds(self) -> bool:
        """Whether it has embeddings; a cross-encoder has none."""

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """Return one similarity a pair, larger for more similar; order preserved."""

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Return one row a text; order preserved.

        Raises:
            ModelError: if it has no embeddings.
        """

    def fill(self, texts: Iterable[str], *, on_progress: Callable[[int], None] | None = None) -> int:
        """Encode texts together, so that later calls find them, where embeddings are cached; return how many."""
