"""Scores of pairs by models that were not trained on them, stored in the run folder for the calibration.

Source: ``CalibratedClassifierCV(ensemble=False)`` of scikit-learn: a calibration is fitted on scores out of fold, and
    applied to the model that was trained on all of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data import PairData
from samesense.data.columns.labels import Kind
from samesense.errors import DataError
from samesense.files import write_text
from samesense.schemas import Record, read_checked
from samesense.types import Scores

HELD_OUT_SCORES = "held-out-scores.json"


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Labelled pairs with scores of models that were trained without them.

    Attributes:
        data: the pairs.
        scores: score of each pair ``(pairs,)``.
        folds: number of the fold of each pair ``(pairs,)``; -1 if it was in none.
        protocol: how the scores were made, in words.
    """

    data: PairData
    scores: Scores
    folds: Sequence[int]
    protocol: str


class _File(Record):
    """Content of the file."""

    source: str
    kind: Kind
    scale: tuple[float, float] | None
    zero_class: str
    label_column: str
    protocol: str
    sentences1: list[str]
    sentences2: list[str]
    labels: list[float]
    scores: list[float]
    folds: list[int]


def write_held_out(folder: Path, held_out: HeldOutScores) -> None:
    """Write the scores with labels, folds and texts into a run folder."""
    data = held_out.data
    content = _File(
        source=data.source,
        kind=data.kind,
        scale=data.scale,
        zero_class=data.zero_class,
        label_column=data.label_column,
        protocol=held_out.protocol,
        sentences1=list(data.sentences1),
        sentences2=list(data.sentences2),
        labels=[float(label) for label in data.labels],
        scores=np.asarray(held_out.scores, dtype=np.float64).tolist(),
        folds=[int(fold) for fold in held_out.folds],
    )
    write_text(folder / HELD_OUT_SCORES, content.model_dump_json(indent=1) + "\n")


def read_held_out(folder: Path) -> HeldOutScores | None:
    """Return the stored scores of a run; ``None`` if there are none, DataError if the file is damaged."""
    path = folder / HELD_OUT_SCORES
    if not path.is_file():
        return None
    content = read_checked(path, _File, fix="Train again, or give labelled pairs: `data` FILE")
    columns: list[Sequence[Any]] = [content.sentences1, content.sentences2, content.labels, content.folds]
    if any(len(column) != len(content.scores) for column in columns) or not np.isfinite(content.scores).all():
        raise DataError(f"{path} must hold a finite score for every pair. Train again, or give pairs: `data` FILE")
    data = PairData(
        sentences1=content.sentences1,
        sentences2=content.sentences2,
        labels=content.labels,
        subsets=None,
        kind=content.kind,
        scale=content.scale,
        source=content.source,
        label_column=content.label_column,
        zero_class=content.zero_class,
    )
    return HeldOutScores(data, np.asarray(content.scores), content.folds, content.protocol)
