"""Check before training that the data fit the loss; the message names losses that would fit."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.errors import DataError
from samesense.losses.base import EmbeddingLoss, LabelKind, fits_bounds
from samesense.losses.registry import OTHER_MODULES, PAIR_LOSSES
from samesense.losses.softmax import Softmax
from samesense.types import Floats

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import nn

LABELS = ("label", "labels", "score", "scores")
"""Columns that the trainer of sentence-transformers uses as labels."""

KINDS: Mapping[LabelKind, str] = {
    "none": "no labels",
    "order": "a number for each example, not all equal",
    "binary": "labels 0 and 1",
    "number": "a number from -1 to 1 for each example",
    "class": "whole numbers from 0 as classes",
    "row": "the row number of each example, all different",
    "grouped": "a label and a group, a whole number from 0, for each example",
}
"""Description of each kind of label."""


@dataclass(frozen=True)
class DatasetShape:
    """The number of text columns of a data set, the kinds of its labels, and the largest label."""

    columns: int
    kinds: frozenset[LabelKind]
    received: str
    largest: float = 0.0


def check_dataset(loss: nn.Module, dataset: Dataset) -> None:
    """Raise if ``dataset`` does not fit ``loss``; a loss of another library is not checked.

    Raises:
        DataError: states what the loss takes, what was received, and which losses would fit.
    """
    if not isinstance(loss, EmbeddingLoss):
        return
    shape = dataset_shape(dataset)
    if _fits(loss, shape):
        _check_classes(loss, shape)
        return
    fitting = [kind.__name__ for kind in loss_classes() if _fits(kind, shape)]
    advice = f"These fit: {', '.join(fitting)}." if fitting else "No loss fits these data."
    raise DataError(
        f"{type(loss).__name__} takes {loss.takes}, and {KINDS[loss.labels]}; received {shape.received}. {advice}"
    )


def loss_classes() -> list[type[EmbeddingLoss]]:
    """Return every loss of embeddings that takes plain columns, in the order in which messages list them."""
    pair_modules = [spec.module for spec in PAIR_LOSSES.specs if spec.encoder == "bi"]
    return [*pair_modules, *OTHER_MODULES]


def _fits(loss: EmbeddingLoss | type[EmbeddingLoss], shape: DatasetShape) -> bool:
    return loss.labels in shape.kinds and fits_bounds(shape.columns, loss.columns)


def _check_classes(loss: EmbeddingLoss, shape: DatasetShape) -> None:
    if isinstance(loss, Softmax) and shape.largest >= loss.settings["classes"]:
        raise DataError(
            f"Softmax has {loss.settings['classes']} classes, numbered from 0; received {shape.received}. "
            f"Make it with classes={int(shape.largest) + 1}."
        )


def dataset_shape(dataset: Dataset) -> DatasetShape:
    """Return the shape of ``dataset``: its text columns, and its label column if it has one."""
    texts = [name for name in dataset.column_names if name not in LABELS]
    label_columns = [name for name in dataset.column_names if name in LABELS]
    columns = "column" if len(texts) == 1 else "columns"
    words = f"{len(texts)} text {columns} ({', '.join(texts)})"
    if not label_columns:
        return DatasetShape(len(texts), frozenset({"none"}), f"{words} and no labels")
    # The trainer takes the first of them as well.
    labels = dataset[label_columns[0]][:]
    kinds, description = _label_kinds(labels)
    largest = max(labels) if "class" in kinds else 0
    return DatasetShape(len(texts), kinds, f"{words} and as {label_columns[0]} {description}", largest)


def _label_kinds(labels: Sequence[Any]) -> tuple[frozenset[LabelKind], str]:
    """Return all kinds that these labels fit, and a description of the labels."""
    if not len(labels):
        return frozenset(), "nothing"
    wrong = next((i for i, label in enumerate(labels) if not isinstance(label, numbers.Real | Sequence)), None)
    # A text is a sequence too, and no label; if the first is one, all are.
    if wrong is not None or isinstance(labels[0], str):
        row = wrong or 0
        return frozenset(), f"{labels[row]!r} in row {row + 1}"
    # Labels with groups, or vectors of a teacher, which losses of other libraries take.
    if isinstance(labels[0], Sequence):
        kinds: frozenset[LabelKind] = frozenset({"grouped"} if _are_grouped(labels) else ())
        return kinds, f"rows of {len(labels[0])} numbers"
    values = np.unique(np.asarray(labels, dtype=np.float64))
    listed = ", ".join(f"{value:g}" for value in values[:3])
    if len(values) > 3:
        listed += f" ... {values[-1]:g}"
    if not np.isfinite(values).all():
        return frozenset(), f"{listed}, which are not all finite"
    return _kinds_of_numbers(values, len(labels)), f"{len(values)} different numbers ({listed})"


def _are_grouped(labels: Sequence[Sequence[float]]) -> bool:
    """Return whether each row is a finite label and the number of a group."""
    if any(len(row) != 2 for row in labels):
        return False
    rows = np.asarray(labels, dtype=np.float64)
    groups = rows[:, 1]
    return bool(np.isfinite(rows).all() and groups.min() >= 0 and np.array_equal(groups, groups.round()))


def _kinds_of_numbers(values: Floats, rows: int) -> frozenset[LabelKind]:
    """Return all kinds that finite labels fit, by their different values in rising order and the number of rows."""
    kinds: set[LabelKind] = set()
    if len(values) > 1:
        kinds.add("order")
    if set(values) <= {0.0, 1.0}:
        kinds.add("binary")
    if values[0] >= -1 and values[-1] <= 1:
        kinds.add("number")
    # All different integers may be row numbers, and classes as well
    if values[0] >= 0 and np.array_equal(values, values.round()):
        kinds.add("class")
        if len(values) == rows:
            kinds.add("row")
    return frozenset(kinds)
