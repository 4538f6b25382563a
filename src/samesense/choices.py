"""Settings that take one of a few words, or names: a function refuses others as the command line does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any, Literal, get_args

from samesense.errors import ConfigError

BackendOption = Literal["auto", "torch", "onnx", "onnx-int8", "openvino", "openvino-bfloat16", "openvino-int8"]
"""Backends that a user may request."""

CalibrationMap = Literal["auto", "isotonic", "logistic"]
"""Kind of the map of a calibration; ``"auto"`` chooses by the labels."""

Chunk = Literal["mean", "max"]
"""How the vectors of a text's windows are combined: by their mean, or by the maximum of each dimension."""

DecimalMark = Literal["point", "comma"]
"""Decimal mark of the scores in a table."""

DedupBy = Literal["representative", "linked"]
"""What makes a text a duplicate: it is close to the kept text, or connected to it by a chain of close texts."""

ExplainBy = Literal["auto", "tokens", "occlusion", "sentences"]
"""What explains the score of two texts: token vectors, words left out, or matching sentences."""

ExecutorName = Literal["embedded", "ray"]
"""Where workers run: processes on this machine, or a Ray cluster."""

Keep = Literal["first", "longest", "central"]
"""Which text of a group of duplicates is kept."""

PairsBy = Literal["bands", "neighbours", "disagreement", "random"]
"""Strategy by which pairs are chosen for labelling."""

Sampling = Literal["top", "random"]
"""Which candidates become negatives: those of the highest scores, or any."""

ScaleName = Literal["0-5", "yes-no"]
"""Scale on which a person or a chat model labels."""

SearchMethod = Literal["auto", "exact", "approximate"]
"""Search for near texts; ``"auto"`` decides by their number."""

SimilarityBy = Literal["whole", "sentences"]
"""What is compared of two texts: the whole texts, or their best-matching sentences."""

Threshold = float | Literal["calibrated"]
"""A score from which on a pair counts, or that of the model's calibration."""

ThresholdTarget = Literal["accuracy", "f1"]
"""Metric for which a threshold is fitted."""


def check_choice(name: str, value: object, choices: Any, *, optional: bool = False) -> None:
    """Raise ConfigError if ``value`` is none of ``choices``, a ``Literal`` or a sequence of words.

    ``optional`` allows ``None``.
    """
    words = get_args(choices) or tuple(choices)
    if value not in words and not (optional and value is None):
        raise ConfigError(f"`{name}` is one of {', '.join(words)}; received {value!r}.")


def check_output_name(output: object, name: str = "output", example: str = "runs/mine") -> None:
    """Raise ConfigError unless ``output`` is the name of a file or a folder."""
    if not isinstance(output, str | Path):
        raise ConfigError(
            f"`{name}` is the name of a file or a folder; received {output!r}. Example: {name}={example!r}"
        )


def check_list(name: str, values: object) -> None:
    """Raise ConfigError for one value where a list is needed: a text would be taken for a list of its letters."""
    if isinstance(values, str | Path) or not isinstance(values, Iterable):
        received = repr(str(values)) if isinstance(values, str | Path) else type(values).__name__
        raise ConfigError(f"`{name}` is a list; received {received}. Put it in brackets, as in {name}=[{received}].")


def check_count(name: str, value: object) -> int:
    """Return a positive whole number of any library as an ``int``; ConfigError for another value."""
    try:
        count = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or count < 1:
        raise ConfigError(f"`{name}` is a whole number of 1 or more; received {value!r}.")
    return count


def check_number(name: str, value: object, otherwise: str = "") -> None:
    """Raise ConfigError unless ``value`` is a finite number: a text, or True for 1, is a mistake.

    ``otherwise`` says in words what else is allowed, where something is.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ConfigError(f"`{name}` is a number{otherwise}; received {value!r}.")


def check_threshold_option(threshold: object) -> None:
    """Raise ConfigError unless a threshold is a finite number, or stands for that of a calibration."""
    if not (isinstance(threshold, str) and threshold == "calibrated"):
        check_number("threshold", threshold, ", or calibrated")


def check_min_precision(precision: object) -> None:
    """Raise ConfigError unless ``min_precision`` is ``None`` or a precision above 0."""
    if precision is None:
        return
    check_number("min_precision", precision)
    if not 0 < precision <= 1:  # type: ignore[operator]
        raise ConfigError(f"A precision is above 0 and up to 1; received `min_precision` {precision}. Example: 0.95")


def words_of(words: str | Sequence[str]) -> list[str]:
    """Return several words as a list; in one text they are separated by commas."""
    return [word.strip() for word in words.split(",")] if isinstance(words, str) else [*words]


def check_named(model: object) -> str:
    """Return the name of a model whose files are needed; ConfigError for one that is in memory."""
    if isinstance(model, str | Path):
        return str(model)
    raise ConfigError(
        f"The files of a model are read here, so it is named by its folder or as on the hub; received "
        f"{type(model).__name__}. Save it, and give the folder."
    )
