"""Find a threshold that promises a precision or a recall on new pairs, or say what can be promised."""

from __future__ import annotations

import math

import numpy as np

from samesense.data.pairs.data import PairData
from samesense.data.pairs.keys import Groups, group_equal, plain_keys
from samesense.errors import PromiseError
from samesense.metrics.guarantee import CONFIDENCE, Promise, PromiseFinder, ScoredPairs, Share, distinct_pairs
from samesense.types import Scores


def scored_pairs(data: PairData, scores: Scores, right: Scores, folds: Groups) -> ScoredPairs:
    """Return the distinct pairs of the data with their scores; arrays are ``(n,)``, ``right`` is 1 for a yes."""
    keys = plain_keys([*data.sentences1, *data.sentences2])
    # The keys of the first sentences come before those of the second.
    return distinct_pairs(scores, right, folds, group_equal(keys).reshape(2, -1).T)


def promised(pairs: ScoredPairs, metric: Share, least: float, name: str) -> Promise:
    """Return the threshold that promises a precision or a recall of ``least`` or more.

    Raises:
        PromiseError: if these pairs, of the data ``name``, show no such threshold; the message says what they show
            instead, and how many pairs would be needed.
    """
    finder = PromiseFinder(pairs, metric)
    promise = finder.find(least)
    if promise is not None:
        return promise
    raise PromiseError(
        f"{name}: no threshold keeps a {metric} of {percent(least)} or more on new pairs with {percent(CONFIDENCE)} "
        f"confidence. {_instead(finder, least)} {_more_pairs(finder, least)}"
    )


def percent(value: float) -> str:
    """Return a fraction as a percentage."""
    return f"{100 * value:.4g} %"


def _instead(finder: PromiseFinder, least: float) -> str:
    """Return a sentence on what can be promised instead of ``least``."""
    best = finder.highest(least)
    if best is None:
        return f"These {_count(finder)} show none for any {finder.share}."
    highest, promise = best
    opposite = "recall" if finder.share == "precision" else "precision"
    return (
        f"These {_count(finder)} show {percent(highest)}, by the threshold {promise.threshold:.4f} with a {opposite} "
        f"of {percent(round(getattr(promise, opposite), 3))}: ask for `min_{finder.share}` {highest:g}."
    )


def _count(finder: PromiseFinder) -> str:
    return f"{len(finder.pairs.scores):,} different pairs"


def _more_pairs(finder: PromiseFinder, least: float) -> str:
    """Return a sentence on how many pairs would be needed."""
    if least >= 1:
        return "No number of pairs shows 100 %."
    needed = finder.pairs_needed(least)
    if needed is None:
        return f"They do not show that more pairs would do for {percent(least)}; take a model that fits them better."
    # At least a tenth more than there are, as these do not suffice.
    needed = max(needed, math.ceil(1.1 * len(finder.pairs.scores)))
    unit = 10 ** max(0, int(math.log10(needed)) - 1)
    rounded = math.ceil(needed / unit) * unit  # to two significant digits
    positives = round(float(np.mean(finder.pairs.right)) * rounded)
    return f"About {rounded:,} pairs like these, {positives:,} of them a yes, would do for {percent(least)}."
