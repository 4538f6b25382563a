"""Ranking: does a model order the partners of one sentence as people do?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from samesense.data import PairData
from samesense.errors import DataError, ModelError
from samesense.evaluation.suite import Suite
from samesense.evaluation.task import ResultBuilder, Task, join_clauses, timed_scores
from samesense.metrics import kendall, mean_interval, ndcg
from samesense.metrics.inputs import is_constant
from samesense.types import Pair, Result, Scorer, Scores, TaskResult

FEWEST_PAIRS = 4
"""Fewest pairs of a sentence to be a query."""

QUERIES = "queries: sentences in either position with more than 3 pairs, subsets pooled, equal pairs averaged"


@dataclass(frozen=True)
class RankedList:
    """A query with its partners and their labels."""

    query: str
    partners: list[str]  # the sentences that it is paired with, each once (k,)
    labels: Scores  # their similarity to the query, averaged if a pair occurs more than once (k,)


class RankingTask(Task):
    """Kendall's correlation (KCC) and NDCG of the partners of each query, averaged over queries.

    A query is a sentence that occurs, with exactly the same spelling, in more than 3 pairs, in either position. A pair
    that occurs more than once is one partner with the mean label. KCC is undefined if all labels of a list are equal
    (as for a single partner), or all scores are; such lists are left out of the mean, and the protocol counts both
    kinds. NDCG is undefined for a single partner and if all labels are 0. Intervals treat the queries as independent,
    although two of them may share a pair.

    Source: RankCSE (Liu et al. 2023), Appendix G.
    Differs: the paper does not say how it treats equal pairs and undefined lists, nor which gain it uses; linear gain
        fits its figures.
    """

    suite = "ranking"

    def __init__(self, data: PairData, *, dataset: str = "", note: str = "") -> None:
        """Find the queries; DataError if a label is negative, or no query has different labels."""
        self.dataset = dataset or data.name
        self.note = join_clauses(note, QUERIES)
        self.lists = ranked_lists(data)
        self.graded = [item for item in self.lists if len(item.partners) > 1 and item.labels.any()]
        self.ranked = [item for item in self.graded if not is_constant(item.labels)]
        if not self.ranked:
            raise DataError(
                f"{data.source}: a ranking needs a sentence in {FEWEST_PAIRS} pairs or more with different labels; of "
                f"{len(data)} pairs there are {len(self.lists)} such sentences, and none has different labels. Choose "
                "data whose sentences recur."
            )

    def texts(self) -> Iterator[str]:
        """Return the queries and their partners."""
        for item in self.graded:
            yield item.query
            yield from item.partners

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``kcc`` and ``ndcg``, and the value of each query as evidence.

        ``kcc`` has no evidence if the candidate gives the same score to all partners of some query, because the
        evidence would not cover the same queries as that of other models.
        """
        pairs: list[Pair] = [(item.query, partner) for item in self.graded for partner in item.partners]
        scores, seconds = timed_scores(candidate, pairs)
        build = self.builder(candidate, seconds)
        ends = np.cumsum([len(item.partners) for item in self.graded])
        by_query = dict(zip((item.query for item in self.graded), np.split(scores, ends[:-1]), strict=True))
        defined = [item for item in self.ranked if not is_constant(by_query[item.query])]
        if not defined:
            raise ModelError(
                f"{self.dataset}: KCC is undefined because {candidate.name} gives one score to all partners of each of "
                f"{len(self.ranked)} queries. A model that tells no two sentences apart cannot be ranked."
            )
        taus = np.array([kendall(by_query[item.query], item.labels) for item in defined])
        gains = np.array([ndcg(by_query[item.query], item.labels) for item in self.graded])
        constant = len(self.ranked) - len(defined)
        results = [
            self._mean(build, "kcc", taus, "Kendall's tau-b", f"equal labels, {constant} with constant scores"),
            self._mean(build, "ndcg", gains, "linear gain", "one partner or labels of 0"),
        ]
        evidence = [build.evidence("ndcg", gains, [item.query for item in self.graded])]
        if not constant:
            evidence.insert(0, build.evidence("kcc", taus, [item.query for item in self.ranked]))
        return TaskResult(results, evidence)

    def _mean(self, build: ResultBuilder, metric: str, values: Scores, measure: str, undefined: str) -> Result:
        """Return the mean over queries as a result, whose protocol counts the queries that were left out."""
        included = self.ranked if metric == "kcc" else self.graded
        description = (
            f"{measure}, mean over {len(values)} of {len(self.lists)} queries; undefined: "
            f"{len(self.lists) - len(included)} with {undefined}"
        )
        interval = mean_interval(values) if len(values) > 1 else None
        return build.result(metric, float(values.mean()), len(values), description, interval)


def ranked_lists(data: PairData) -> list[RankedList]:
    """Return every query of the data with its partners, in order of first appearance."""
    labels_of: dict[str, dict[str, list[float]]] = {}
    for row, (pair, label) in enumerate(zip(data.pairs(), data.labels, strict=True)):
        if label < 0:
            raise DataError(f"{data.source}: a ranking needs labels of 0 or larger; that of pair {row} is {label:g}.")
        # A sentence paired with itself counts once, not in both positions.
        for query, partner in dict.fromkeys((pair, pair[::-1])):
            labels_of.setdefault(query, {}).setdefault(partner, []).append(label)
    return [
        RankedList(query, list(partners), np.array([_average(labels) for labels in partners.values()]))
        for query, partners in labels_of.items()
        # Pairs count here, not partners: a repeated pair counts each time.
        if sum(map(len, partners.values())) >= FEWEST_PAIRS
    ]


def _average(labels: Iterable[float]) -> float:
    """Return the mean of the labels, without rounding errors if all are equal."""
    distinct = set(labels)
    if len(distinct) == 1:
        return distinct.pop()
    return fmean(labels)


SUITE = Suite(
    task=RankingTask,
    data="the scored sets of `sts`: one ranked list for each sentence with more than three pairs",
    figures="KCC (Kendall's tau), NDCG",
    metrics=("kcc", "ndcg"),
    takes_pairs=True,
)
