"""Chooses the share of a training that is kept, for each fold of pairs by the labels of the other folds.

It is a share of the steps, or of the way from the weights of the start to those of the end.

So no pair's score is chosen by its own label, and metrics on the scores are not optimistic.

Source: Varma and Simon (2006), "Bias in error estimation when using cross-validation for model selection": the choice
    is made within each fold's own complement. Tibshirani and Tibshirani (2009), "A bias correction for the minimum
    error rate in cross-validation", on the optimism that this avoids.
Differs: only the share is chosen, so that no further models need training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.metrics import spearman
from samesense.metrics.correlation import average_ranks
from samesense.types import Floats, Scores

Rows = npt.NDArray[np.intp]

UNDEFINED = -2.0
"""Value of an evaluation without a correlation: below every other."""


@dataclass(frozen=True)
class ScoredFold:
    """The pairs of a fold, scored along a training without them.

    Attributes:
        rows: positions of the pairs ``(pairs,)``.
        labels: labels of the pairs ``(pairs,)``.
        shares: share of the training at each evaluation, ascending ``(evaluations,)``; 0 is the start.
        scores: scores of the pairs ``(evaluations, pairs)``.
    """

    rows: Rows
    labels: Floats
    shares: Floats
    scores: Floats

    def at_share(self, share: float) -> Scores:
        """Return the scores at the evaluation nearest to a share of the training ``(pairs,)``."""
        nearest = int(np.abs(self.shares - share).argmin())
        scores: Scores = self.scores[nearest]
        return scores


def share_curve(folds: Sequence[ScoredFold], shares: Floats) -> Floats:
    """Return Spearman over the pairs of all folds together, at each share of the training ``(shares,)``."""
    labels = np.concatenate([fold.labels for fold in folds])
    figures = [_figure(np.concatenate([fold.at_share(share) for fold in folds]), labels) for share in shares]
    return np.array(figures)


def choose_share(folds: Sequence[ScoredFold], shares: Floats) -> float:
    """Return the share of the training with the highest Spearman over all folds; ties go to the smallest."""
    return float(shares[int(share_curve(folds, shares).argmax())])


def choose_scores(folds: Sequence[ScoredFold]) -> Scores:
    """Return the score of every pair at the share that the other folds chose ``(pairs,)``.

    Scores of several shares have no common scale, and Spearman over all folds compares pairs of different folds. So
    each fold is put on the scale of the share that all folds together choose, which keeps its order.
    """
    common_share = choose_share(folds, folds[0].shares)
    chosen = np.full(sum(len(fold.rows) for fold in folds), np.nan)
    for number, fold in enumerate(folds):
        share = choose_share([*folds[:number], *folds[number + 1 :]], fold.shares)
        chosen[fold.rows] = _on_scale(fold.at_share(share), fold.at_share(common_share))
    return chosen


def _on_scale(scores: Scores, scale: Scores) -> Scores:
    """Return the values of ``scale`` in the order of ``scores``, both ``(n,)``; equal scores stay equal."""
    on_scale: Scores = np.interp(average_ranks(scores), np.arange(1, len(scale) + 1), np.sort(scale))
    return on_scale


def _figure(scores: Floats, labels: Floats) -> float:
    try:
        return spearman(scores, labels)
    except DataError:  # constant labels or scores, or scores that are not finite
        return UNDEFINED
