"""What all tasks share: the fields of a result that do not change within one evaluation, stated once."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from samesense.errors import DataError, ModelError
from samesense.metrics import PairStatistic, bootstrap_interval
from samesense.metrics.statistics import STATISTICS
from samesense.types import Evidence, EvidenceStatistic, Pair, Result, Scorer, Scores, TaskResult

SPLITS = ("train", "dev", "valid", "validation", "test")
"""Parts of a name, between dots, that name a split."""

SAMPLES = 1000
"""Resamples behind an interval."""


class Task(ABC):
    """One data set with one way of evaluating on it."""

    suite: str  # name of the suite, such as "sts"
    embeds: bool = False  # True if the candidate must have encode; else a score of pairs is enough
    dataset: str  # name of the data, such as "stsb.test"
    note: str = ""  # what the protocol of every result says of the data
    intervals: bool = True  # whether results have 95 % intervals

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """Return every text that will be encoded, so that those of several tasks can be encoded together."""

    def remark(self) -> str:
        """Return what a reader of the figures should know of the labels; nothing if there is nothing."""
        return ""

    @abstractmethod
    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return results and evidence; ModelError if scores or embeddings are not finite, or not one for each text."""

    def builder(self, candidate: Scorer, seconds: float | None) -> ResultBuilder:
        """Return what makes the results of a candidate that took ``seconds`` to score or encode, if it was measured."""
        return ResultBuilder(
            task=self.suite,
            dataset=self.dataset,
            split=split_of(self.dataset),
            model=candidate.name,
            protocol=in_words(candidate.protocol, self.note),
            seed=candidate.seed,
            seconds=seconds,
            intervals=self.intervals,
        )


@dataclass(frozen=True, kw_only=True)
class ResultBuilder:
    """One candidate on one data set; see :class:`~samesense.types.Result` for the fields."""

    task: str
    dataset: str
    split: str
    model: str
    protocol: str
    seed: int | None
    seconds: float | None
    intervals: bool = True

    def result(
        self,
        metric: str,
        value: float,
        n: int,
        how: str,
        interval: tuple[float, float] | None = None,
        subset: str = "all",
    ) -> Result:
        """Return one result; ``how`` ends its protocol."""
        low, high = (interval if self.intervals else None) or (None, None)
        protocol = in_words(self.protocol, how, f"95 % bootstrap, {SAMPLES} samples" if low is not None else "")
        own = {name: value for name, value in vars(self).items() if name != "intervals"} | {"protocol": protocol}
        return Result(**own, subset=subset, metric=metric, value=value, n=n, low=low, high=high)

    def resampled(self, metric: PairStatistic, values: Scores, labels: Scores, how: str, subset: str = "all") -> Result:
        """Return a figure of values and labels with its bootstrap interval, where that exists.

        DataError if the figure is undefined.
        """
        value = STATISTICS[metric].value(values, labels)
        interval: tuple[float, float] | None = None
        if self.intervals:
            try:
                interval = bootstrap_interval(values, labels, metric, samples=SAMPLES)
            except DataError:
                how += "; too few pairs for an interval"
        if interval is not None and interval[0] == interval[1]:
            interval = None
            how += "; no interval, as all resamples give the same"
        return self.result(metric, value, len(labels), how, interval, subset)

    def evidence(
        self,
        metric: str,
        values: Scores,
        examples: Sequence[Pair] | Sequence[str],
        labels: Scores | None = None,
        statistic: EvidenceStatistic = "spearman",
    ) -> Evidence:
        """Return what lies behind a result: a statistic of values and labels if there are labels, else a mean."""
        return Evidence(
            task=self.task,
            dataset=self.dataset,
            metric=metric,
            model=self.model,
            statistic="mean" if labels is None else statistic,
            values=values,
            labels=labels,
            examples=examples,
            seed=self.seed,
        )


def in_words(*parts: str) -> str:
    """Return the parts of a protocol that are not empty, as one text."""
    return "; ".join(part for part in parts if part)


def split_of(name: str) -> str:
    """Return the split that the name of a data set contains, or an empty text."""
    return next((part for part in name.split(".") if part in SPLITS), "")


def timed_scores(candidate: Scorer, pairs: Sequence[Pair]) -> tuple[Scores, float | None]:
    """Return the candidate's checked scores ``(n,)`` of the pairs ``(n,)``, and the seconds they took.

    Seconds are ``None`` where embeddings of some of the texts were remembered: what is left says nothing of the cost.
    """
    started = time.perf_counter()
    encoded = encodes_all(candidate, (text for pair in pairs for text in pair))
    scores = checked_scores(candidate.scores(pairs), pairs)
    seconds = time.perf_counter() - started
    return scores, seconds if encoded else None


def encodes_all(candidate: Scorer, texts: Iterable[str]) -> bool:
    """Encode texts where embeddings are remembered; return whether none of them was remembered before."""
    if not candidate.embeds:
        return True
    distinct = list(dict.fromkeys(texts))
    return candidate.fill(distinct) == len(distinct)


def checked_scores(scores: Scores, pairs: Sequence[Pair]) -> Scores:
    """Return the scores that a model gave for ``pairs`` ``(n,)`` as float64 ``(n,)``."""
    vector = np.asarray(scores, dtype=np.float64)
    if vector.shape != (len(pairs),):
        raise ModelError(
            f"There must be one score for each of {len(pairs)} pairs, got an array of shape {vector.shape}."
        )
    bad = ~np.isfinite(vector)
    if bad.any():
        first = int(np.argmax(bad))
        raise ModelError(
            f"Scores must be finite, and that of pair {first} is {vector[first]} "
            f"({int(bad.sum())} of {len(pairs)} are not finite)."
        )
    return vector
