"""Argument facet similarity with cross-validation: do two arguments on one topic make the same point?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import WHOLE
from samesense.data.pairs.keys import plain_keys
from samesense.data.pairs.splits import assign_folds, group_pairs
from samesense.errors import ConfigError, DataError
from samesense.evaluation.sts import MOST_SUBSETS, StsTask, subset_members
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import join_clauses
from samesense.types import Scorer, TaskResult

Mode = Literal["apart", "mixed", "by-topic"]
"""Folds that share no sentence, random folds as in publications, or one fold for each topic."""

MODES: dict[Mode, str] = {
    "apart": "{count} folds of {sizes} pairs, seed {seed}",
    "mixed": "{count} random folds, seed {seed}",
    "by-topic": "each topic a fold",
}
"""Descriptions of the folds."""

Rows = npt.NDArray[np.intp]
Fold = tuple[Rows, Rows]
"""Rows to train on, and rows held out; both ascending."""


class ArgumentTask(StsTask):
    """Pearson and Spearman on each held-out fold and averaged, and over all pairs at once.

    ``"mixed"`` assigns pairs to folds at random, as in the ten folds of the literature, so that held-out sentences may
    also occur in training pairs; ``"apart"`` prevents that; ``"by-topic"`` holds out one topic at a time. A model that
    was not trained on these data has the same scores in every mode; for one that was, the protocol counts the held-out
    pairs with a sentence in training.

    Source: Misra, Ecker and Walker (2016), the data and 10 folds; Reimers and Gurevych (2019) for held-out topics.
    """

    suite = "argument"

    def __init__(
        self, data: PairData, *, folds: int = 10, mode: Mode = "mixed", seed: int = 0, dataset: str = "", note: str = ""
    ) -> None:
        """Split scored pairs, whose subsets are their topics, into ``folds`` folds, or into topics.

        DataError if the labels allow no correlation, there are too few pairs, or topics are missing.
        """
        super().__init__(data, dataset=dataset)
        self.mode = mode
        self.folds = cross_validation(data, folds, mode, seed)
        sizes = " to ".join(dict.fromkeys(str(end(len(held) for _, held in self.folds)) for end in (min, max)))
        description = MODES[mode].format(count=len(self.folds), sizes=sizes, seed=seed)
        self.shared = shared_sentences(data, self.folds)  # pairs held out that have a sentence in training
        leak = f"{self.shared} of {len(data)} held-out pairs share a sentence with training pairs"
        self.note = join_clauses(note, description, leak)

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``spearman`` and ``pearson``: ``"all"``, ``"mean"`` over folds and, by topic, each topic."""
        result = super().evaluate(candidate)
        reported = {"all", "mean"}
        if self.mode == "by-topic":
            reported.update(self.data.subsets or ())
        return TaskResult([row for row in result.results if row.subset in reported], result.evidence)

    def _subsets(self) -> Sequence[str]:
        """Return the name of the fold that holds out each pair."""
        if self.mode == "by-topic":
            return list(self.data.subsets or ())
        names = [""] * len(self.data)
        for number, (_, held) in enumerate(self.folds, 1):
            for row in held:
                names[row] = f"fold {number}"
        return names


def cross_validation(data: PairData, k: int = 10, mode: Mode = "mixed", seed: int = 0) -> list[Fold]:
    """Return the rows to train on and the held-out rows of each fold; each row is held out once.

    ``"apart"`` makes ``k`` folds, 2 to 30, that share no sentence and have similar sizes and labels. Random folds,
    ``"mixed"``, have sentences on both sides, as the published ones do, so that the figures of a model fine-tuned on
    them are too high: :func:`shared_sentences` counts these pairs. Their sizes differ by one at most. ``"by-topic"``
    holds out each topic once. DataError if there are too few pairs, or too many of them are connected by shared
    sentences.
    """
    if mode not in MODES:
        raise ConfigError(f"Folds are 'apart', 'mixed' or 'by-topic', got {mode!r}.")
    held = _topics(data) if mode == "by-topic" else _folds(data, k, mode, seed)
    rows = np.arange(len(data))
    return [(np.setdiff1d(rows, held_rows), held_rows) for held_rows in held]


def shared_sentences(data: PairData, folds: list[Fold]) -> int:
    """Return the number of held-out pairs with a sentence that also occurs in a training pair of their fold."""
    first = plain_keys(data.sentences1)
    second = plain_keys(data.sentences2)
    count = 0
    for train, held in folds:
        trained = np.concatenate([first[train], second[train]])
        count += int((np.isin(first[held], trained) | np.isin(second[held], trained)).sum())
    return count


def _folds(data: PairData, k: int, mode: Mode, seed: int) -> list[Rows]:
    if not 2 <= k <= MOST_SUBSETS:
        raise ConfigError(f"There can be 2 to {MOST_SUBSETS} folds, got {k}.")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or larger, got {seed}.")
    # A fold needs two pairs, as one has no correlation.
    if len(data) < 2 * k:
        raise DataError(f"{data.source}: {k} folds need at least {2 * k} pairs, got {len(data)}. Ask for fewer folds.")
    if mode == "mixed":
        order = np.random.default_rng(seed).permutation(len(data))
        return [np.sort(fold) for fold in np.array_split(order, k)]
    groups = group_pairs(data.sentences1, data.sentences2, "sentences")
    largest = int(np.bincount(groups).max())
    count = int(groups.max()) + 1
    # A group is never cut: with half of the pairs, it alone outweighs all other folds.
    if 2 * largest > len(data) or count < k:
        reason = f"{largest} of {len(data)} are connected by shared sentences"
        if count < k and 2 * largest <= len(data):
            reason = f"they fall into {count} groups that share none"
        raise DataError(
            f"{data.source}: the pairs cannot be dealt into {k} folds that share no sentence: {reason}. Give pairs of "
            f"more sentences, ask for fewer folds, or take `folds` {k}-mixed: models are then tested on sentences "
            "that they were trained on, so that the figures are too high."
        )
    numbers = assign_folds(data.sentences1, data.sentences2, data.labels, groups, k, seed)
    return [np.flatnonzero(numbers == fold) for fold in range(k)]


def _topics(data: PairData) -> list[Rows]:
    topics = list(subset_members(data.subsets).values())
    # Pairs without a topic are in no subset, so that no fold would hold them out.
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
