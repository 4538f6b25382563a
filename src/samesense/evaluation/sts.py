"""Semantic textual similarity: do the scores of a model order pairs as people do?"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from samesense.data import PairData
from samesense.data.conventions.numbers import number_text
from samesense.errors import DataError
from samesense.evaluation.suite import Average, Suite
from samesense.evaluation.task import ResultBuilder, Task, timed_scores
from samesense.metrics import Statistic, bootstrap_interval
from samesense.metrics.correlation import CORRELATIONS, spearman
from samesense.metrics.inputs import check_correlates
from samesense.results.results import WHOLE_SUBSETS, Results
from samesense.types import Pair, Result, Scorer, Scores, TaskResult

logger = logging.getLogger(__name__)

REVERSED = -0.3
"""Spearman below which labels look reversed. Hard pairs, as of antonyms or PAWS, bring it to about 0."""

REVERSED_LEVEL = 0.99
"""Confidence that Spearman is below 0 at all, before labels are called reversed."""

FEWEST_REVERSED = 20
"""Pairs from which on labels may look reversed."""

MOST_SUBSETS = 30
"""Most subsets; a column with more values is not one of subsets but, say, of identifiers."""


class StsTask(Task):
    """Spearman and Pearson over all pairs, by subset, and averaged over subsets.

    Subset ``"all"`` is one correlation over all pairs. With two subsets or more there is also one row for each, in
    their order, ``"mean"`` (each subset counts the same) and ``"wmean"`` (each pair counts the same). The three differ,
    so compare only figures of the same kind. A subset with an undefined correlation has no row and is left out of the
    means, whose protocol gives the number of subsets. Subsets are ignored if there are more than 30; a pair with an
    empty subset name counts in ``"all"`` only. ``intervals`` adds 95 % intervals to ``"all"`` and to each subset.
    """

    suite = "sts"

    def __init__(self, data: PairData, *, dataset: str = "", note: str = "", intervals: bool = True) -> None:
        """Check the labels, of any kind and scale; DataError if no scores can correlate with them."""
        check_inputs(data.pairs(), data.labels, data.subsets)
        self.data = data
        self.note = note
        self.intervals = intervals
        self.dataset = dataset or data.name

    def texts(self) -> Iterator[str]:
        """Return the sentences of all pairs."""
        yield from self.data.sentences1
        yield from self.data.sentences2

    def remark(self) -> str:
        """Return the highest possible Spearman for yes/no labels; see :func:`best_spearman`."""
        if self.data.kind != "binary":
            return ""
        best = best_spearman(self.data.labels)
        yes = int(sum(self.data.labels))
        return (
            f"yes/no labels: without equal scores, Spearman is at most {100 * best:.1f} here ({yes} of "
            f"{len(self.data)} are yes)"
        )

    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return ``spearman`` and ``pearson``, and as evidence scores and labels of Spearman over ``"all"``."""
        pairs = self.data.pairs()
        scores, seconds = timed_scores(candidate, pairs)
        build = self.builder(candidate, seconds)
        labels = np.asarray(self.data.labels, dtype=np.float64)
        results = correlation_results(build, scores, labels, self._subsets())
        return TaskResult(results, [build.evidence("spearman", scores, pairs, labels)])

    def _subsets(self) -> Sequence[str] | None:
        """Return the name of the subset of each pair."""
        return self.data.subsets


def evaluate_pairs(model: Scorer, data: PairData, *, intervals: bool = True) -> Results:
    """Return Spearman and Pearson of a model's scores with the labels, over all pairs and by subset.

    DataError if no scores can correlate with the labels, or all scores are equal; ModelError if there is not one finite
    score for each pair.
    """
    return Results(StsTask(data, intervals=intervals).evaluate(model).results)


def warn_of_reversed_labels(model: Scorer, data: PairData, scores: Scores) -> None:
    """Warn if labels look reversed; see :func:`describe_reversed_labels`."""
    if message := describe_reversed_labels(model, data, scores):
        logger.warning(message)


def describe_reversed_labels(model: Scorer, data: PairData, scores: Scores) -> str:
    """Say that labels fall where the scores rise, as distances do, and how to turn them round; ``""`` if they do not.

    Only cosines of embeddings are trusted: the scores of a cross-encoder or of a function may be reversed themselves.
    """
    if not model.embeds or len(data) < FEWEST_REVERSED:
        return ""
    value = spearman(scores, data.labels)
    if value >= REVERSED:
        return ""
    _, high = bootstrap_interval(scores, data.labels, "spearman", level=REVERSED_LEVEL)
    if high >= 0:
        return ""
    return (
        f"{data.name}: the labels look reversed: they fall where the cosines of {model.name} rise (Spearman "
        f"{100 * value:.1f} on {len(data):,} pairs). A label must be larger the more alike two texts are; "
        f"{_describe_reversal(data)}"
    )


