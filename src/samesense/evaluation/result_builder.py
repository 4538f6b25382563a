"""What all rows and all evidence of one judgement share, said once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from samesense.evaluation.checks import checked_scores
from samesense.types import Candidate, Evidence, Pair, Result, Scores

SPLITS = ("train", "dev", "valid", "validation", "test")
"""Parts of a name, between dots, that name a split."""

SAMPLES = 1000
"""Resamples behind an interval."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One candidate on one data set.

    Attributes:
        task: the suite, such as ``"ranking"``.
        dataset: name of the data, such as ``"stsb.test"``.
        candidate: what is judged.
        note: what the protocol of every row says of the data.
        seconds: wall time of scoring or encoding.
    """

    task: str
    dataset: str
    candidate: Candidate
    note: str
    seconds: float

    def result(
        self, metric: str, value: float, n: int, how: str, interval: tuple[float, float] | None = None
    ) -> Result:
        """Return one row about the whole of the data; ``how`` ends its protocol."""
        low, high = interval or (None, None)
        parts = (self.candidate.protocol, self.note, how, f"95 % bootstrap, {SAMPLES} samples" if interval else "")
        return Result(
            task=self.task,
            dataset=self.dataset,
            split=split_of(self.dataset),
            subset="all",
            metric=metric,
            value=value,
            n=n,
            protocol="; ".join(part for part in parts if part),
            model=self.candidate.name,
            low=low,
            high=high,
            seed=self.candidate.seed,
            seconds=self.seconds,
        )

    def evidence(
        self, metric: str, values: Scores, examples: Sequence[Pair] | Sequence[str], labels: Scores | None = None
    ) -> Evidence:
        """Return what lies behind a row: a rank correlation if there are labels, else a mean."""
        return Evidence(
            task=self.task,
            dataset=self.dataset,
            metric=metric,
            model=self.candidate.name,
            statistic="mean" if labels is None else "spearman",
            values=values,
            labels=labels,
            examples=examples,
            seed=self.candidate.seed,
        )


def timed_scores(candidate: Candidate, pairs: Sequence[Pair]) -> tuple[Scores, float]:
    """Return the candidate's checked scores ``(n,)`` of the pairs ``(n,)``, and the seconds they took.

    Raises:
        ModelError: if there is not one finite score a pair.
    """
    started = time.perf_counter()
    scores = checked_scores(candidate.score(pairs), pairs)
    return scores, time.perf_counter() - started


def split_of(name: str) -> str:
    """Return the split that the name of a data set says, or an empty text."""
    return next((part for part in name.split(".") if part in SPLITS), "")
