"""Semantic textual similarity: do the scores of a model order pairs as people do?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, DataError
from samesense.evaluation.checks import check_inputs, checked_scores, subset_members
from samesense.evaluation.result_builder import SAMPLES
from samesense.metrics import Statistic, bootstrap_interval, pearson, spearman
from samesense.types import Pair, Result, Score, Scores

CORRELATIONS = {"spearman": spearman, "pearson": pearson}
"""Every metric of this task by name."""


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What is the same in every row of one evaluation."""

    dataset: str
    split: str
    model: str
    protocol: str
    seed: int | None
    intervals: bool
    seconds: float


def evaluate_sts(  # noqa: PLR0913 - each names one part of the result
    score: Score,
    pairs: Sequence[Pair],
    labels: Sequence[float],
    *,
    dataset: str,
    split: str = "",
    subsets: Sequence[str] | None = None,
    model: str = "",
    protocol: str = "cosine",
    seed: int | None = None,
    intervals: bool = True,
    metrics: Sequence[Statistic] = ("spearman", "pearson"),
) -> list[Result]:
    """Correlate the scores of all pairs with their labels.

    Subset ``"all"`` is one correlation over everything. With two subsets or more there is also one row for each,
    ``"mean"`` (each subset counts the same) and ``"wmean"`` (each pair counts the same). These three differ, so
    compare like with like. A subset whose correlation is undefined has no row and no part in the means, and the
    protocol of the means says over how many subsets they were taken. Subsets are ignored if there are more than 30;
    a pair with an empty subset name counts in ``"all"`` only.

    Args:
        score: pairs in, one number a pair out; larger is more similar.
        pairs: the pairs ``(n,)``.
        labels: the reference similarity of each pair ``(n,)``.
        dataset: name of the data, for the results.
        split: name of the split, for the results.
        subsets: name of the part that each pair belongs to ``(n,)``.
        model: name of the model, for the results.
        protocol: how the score is made, for the results.
        seed: seed of the training run, for the results; resampling has its own.
        intervals: whether to add 95 % intervals to ``"all"`` and to each subset.
        metrics: the correlations to compute.

    Returns:
        For each metric: ``"all"``, the subsets by first appearance, ``"mean"``, ``"wmean"``.

    Raises:
        DataError: if lengths differ, a label is not finite, or the correlation over all pairs is undefined.
        ModelError: if the score gives another number of scores, or one that is not finite.
        ConfigError: if a metric is unknown.
    """
    for metric in metrics:
        if metric not in CORRELATIONS:
            raise ConfigError(f"The metrics must be among {', '.join(CORRELATIONS)}; got {metric!r}.")
    check_inputs(pairs, labels, subsets)
    parts = subset_members(subsets)
    started = time.perf_counter()
    scores = checked_scores(score(pairs), pairs)
    run = _Run(
        dataset=dataset,
        split=split,
        model=model,
        protocol=protocol,
        seed=seed,
        intervals=intervals,
        seconds=time.perf_counter() - started,
    )
    gold = np.asarray(labels, dtype=np.float64)
    return [row for metric in metrics for row in _rows(run, metric, scores, gold, parts)]


def _rows(
    run: _Run,
    metric: Statistic,
    scores: Scores,
    labels: Scores,
    parts: Mapping[str, npt.NDArray[np.intp]],
) -> list[Result]:
    """Return all rows of one metric."""
    rows = [_row(run, metric, "all", scores, labels)]
    defined: list[Result] = []
    for name, members in parts.items():
        try:
            defined.append(_row(run, metric, name, scores[members], labels[members]))
        except DataError:
            continue  # undefined here: absent, and the protocol of the means says so
    rows += defined
    if defined:
        values, sizes = [row.value for row in defined], [row.n for row in defined]
        taken = f"over {len(defined)} of {len(parts)} subsets"
        mean, weighted = float(np.mean(values)), float(np.average(values, weights=sizes))
        rows.append(_result(run, metric, "mean", mean, sum(sizes), f"mean {taken}"))
        rows.append(_result(run, metric, "wmean", weighted, sum(sizes), f"mean weighted by size {taken}"))
    return rows


def _row(run: _Run, metric: Statistic, subset: str, scores: Scores, labels: Scores) -> Result:
    """Return one correlation, with its interval where that exists."""
    value = CORRELATIONS[metric](scores, labels)
    note = "all pairs" if subset == "all" else "pairs of the subset"
    interval: tuple[float, float] | None = None
    if run.intervals:
        try:
            interval = bootstrap_interval(scores, labels, metric, samples=SAMPLES)
            note += f"; 95 % bootstrap, {SAMPLES} samples"
        except DataError:
            note += "; too few pairs for an interval"
    return _result(run, metric, subset, value, len(labels), note, interval)


def _result(
    run: _Run, metric: str, subset: str, value: float, n: int, note: str, interval: tuple[float, float] | None = None
) -> Result:
    low, high = interval or (None, None)
    return Result(
        task="sts",
        dataset=run.dataset,
        split=run.split,
        subset=subset,
        metric=metric,
        value=value,
        n=n,
        protocol=f"{run.protocol}; {note}" if run.protocol else note,
        model=run.model,
        low=low,
        high=high,
        seed=run.seed,
        seconds=run.seconds,
    )
