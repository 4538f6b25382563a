"""What classification demands of its rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.types import Pair

Labels = Sequence[int | float | str]

SHOWN = 60
"""Characters of a text that a message shows."""


def check_examples(dataset: str, examples: Sequence[str] | Sequence[Pair], *, paired: bool) -> None:
    """Raise DataError, naming the first, if an example is no text, or no pair of texts where ``paired``."""
    for row, example in enumerate(examples):
        if paired:
            right = isinstance(example, tuple) and len(example) == 2 and all(isinstance(text, str) for text in example)
        else:
            right = isinstance(example, str)
        if not right:
            wanted = "a pair of strings" if paired else "a string"
            raise DataError(f"{dataset}: each example must be {wanted}, and example {row} is {_shown(example)}.")


def part_size(dataset: str, name: str, part: tuple[Sequence[Any], Labels]) -> int:
    """Return the number of rows of a part; DataError if there are none, or not one label for each example."""
    examples, labels = part
    if len(examples) != len(labels):
        raise DataError(
            f"{dataset}: there must be one label for each example of {name}, "
            f"got {len(labels)} labels and {len(examples)} examples."
        )
    if not len(examples):
        raise DataError(f"{dataset}: {name} has no rows. Check that this is the right file.")
    return len(examples)


def class_numbers(dataset: str, labels: Labels, train: int, fewest: int, why: str) -> npt.NDArray[np.intp]:
    """Return each label as the number of its class ``(n,)``, in ascending order of the labels.

    Labels ``(n,)`` are those of train first; each class must have ``fewest`` rows in train.
    """
    kind = str if isinstance(labels[0], str) else Real
    for row, label in enumerate(labels):
        if not isinstance(label, kind) or (kind is Real and not math.isfinite(float(label))):
            raise DataError(
                f"{dataset}: labels must be all strings or all finite numbers; label {row} is {label!r}, "
                f"and label 0 is {labels[0]!r}. Leave such rows out or recode them."
            )
    counts = Counter(labels[:train])
    if len(counts) < 2:
        raise DataError(
            f"{dataset}: there must be two classes or more to tell apart, and every label is {labels[0]!r}."
        )
    rare, count = min(counts.items(), key=lambda item: item[1])
    if count < fewest:
        raise DataError(
            f"{dataset}: each class must have at least {fewest} rows {why}; class {rare!r} has {count}. "
            "Leave it out, merge it with another, or take fewer folds (fast)."
        )
    numbers = {label: number for number, label in enumerate(np.unique(labels[:train]).tolist())}
    for row, label in enumerate(labels):
        if label not in numbers:
            raise DataError(
                f"{dataset}: every class must be in train; label {label!r} of row {row - train} after train is not. "
                f"Train has {', '.join(repr(known) for known in list(numbers)[:10])}."
            )
    return np.array([numbers[label] for label in labels], dtype=np.intp)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
