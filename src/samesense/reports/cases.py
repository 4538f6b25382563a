"""Pairs that show where models go wrong: ranked far from the gold labels, or far apart by two models."""

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
    """A pair and the rank that the gold labels and each model give it."""

    texts: tuple[str, str]  # the two sentences
    gold: float  # reference similarity, on the scale of the data
    gold_rank: float  # its rank among all pairs as a share, from 0 (least similar) to 1
    scores: dict[str, float]  # similarity by model
    ranks: dict[str, float]  # rank among all pairs by model


def against_gold(evidence: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that a model ranks farthest from where the gold labels do, each pair of sentences once.

    Pairs that both rank alike are none.
    """
    ranks = _ranks(evidence.values)
    return _chosen([evidence], [ranks], np.abs(ranks - _ranks(_labels(evidence))), most)


def against_each_other(first: Evidence, second: Evidence, *, most: int = SHOWN) -> list[Case]:
    """Return the pairs that two models rank farthest from each other, each pair of sentences once.

    Both evidences are on the same pairs in the same order.
    """
    if list(first.examples) != list(second.examples):
        raise DataError(f"{first.model} and {second.model} were evaluated on different pairs of {first.dataset}.")
    one, other = _ranks(first.values), _ranks(second.values)
    return _chosen([first, second], [one, other], np.abs(one - other), most)


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the average rank of each value as a share ``(n,)``, between 0 and 1."""
    ranks: npt.NDArray[np.float64] = (average_ranks(values) - 0.5) / len(values)
    return ranks


def _labels(evidence: Evidence) -> npt.NDArray[np.float64]:
    if evidence.labels is None:
        raise DataError(f"Cases need reference labels, and those of {evidence.dataset}, {evidence.metric} have none.")
    return evidence.labels


def _chosen(
    evidence: Sequence[Evidence], ranks: Sequence[npt.NDArray[np.float64]], distance: npt.NDArray[np.float64], most: int
) -> list[Case]:
    labels = _labels(evidence[0])
    gold = _ranks(labels)
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
                {one.model: float(own[at]) for one, own in zip(evidence, ranks, strict=True)},
            ),
        )
    return list(found.values())
