"""The base class of tasks, and helpers to build their results and to check and time scores."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.errors import DataError, ModelError
from samesense.metrics import PairStatistic, bootstrap_interval
from samesense.metrics.geometry import unit_rows
from samesense.metrics.statistics import STATISTICS
from samesense.types import Evidence, EvidenceStatistic, Floats, Pair, Result, Scorer, Scores, TaskResult

SPLITS = ("train", "dev", "valid", "validation", "test")
"""Names of splits in the name of a data set, such as ``"stsb.test"``."""

SAMPLES = 1000
"""Number of bootstrap resamples of an interval."""

Outcome = TypeVar("Outcome")


class Task(ABC):
    """One data set with one way of evaluating models on it."""

    suite: str  # name of the suite, such as "sts"
    embeds: bool = False  # whether the candidate must have encode; otherwise scores of pairs are enough
    dataset: str  # name of the data, such as "stsb.test"
    note: str = ""  # remarks on the data in the protocol of every result
    intervals: bool = True  # whether results have 95 % intervals

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """Return every text that will be encoded, so that the texts of several tasks can be encoded together."""

    def remark(self) -> str:
        """Return a remark on the labels for readers of the figures; an empty string if there is none."""
        return ""

    @abstractmethod
    def evaluate(self, candidate: Scorer) -> TaskResult:
        """Return results and evidence; ModelError if scores or embeddings are not finite, or their number is wrong."""

    def check_embeds(self, candidate: Scorer) -> None:
        """Raise ModelError for a candidate without embeddings."""
        if not candidate.embeds:
            raise ModelError(
                f"Suite {self.suite} needs embeddings, and {candidate.name} only scores pairs. Leave it out here."
            )

    def builder(self, candidate: Scorer, seconds: float | None) -> ResultBuilder:
        """Return a builder of results for a candidate; ``seconds`` is the time to score or encode, if measured."""
        return ResultBuilder(
            task=self.suite,
            dataset=self.dataset,
            split=split_of(self.dataset),
            model=candidate.name,
            protocol=join_clauses(candidate.protocol, self.note),
            seed=candidate.seed,
            seconds=seconds,
            intervals=self.intervals,
        )


@dataclass(frozen=True, kw_only=True)
class ResultBuilder:
    """Builds the results of one candidate on one data set; see :class:`~samesense.types.Result` for the fields."""

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
        description: str,
        interval: tuple[float, float] | None = None,
        subset: str = "all",
    ) -> Result:
        """Return one result; its protocol ends with ``description``."""
        low, high = (interval if self.intervals else None) or (None, None)
        bootstrap = "" if low is None else f"95 % bootstrap, {SAMPLES} samples"
        protocol = join_clauses(self.protocol, description, bootstrap)
        fields = {name: value for name, value in vars(self).items() if name != "intervals"} | {"protocol": protocol}
        return Result(**fields, subset=subset, metric=metric, value=value, n=n, low=low, high=high)

    def resampled(
        self, metric: PairStatistic, values: Scores, labels: Scores, description: str, subset: str = "all"
    ) -> Result:
        """Return a statistic of values and labels with its bootstrap interval, if that exists.

        DataError if the figure is undefined.
        """
        value = STATISTICS[metric].value(values, labels)
        interval: tuple[float, float] | None = None
        if self.intervals:
            try:
                interval = bootstrap_interval(values, labels, metric, samples=SAMPLES)
            except DataError:
                description += "; too few pairs for an interval"
        if interval is not None and interval[0] == interval[1]:
            interval = None
            description += "; no interval, as all resamples give the same"
        return self.result(metric, value, len(labels), description, interval, subset)

    def evidence(
        self,
        metric: str,
        values: Scores,
        examples: Sequence[Pair] | Sequence[str],
        labels: Scores | None = None,
        statistic: EvidenceStatistic = "spearman",
    ) -> Evidence:
        """Return the evidence of a result: values and labels for a statistic, or without labels values for a mean."""
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


def join_clauses(*clauses: str) -> str:
    """Return the non-empty clauses of a protocol as one text."""
    return "; ".join(clause for clause in clauses if clause)


def split_of(name: str) -> str:
    """Return the split in the name of a data set, or an empty string."""
    return next((piece for piece in name.split(".") if piece in SPLITS), "")


def timed_scores(candidate: Scorer, pairs: Sequence[Pair]) -> tuple[Scores, float | None]:
    """Return the candidate's checked scores ``(n,)`` of the pairs ``(n,)``, and the seconds of :func:`timed`."""
    texts = (text for pair in pairs for text in pair)
    return timed(candidate, texts, lambda: checked_scores(candidate.scores(pairs), pairs))


def timed(candidate: Scorer, texts: Iterable[str], work: Callable[[], Outcome]) -> tuple[Outcome, float | None]:
    """Return what some work with a candidate comes to, and the seconds that it took with the encoding of its texts.

    Seconds are ``None`` if some of the embeddings were cached, because the time is then not the cost of the model.
    """
    started = time.perf_counter()
    encoded = True
    # Within the timing: the work alone would be look-ups in the cache.
    if candidate.embeds:
        distinct = list(dict.fromkeys(texts))
        encoded = candidate.fill(distinct) == len(distinct)
    outcome = work()
    seconds = time.perf_counter() - started
    return outcome, seconds if encoded else None


def unit_embeddings(candidate: Scorer, texts: Sequence[str]) -> Floats:
    """Return a model's embeddings ``(n, dim)`` of texts ``(n,)``, of unit length; ModelError if one is not usable."""
    return unit_rows(nonzero_rows(checked_rows(np.asarray(candidate.encode(texts)), texts), texts))


def checked_scores(scores: Scores, pairs: Sequence[Pair]) -> Scores:
    """Return a model's scores of ``pairs`` ``(n,)`` as float64 ``(n,)``; ModelError if they are not finite."""
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
