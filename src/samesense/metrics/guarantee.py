"""Thresholds that promise a minimum precision or recall on new pairs of the same kind, with 95 % confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.metrics.inputs import Numbers, matching_vectors
from samesense.types import Floats

Share = Literal["precision", "recall"]
"""The measure that is promised."""

CONFIDENCE = 0.95
"""Least probability that a promise holds."""

STEP = 1.02
"""Ratio of the sizes of neighbouring candidates."""

SPARE = 1.1
"""Ratio of the pairs of the first candidate to those that suffice if all are right, since a fold may call fewer."""

MOST_PAIRS = 1_000_000
"""Largest number of needed pairs that is estimated."""

Indices = npt.NDArray[np.integer]


@dataclass(frozen=True)
class ScoredPairs:
    """Labelled pairs with the scores of a model, each pair once; made by :func:`distinct_pairs`.

    Attributes:
        scores: of the model ``(n,)``.
        right: 1 for a yes, 0 for a no ``(n,)``.
        folds: number of the fold of each pair ``(n,)``.
        sentences: numbers of the two sentences of each pair ``(n, 2)``.
    """

    scores: Floats
    right: Floats
    folds: Indices
    sentences: Indices


@dataclass(frozen=True)
class Promise:
    """A threshold that keeps a promise, with its out-of-fold quality.

    Attributes:
        threshold: score from which on a pair is classified as yes.
        precision: out of fold.
        recall: out of fold.
    """

    threshold: float
    precision: float
    recall: float


def distinct_pairs(scores: Numbers, right: Numbers, folds: Indices, sentences: Indices) -> ScoredPairs:
    """Return each pair once; a repetition, in either order, carries no new information.

    A repeated pair gets its mean score, and is a no if it is labelled both ways. Arguments are those of
    :class:`ScoredPairs`.

    Raises:
        DataError: if a number is not finite, or lengths differ.
    """
    values, labels = matching_vectors(scores, right)
    _, first, number, counts = np.unique(
        np.sort(sentences, axis=1), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    number = number.reshape(-1)  # some versions of numpy return a column
    lowest = np.ones(len(first))
    # minimum.at, because an indexed assignment keeps only one of the labels of a repeated pair.
    np.minimum.at(lowest, number, labels)
    return ScoredPairs(np.bincount(number, weights=values) / counts, lowest, folds[first], sentences[first])


def share_lower_bound(hits: Numbers, trials: Numbers, level: float = 1 - CONFIDENCE) -> Floats:
    """Return lower bounds of shares; each is above the true share with probability ``level`` at most.

    Source: Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
        binomial"; Korn and Graubard (1998), "Confidence intervals for proportions with small expected number of
        positive counts estimated from survey data", for dependent trials, which count in part.

    Args:
        hits: number of successes ``(n,)``.
        trials: number of trials, not below the hits ``(n,)``.
        level: between 0 and 1.
    """
    # scipy.stats takes a second to load, and most metrics do not need it.
    from scipy.stats import beta

    successes, total = matching_vectors(hits, trials)
    # The beta distribution needs a first parameter above 0; without a success the bound is 0 anyway.
    ends = beta.ppf(level, np.maximum(successes, 1e-9), total - successes + 1)
    return np.where(successes > 0, ends, 0.0)


def share_interval(hits: float, trials: float, level: float = 1 - CONFIDENCE) -> tuple[float, float]:
    """Return the two-sided interval of a share, which misses it with probability ``level`` at most.

    Source: Clopper and Pearson (1934), as :func:`share_lower_bound`.

    Args:
        hits: number of successes.
        trials: number of trials, one or more.
        level: between 0 and 1.

    Example:
        >>> [round(end, 3) for end in share_interval(95, 100)]
        [0.887, 0.984]
    """
    low = float(share_lower_bound([hits], [trials], level / 2)[0])
    high = 1 - float(share_lower_bound([trials - hits], [trials], level / 2)[0])
    return low, high


def share_p_values(hits: Numbers, trials: Numbers, least: float) -> Floats:
    """Return one-sided p-values ``(n,)`` for the hypothesis that the true share is ``least`` or lower.

    One is at most ``level`` where :func:`share_lower_bound` with that level reaches ``least``.
    """
    from scipy.stats import beta

    successes, total = matching_vectors(hits, trials)
    return np.where(successes > 0, beta.cdf(least, np.maximum(successes, 1e-9), total - successes + 1), 1.0)


class PromiseFinder:
    """Finds thresholds that keep a promise, among candidates whose precision and recall are counted out of fold.

    For a precision, a candidate classifies as yes a given share of the pairs, those of the highest scores. For a
    recall, it misses a given share of the yes, those of the lowest scores. In each fold its threshold is taken from the
    other folds; for a precision it does not depend on labels. The promise is made for the strictest threshold of the
    folds, because scores that occur often may put the folds apart.

    A candidate passes if the lower bound of its out-of-fold share reaches the promise. The candidates are tested by the
    fallback procedure: the error probability of a test that passes goes to the next one. So all candidates that pass
    keep the promise with a probability of :data:`CONFIDENCE`, whichever of them is chosen. Pairs that share a sentence
    may be wrong together, so they are down-weighted by the correlation of their errors.

    Source: Wiens (2003), "A fixed sequence Bonferroni procedure for testing multiple endpoints"; Angelopoulos et al.
        (2021), "Learn then test: Calibrating predictive algorithms to achieve risk control"; Kish (1965), "Survey
        sampling", for the effect of clusters.
    """

    def __init__(self, pairs: ScoredPairs, share: Share) -> None:
        """Count hits and calls of every candidate.

        Args:
            pairs: with both labels, in two folds or more.
            share: the measure that is promised.
        """
        self.pairs = pairs
        self.share = share
        self.sizes = _sizes(len(pairs.scores) if share == "precision" else int(pairs.right.sum()))
        if share == "recall":
            # Sizes count the missed yes here, from none on; missing all of them is no candidate.
            self.sizes = np.append(0, self.sizes[:-1])
        self.thresholds = self._threshold(pairs.scores, pairs.right, self.sizes)
        self.hits, self.called = self._count_out_of_fold()
        positives = np.full(len(self.sizes), pairs.right.sum())
        # A candidate that calls nothing makes no error.
        self.precisions = np.divide(self.hits, self.called, out=np.ones(len(self.sizes)), where=self.called > 0)
        self.recalls = self.hits / positives
        # The denominator of the promised share; dependent pairs count for fewer trials.
        trials = self.called if share == "precision" else positives
        self.trials = trials / self._cluster_effects()

    def find(self, least: float) -> Promise | None:
        """Return the promise of ``least`` or more with the highest other measure; ``None`` if there is none."""
        passing = self._passing(least)
        if not len(passing):
            return None
        maximised = self.recalls if self.share == "precision" else self.precisions
        best = passing[np.argmax(maximised[passing])]
        return Promise(float(self.thresholds[best]), float(self.precisions[best]), float(self.recalls[best]))

    def highest(self, below: float) -> tuple[float, Promise] | None:
        """Return the highest whole percentage below ``below`` that can be promised, as a share, and its promise."""
        # The small number keeps 100 * 0.07 = 7.000000000000001 from counting as above 7.
        for percent in range(math.ceil(100 * below - 1e-9) - 1, 0, -1):
            promise = self.find(percent / 100)
            if promise is not None:
                return percent / 100, promise
        return None

    def pairs_needed(self, least: float) -> int | None:
        """Estimate how many pairs like these would allow a promise; ``None`` if probably no number does.

        Assumes that the out-of-fold shares stay as they are, smoothed by Laplace's rule of succession.
        """
        if least >= 1:
            return None
        shares = (self._values * self.trials + 1) / (self.trials + 2)
        factors = [_growth(value, trials, least) for value, trials in zip(shares, self.trials, strict=True)]
        pairs = len(self.pairs.scores) * min(factors)
        if pairs <= MOST_PAIRS:
            return math.ceil(pairs)
        return None

    @property
    def _values(self) -> Floats:
        """The promised measure of each candidate, out of fold."""
        values: Floats = self.precisions if self.share == "precision" else self.recalls
        return values

    def _passing(self, least: float) -> Indices:
        """Return the candidates that pass, by the fallback procedure."""
        hits = self._values * self.trials
        p_values = share_p_values(hits, self.trials, least)
        passing = []
        carried = 0.0
        for index, (weight, p_value) in enumerate(zip(self._weights(least), p_values, strict=True)):
            level = carried + weight  # what the test before it passed on, if it passed, and its own
            carried = level if p_value <= level else 0.0
            if carried > 0:
                passing.append(index)
        return np.array(passing, dtype=np.intp)

    def _weights(self, least: float) -> Floats:
        """Return the error probability that each candidate's test starts with.

        A recall falls from candidate to candidate, so the first gets all of it. A precision may be lower among few
        pairs than among more, so it is spread over candidates that double in size, from the first that can pass.
        """
        weights = np.zeros(len(self.sizes))
        level = 1 - CONFIDENCE
        if self.share == "recall":
            weights[0] = level
            return weights
        if least >= 1:
            return weights
        # The fewer candidates share the level, the smaller the first that can pass: take the least number that fits.
        for count in range(1, 64):
            smallest = SPARE * math.log(level / count) / math.log(least)
            least_trials = smallest * 2.0 ** np.arange(count + 1)
            starts = np.unique([np.argmax(self.trials >= size) for size in least_trials if self.trials.max() >= size])
            if len(starts) <= count:
                weights[starts.astype(np.intp)] = level / max(1, len(starts))
                break
        return weights

    def _count_out_of_fold(self) -> tuple[Floats, Floats]:
        """Return for each candidate the number of true positives and of pairs called yes, counted out of fold.

        Also raises (or for a recall lowers) ``thresholds`` to the strictest of the folds.
        """
        strictest = np.maximum if self.share == "precision" else np.minimum
        scores = self.pairs.scores
        right = self.pairs.right
        folds = self.pairs.folds
        hits = np.zeros(len(self.sizes))
        called = np.zeros(len(self.sizes))
        for fold in np.unique(folds):
            held = folds == fold  # the fold that is counted; the others choose the thresholds
            training = ~held
            weight = right if self.share == "recall" else np.ones(len(right))
            sizes = np.round(self.sizes * weight[training].sum() / weight.sum()).astype(np.intp)
            thresholds = self._threshold(scores[training], right[training], sizes)
            self.thresholds = strictest(self.thresholds, thresholds)
            # Hits and calls of all thresholds at once, from the sorted scores of the fold.
            order = np.argsort(scores[held])
            # Left: a score at the threshold is called.
            below = np.searchsorted(scores[held][order], thresholds)
            misses = np.append(0, np.cumsum(right[held][order]))
            hits += misses[-1] - misses[below]
            called += held.sum() - below
        return hits, called

    def _threshold(self, scores: Floats, right: Floats, sizes: Indices) -> Floats:
        """Return the threshold of each candidate on some pairs: midway between the last score called and the next."""
        values = np.unique(scores)
        if self.share == "precision":
            ordered = np.sort(scores)[::-1]
            last = ordered[np.maximum(sizes, 1) - 1]
            last = np.where(sizes > 0, last, np.inf)
        else:
            ordered = np.sort(scores[right == 1])
            if len(ordered):
                last = ordered[np.minimum(sizes, len(ordered) - 1)]
            else:
                last = np.full(len(sizes), np.inf)
        positions = np.searchsorted(values, last)
        previous = values[np.maximum(positions - 1, 0)]
        # Halves are added, not the sum halved, so that large scores do not overflow.
        middle = np.where(np.isfinite(last), last / 2 + previous / 2, last)
        # Between neighbouring floats there is no middle, and the score itself is the threshold.
        thresholds: Floats = np.where((previous < middle) & (middle <= last), middle, last)
        return thresholds

    def _cluster_effects(self) -> Floats:
        """Return the design effect of each candidate: how many of its pairs count as one independent pair."""
        scores = self.pairs.scores
        right = self.pairs.right
        if self.share == "recall":
            effect = _shared(self.pairs.sentences[right == 1]).sum() / right.sum()
            return np.full(len(self.sizes), 1 + self._error_correlation * effect)
        order = np.argsort(-scores, kind="stable")
        shared = np.cumsum(_shared(self.pairs.sentences[order]))
        sizes = np.clip(np.round(self.called), 1, len(scores)).astype(np.intp)
        effects: Floats = 1 + self._error_correlation * shared[sizes - 1] / sizes
        return effects

    @cached_property
    def _error_correlation(self) -> float:
        """Correlation of the errors of two pairs that share a sentence, plus one standard error, from 0 to 1."""
        # scikit-learn is slow to load.
        from sklearn.isotonic import IsotonicRegression

        scores = self.pairs.scores
        right = self.pairs.right
        # The error of a pair is its label minus the probability of a yes at its score.
        errors = right - IsotonicRegression(increasing=True).fit(scores, right).predict(scores)
        variance = float(np.mean(errors**2))
        of_sentence, of_pair = _incidence(self.pairs.sentences)
        counts = np.bincount(of_sentence)
        # Each couple counts in both orders, as it does in the sums below.
        couples = float(np.sum(counts * (counts - 1.0)))
        if not couples:
            return 0.0
        # The square of a sum minus the sum of squares is the sum of products over all couples that share a sentence.
        sums = np.bincount(of_sentence, weights=errors[of_pair])
        squares = np.bincount(of_sentence, weights=errors[of_pair] ** 2)
        covariance = float(np.sum(sums**2 - squares)) / couples
        correlation = covariance / variance if variance > 0 else 0.0
        return min(1.0, max(0.0, correlation) + math.sqrt(2 / couples))


def _sizes(count: int) -> Indices:
    """Return numbers from 1 to ``count``, each about :data:`STEP` times the one before."""
    steps = math.ceil(math.log(max(count, 2)) / math.log(STEP))
    return np.unique(np.append(np.minimum(np.round(STEP ** np.arange(steps + 1)), count), count)).astype(np.intp)


def _incidence(sentences: Indices) -> tuple[Indices, Indices]:
    """Return sentence numbers (from 0) and the pairs they occur in, as parallel arrays; each sentence once per pair."""
    _, numbers = np.unique(sentences, return_inverse=True)
    numbers = numbers.reshape(-1, 2)
    pairs = np.repeat(np.arange(len(numbers)), 2)
    once = np.ones((len(numbers), 2), dtype=bool)
    once[:, 1] = numbers[:, 0] != numbers[:, 1]
    return numbers.reshape(-1)[once.reshape(-1)], pairs[once.reshape(-1)]


def _shared(sentences: Indices) -> Floats:
    """Return twice the number of earlier pairs with which each pair shares a sentence ``(n,)``."""
    of_sentence, of_pair = _incidence(sentences)
    order = np.argsort(of_sentence, kind="stable")
    counts = np.bincount(of_sentence)
    earlier = np.empty(len(order))
    earlier[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.bincount(of_pair, weights=2 * earlier, minlength=len(sentences)).astype(np.float64)


def _growth(value: float, trials: float, least: float) -> float:
    """Return the factor by which trials must grow until the lower bound of a share reaches ``least``; or infinity."""
    if value <= least:
        return math.inf
    low = 1.0
    high = 2.0**30
    for _ in range(60):  # bisection on a logarithmic scale
        middle = math.sqrt(low * high)
        size = middle * trials
        enough = share_lower_bound([value * size], [size], (1 - CONFIDENCE) / 3)[0] >= least
        if enough:
            high = middle
        else:
            low = middle
    return high
