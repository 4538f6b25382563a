"""Evaluate a model on labelled pairs, with everything that changes the figures in their protocol."""

from __future__ import annotations

from samesense.data import PairData
from samesense.evaluation.sts import StsTask
from samesense.results import Results
from samesense.types import Scorer


def evaluate_pairs(model: Scorer, data: PairData, *, intervals: bool = True) -> Results:
    """Return Spearman and Pearson of a model's scores with the labels, whole and by subset.

    DataError if no score could correlate with the labels, or all scores are the same; ModelError if there is not one
    finite score a pair.
    """
    return Results(StsTask(data, intervals=intervals).evaluate(model).results)