def _describe_reversal(data: PairData) -> str:
    """Say how labels are turned round."""
    if data.kind == "triplet":
        return "if positives and negatives are exchanged, exchange their columns"
    if data.kind == "binary":
        return f"if yes and no are exchanged in {data.label_column}, exchange them"
    if data.kind == "nli":
        return f"if {data.label_column} has its classes in another order, give it by `label_order`"
    if data.scale is None:
        return f"if these are distances, write - {data.label_column} in their place"
    return f"if these are distances, write {number_text(sum(data.scale))} - {data.label_column} in their place"


def best_spearman(labels: Sequence[float]) -> float:
    """Return Spearman of a perfect ranking without ties with labels ``(n,)``; ties among the labels keep it below 1.

    Only scores with the same ties as the labels could reach more.
    """
    return spearman(np.arange(len(labels)), np.sort(labels))


def correlation_results(build: ResultBuilder, scores: Scores, labels: Scores, subsets: Sequence[str] | None) -> Results:
    """Return the rows that :class:`StsTask` describes; scores and labels are ``(n,)``."""
    members_of = subset_members(subsets)
    results = Results()
    for metric in CORRELATIONS:
        results.append(_correlation(build, metric, "all", scores, labels))
        defined: list[Result] = []
        for name, members in members_of.items():
            try:
                defined.append(_correlation(build, metric, name, scores[members], labels[members]))
            except DataError:
                continue  # undefined, so it has no row; the protocol of the means has the number of subsets
        results += defined
        if defined:
            values = [row.value for row in defined]
            sizes = [row.n for row in defined]
            coverage = f"over {len(defined)} of {len(members_of)} subsets"
            mean = float(np.mean(values))
            weighted = float(np.average(values, weights=sizes))
            results.append(build.result(metric, mean, sum(sizes), f"mean {coverage}", subset="mean"))
            results.append(
                build.result(metric, weighted, sum(sizes), f"mean weighted by size {coverage}", subset="wmean")
            )
    return results


def _correlation(build: ResultBuilder, metric: Statistic, subset: str, scores: Scores, labels: Scores) -> Result:
    """Return one correlation, with its interval if that exists."""
    description = "all pairs" if subset == "all" else "pairs of the subset"
    return build.resampled(metric, scores, labels, description, subset)


def check_inputs(pairs: Sequence[Pair], labels: Sequence[float], subsets: Sequence[str] | None) -> None:
    """Raise DataError before any model runs, if no scores can correlate with these labels."""
    if len(labels) != len(pairs):
        raise DataError(f"There must be one label for each pair, got {len(labels)} labels and {len(pairs)} pairs.")
    if subsets is not None and len(subsets) != len(pairs):
        raise DataError(f"There must be one subset for each pair, got {len(subsets)} and {len(pairs)} pairs.")
    # Any scores without ties do, as only the labels are in question.
    check_correlates(np.arange(len(pairs)), labels)
    # Called only to raise for a reserved name.
    subset_members(subsets)


def subset_members(subsets: Sequence[str] | None) -> dict[str, npt.NDArray[np.intp]]:
    """Return the positions of the pairs of each subset; nothing if there are not 2 to 30 subsets.

    Subsets are in order of first appearance, positions ascend; a pair with an empty name is in no subset.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(subsets or ()):
        if name:
            members.setdefault(name, []).append(index)
    if not 2 <= len(members) <= MOST_SUBSETS:
        return {}
    reserved = [name for name in WHOLE_SUBSETS if name in members]
    if reserved:
        raise DataError(f"No subset may be named {reserved[0]!r}, which stands for all of the data. Rename it.")
    return {name: np.array(rows, dtype=np.intp) for name, rows in members.items()}


SUITE = Suite(
    task=StsTask,
    data="STS12 to STS16, STS-B, SICK-R; ATEC, BQ, LCQMC, PAWSX, Chinese STS-B; any scored pairs",
    figures="Spearman, Pearson: all, mean, wmean and each subset",
    metrics=("spearman",),
    averages=(
        Average(
            "sts-avg",
            "spearman",
            ("sts12.test", "sts13.test", "sts14.test", "sts15.test", "sts16.test", "stsb.test", "sickr.test"),
        ),
        Average("sts-zh-avg", "spearman", ("atec.test", "bq.test", "lcqmc.test", "pawsx.test", "stsb-zh.test")),
    ),
    takes_pairs=True,
)
