"""Pairs that show where models go wrong: those placed farthest from the gold, and those two models place apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics.correlation import average_ranks
from samesense.types import Evidence

SHOWN = 5
"""Pairs that are shown of each kind."""


@dataclass(frozen=True)
class Case:
    """A pair and the place that the gold and each model give it.

    Attributes:
        texts: the two sentences.
        gold: reference similarity, on the scale of the data.
        gold_place: its place among all pairs, from 0 (least similar) to 1.
        scores: similarity by model.
        places: place among all pairs by model.
    """

    texts: tuple[str, str]
    gold: float
    gold_place: float
    scores: dict[str, float]
    places: dict[str, float]


def against_gold(evidence: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that a model places farthest from where the gold does, each pair of sentences once.

    Args:
        evidence: scores with labels.
        most: how many to return at most; pairs that both place alike are none.
    """
    places = _places(evidence.values)
    return _chosen([evidence], [places], np.abs(places - _places(_labels(evidence))), most)


def against_each_other(first: Evidence, second: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that two models place farthest from each other, each pair of sentences once.

    Args:
        first: scores with labels.
        second: the same of another model, on the same pairs in the same order.
        most: how many to return at most.

    Raises:
        DataError: if the models were judged on different pairs.
    """
    if list(first.examples) != list(second.examples):
        raise DataError(f"{first.model} and {second.model} were judged on different pairs of {first.dataset}.")
    one, other = _places(first.values), _places(second.values)
    return _chosen([first, second], [one, other], np.abs(one - other), most)


def _places(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the average rank of each value as a share ``(n,)``, between 0 and 1."""
    places: npt.NDArray[np.float64] = (average_ranks(values) - 0.5) / len(values)
    return places


def _labels(evidence: Evidence) -> npt.NDArray[np.float64]:
    if evidence.labels is None:
        raise DataError(f"Cases need reference labels, and those of {evidence.dataset}, {evidence.metric} have none.")
    return evidence.labels


def _chosen(
    evidence: Sequence[Evidence],
    places: Sequence[npt.NDArray[np.float64]],
    distance: npt.NDArray[np.float64],
    most: int,
) -> list[Case]:
    labels = _labels(evidence[0])
    gold = _places(labels)
    found: dict[tuple[str, ...], Case] = {}
    for at in np.argsort(-distance, kind="stable"):
        if len(found) == most or distance[at] == 0:
            break
        pair = evidence[0].examples[at]
        found.setdefault(
            tuple(sorted(pair)),
            Case(
                (pair[0], pair[1]),
                float(labels[at]),
                float(gold[at]),
                {one.model: float(one.values[at]) for one in evidence},
                {one.model: float(own[at]) for one, own in zip(evidence, places, strict=True)},
            ),
        )
    return list(found.values())
