"""Argument facet similarity: do two arguments on one topic make the same point? By cross-validation."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import WHOLE
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import MOST_SUBSETS, StsTask, correlation_results, subset_members
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import in_words, timed_scores
from samesense.types import Scorer, TaskResult

Mode = Literal["mixed", "by-topic"]
"""Folds of random pairs from all topics, or each topic a fold."""

Rows = npt.NDArray[np.intp]
Fold = tuple[Rows, Rows]
"""Rows to train on, and rows held out; both ascending."""


class ArgumentTask(StsTask):
    """Pearson and Spearman on each held-out fold and averaged, and over all pairs at once.

    ``"mixed"`` deals the pairs at random, as in the ten folds of the literature, so sentences held out may also occur
    in training pairs; ``"by-topic"`` holds out a topic at a time. A model that was not trained on this data has the
    same scores in either mode, and the protocol counts the sentences shared for one that was.

    Source: Misra, Ecker and Walker (2016), the data and 10 folds; Reimers and Gurevych (2019) for held-out topics.
    """

    suite = "argument"

    def __init__(
        self, data: PairData, *, folds: int = 10, mode: Mode = "mixed", seed: int = 0, dataset: str = "", note: str = ""
    ) -> None:
        """Deal scored pairs, whose subsets are their topics, into folds; ``"mixed"`` makes ``folds`` of them.

        DataError if labels cannot be correlated with, there are too few pairs, or topics are missing.
        """
        super().__init__(data, dataset=dataset)
        self.mode = mode
        self.folds = cross_validation(data, folds, mode, seed)
        dealt = f"{len(self.folds)} random folds, seed {seed}" if mode == "mixed" else "each topic a fold"
        leak = (
            f"{shared_sentences(data, self.folds)} of {len(data)} held-out pairs share a sentence with training pairs"
        )
        self.note = in_words(note, dealt, leak)

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``spearman`` and ``pearson``: ``"all"``, ``"mean"`` over folds and, by topic, each topic."""
        pairs = self.data.pairs()
        scores, seconds = timed_scores(candidate, pairs)
        build, labels = self.builder(candidate, seconds), np.asarray(self.data.labels, dtype=np.float64)
        rows = correlation_results(build, scores, labels, self._fold_names())
        kept = {"all", "mean", *((self.data.subsets or ()) if self.mode == "by-topic" else ())}
        return TaskResult(
            [row for row in rows if row.subset in kept], [build.evidence("spearman", scores, pairs, labels)]
        )

    def _fold_names(self) -> list[str]:
        """Return for each pair the name of the fold that holds it out."""
        if self.mode == "by-topic":
            return list(self.data.subsets or ())
        names = [""] * len(self.data)
        for number, (_, held) in enumerate(self.folds, 1):
            for row in held:
                names[row] = f"fold {number}"
        return names


def cross_validation(data: PairData, k: int = 10, mode: Mode = "mixed", seed: int = 0) -> list[Fold]:
    """Return the rows to train on and the rows held out, fold by fold; each row is held out once.

    Random folds put sentences on both sides, as the published ones do, and that flatters a model fine-tuned on them.
    :func:`shared_sentences` counts the pairs concerned. ``"mixed"`` makes ``k`` folds, 2 to 30, whose sizes differ by
    one at most; ``"by-topic"`` holds out each topic once.
    """
    if mode not in ("mixed", "by-topic"):
        raise ConfigError(f"Folds are 'mixed' or 'by-topic', got {mode!r}.")
    held = _topics(data) if mode == "by-topic" else _random_folds(data, k, seed)
    rows = np.arange(len(data))
    return [(np.setdiff1d(rows, part), part) for part in held]


def shared_sentences(data: PairData, folds: list[Fold]) -> int:
    """Return how many held-out pairs have a sentence that also occurs in a training pair of their fold."""
    count = 0
    for train, held in folds:
        seen = {text for row in train for text in (data.sentences1[row], data.sentences2[row])}
        count += sum(data.sentences1[row] in seen or data.sentences2[row] in seen for row in held)
    return count


def _random_folds(data: PairData, k: int, seed: int) -> list[Rows]:
    if not 2 <= k <= MOST_SUBSETS:
        raise ConfigError(f"There can be 2 to {MOST_SUBSETS} folds, got {k}.")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or larger, got {seed}.")
    if len(data) < 2 * k:
        raise DataError(f"{data.source}: {k} folds need at least {2 * k} pairs, got {len(data)}. Ask for fewer folds.")
    dealt = np.random.default_rng(seed).permutation(len(data))
    return [np.sort(part) for part in np.array_split(dealt, k)]


def _topics(data: PairData) -> list[Rows]:
    topics = list(subset_members(data.subsets).values())
    if sum(map(len, topics)) != len(data):
        raise DataError(
            f"{data.source}: folds by topic need the topic of every pair as its subset, 2 to {MOST_SUBSETS} of them; "
            f"found {len(set(data.subsets or ()))} for {len(data)} pairs. Add a column subset, or deal them mixed."
        )
    return topics


SUITE = Suite(
    task=ArgumentTask,
    data="argument facet similarity",
    figures="Pearson, Spearman over folds",
    metrics=("spearman", "pearson"),
    split=WHOLE,
)
