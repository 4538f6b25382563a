"""Measure what a new model changes: neighbours, scores, the threshold, and the texts that changed most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.inference.encode import encode_with_bar
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import blocks
from samesense.inference.search.mining import check_threshold, cosines_of
from samesense.metrics.classification import best_threshold, check_binary, precision_at, threshold_at
from samesense.results import Shown
from samesense.types import Embeddings, Floats, Indices

SHOWN = 10
"""Number of texts that changed most in a report."""


class Changed(NamedTuple):
    """A text whose neighbours changed.

    Attributes:
        text: the text.
        overlap: share of its nearest neighbours that both models have in common.
        before: its nearest neighbour by the old model.
        after: its nearest neighbour by the new model.
    """

    text: str
    overlap: float
    before: str
    after: str


class Moved(NamedTuple):
    """The same threshold in both models.

    Attributes:
        old: threshold of the old model.
        new: threshold of the new model with the same precision, or the same share of pairs above it; infinity if there
            is none.
        of: ``"precision"`` on labelled pairs, or ``"share"`` of the pairs of neighbours.
        precision: that precision or share.
    """

    old: float
    new: float
    of: Literal["precision", "share"]
    precision: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Drift(Shown):
    """The differences of a new model from the old one. Prints as a table.

    Attributes:
        overlap: share of the nearest neighbours that both models have in common, mean over the queries.
        moved: mean absolute difference of the two cosines, over each query and its neighbours by either model.
        shift: mean of the new cosine minus the old one, over the same pairs.
        threshold: the threshold in both models, if one was requested.
        changed: the texts whose neighbours changed most; empty if none changed.
        texts: number of distinct texts.
        queries: number of them used as queries.
        top: number of nearest neighbours of each query.
    """

    overlap: float
    moved: float
    shift: float
    threshold: Moved | None
    changed: tuple[Changed, ...]
    texts: int
    queries: int
    top: int

    @property
    def drift(self) -> float:
        """Share of the nearest neighbours that have changed: 1 minus the overlap."""
        return 1 - self.overlap

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types; an infinite threshold is ``None``."""
        threshold = None
        if self.threshold is not None:
            old, new = (value if math.isfinite(value) else None for value in self.threshold[:2])
            threshold = {**self.threshold._asdict(), "old": old, "new": new}
        changed = [change._asdict() for change in self.changed]
        return {"drift": self.drift, **asdict(self), "threshold": threshold, "changed": changed}

    def __str__(self) -> str:
        """Return the report as lines of text."""
        lines = [
            f"neighbours kept   {100 * self.overlap:.1f} %",
            f"scores moved by   {self.moved:.4f}, {self.shift:+.4f} in the mean",
            f"measured on       the {self.top} nearest of {self.queries} of {self.texts} texts",
        ]
        if self.threshold is not None:
            old, new, of, value = self.threshold
            kind = "precision" if of == "precision" else "share of neighbours"
            lines.insert(2, f"threshold moved   {old:.4f} -> {new:.4f} at the {kind} {value:.3f}")
        for change in self.changed:
            lines += ["", f"{change.text}", f"  {change.overlap:.2f} kept; {change.before!r} -> {change.after!r}"]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The neighbours of the queries by both models.

    Attributes:
        texts: the queries ``(queries,)``.
        before: their unit vectors by the old model ``(queries, dim)``.
        after: their unit vectors by the new model ``(queries, dim)``.
        overlaps: share of the nearest neighbours of each that both models have in common ``(queries,)``.
        nearest_before: the nearest neighbour of each by the old model.
        nearest_after: the nearest neighbour of each by the new model.
    """

    texts: list[str]
    before: Embeddings
    after: Embeddings
    overlaps: Floats
    nearest_before: list[str]
    nearest_after: list[str]


def drift(
    old: Model,
    new: Model,
    texts: Sequence[str],
    *,
    top: int = 10,
    queries: int = 1000,
    pairs: PairData | None = None,
    threshold: float | None = None,
) -> tuple[Drift, Neighbours]:
    """Compare the vectors and scores of two models on the same texts; return the report and the neighbours behind it.

    Args:
        old: the model in use.
        new: the model that may replace it.
        texts: typical texts; duplicates count once.
        top: number of nearest neighbours that are compared.
        queries: number of texts whose neighbours are searched for among all texts, sampled with a fixed seed.
        pairs: pairs labelled 1 for a yes, 0 for a no, on which the new threshold has the precision of the old one.
        threshold: threshold of the old model; with pairs, the default is that of best F1. Without pairs, the new
            threshold is the one that the same share of the pairs of neighbours reaches.

    Raises:
        ConfigError: if ``top`` or the threshold is out of range, or labels are graded.
        DataError: if there are fewer than three different texts.
        ModelError: if a vector is not finite or all zeros.
    """
    check_drift(top, queries, pairs, threshold)
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < 3:
        raise DataError(f"Neighbours are compared among at least 3 different texts; received {len(distinct)}.")
    if top >= len(distinct) - 1:
        raise DataError(
            f"The {top} nearest of {len(distinct)} texts are all there are, whatever the model. Give more texts, or a "
            "smaller `top`."
        )
    size = min(queries, len(distinct))
    sample = np.sort(np.random.default_rng(0).choice(len(distinct), size=size, replace=False))
    before = unit_rows(encode_with_bar(old, distinct, normalize=True))
    after = unit_rows(encode_with_bar(new, distinct, normalize=True))
    old_nearest = _nearest(before, sample, top)
    new_nearest = _nearest(after, sample, top)
    overlaps = np.array([len(np.intersect1d(a, b)) / top for a, b in zip(old_nearest, new_nearest, strict=True)])
    either = [np.union1d(a, b) for a, b in zip(old_nearest, new_nearest, strict=True)]
    first = np.repeat(sample, [len(ids) for ids in either])
    second = np.concatenate(either)
    old_scores = cosines_of(before, first, second)
    new_scores = cosines_of(after, first, second)
    neighbours = Neighbours(
        texts=[distinct[row] for row in sample],
        before=before[sample],
        after=after[sample],
        overlaps=overlaps,
        nearest_before=[distinct[rows[0]] for rows in old_nearest],
        nearest_after=[distinct[rows[0]] for rows in new_nearest],
    )
    report = Drift(
        overlap=float(overlaps.mean()),
        moved=float(np.abs(new_scores - old_scores).mean()),
        shift=float((new_scores - old_scores).mean()),
        changed=_changed_most(neighbours),
        texts=len(distinct),
        queries=len(sample),
        top=top,
        threshold=_threshold(old, new, pairs, threshold, (old_scores, new_scores)),
    )
    return report, neighbours


def _changed_most(neighbours: Neighbours) -> tuple[Changed, ...]:
    """Return the texts whose neighbours changed most, of which some did."""
    overlaps = neighbours.overlaps
    worst = [index for index in np.argsort(overlaps, kind="stable")[:SHOWN] if overlaps[index] < 1]
    return tuple(
        Changed(
            text=neighbours.texts[index],
            overlap=float(overlaps[index]),
            before=neighbours.nearest_before[index],
            after=neighbours.nearest_after[index],
        )
        for index in worst
    )


def check_drift(top: int, queries: int, pairs: PairData | None, threshold: float | None) -> None:
    """Raise ConfigError for invalid arguments of :func:`drift`, before anything is encoded."""
    if top < 1 or queries < 1:
        raise ConfigError(f"One neighbour and one query are the least; received `top` {top} and `queries` {queries}.")
    if threshold is not None:
        check_threshold(threshold)
    if pairs is not None:
        if pairs.graded:
            raise ConfigError(f"{pairs.name}: pairs are labelled 1 (yes) or 0 (no) here; received graded ones.")
        check_binary(pairs.labels)


def _nearest(vectors: Embeddings, sample: Indices, top: int) -> list[Indices]:
    """Return the ``top`` nearest other rows of each sampled row, the nearest first."""
    # One more than asked for, as each row finds itself.
    best = [Best(top + 1) for _ in sample]
    nearest(vectors[sample], lambda: blocks(vectors), best, top + 1)
    return [closest.ids[closest.ids != row][:top] for row, closest in zip(sample, best, strict=True)]


def _threshold(
    old: Model, new: Model, pairs: PairData | None, threshold: float | None, scores: tuple[Floats, Floats]
) -> Moved | None:
    """Return the threshold in both models, by labelled pairs or by the cosines of neighbours, if either is possible."""
    if pairs is None:
        if threshold is None:
            return None
        fraction = float((scores[0] >= threshold).mean())
        if fraction:
            limit = float(np.quantile(scores[1], 1 - fraction, method="higher"))
        else:
            # The old threshold leaves out all of these pairs, and so must the new one.
            limit = float("inf")
        return Moved(threshold, limit, "share", fraction)
    right = np.asarray(pairs.labels, dtype=np.float64)
    before = old.scores(pairs.pairs())
    after = new.scores(pairs.pairs())
    limit = threshold if threshold is not None else best_threshold(before, right, "f1")
    # Precision is undefined if no pair reaches the threshold.
    precision = 0.0
    if (before >= limit).any():
        precision = precision_at(before, right, limit)
    if precision:
        moved = threshold_at(after, right, precision=precision)
    else:
        moved = float("inf")
    return Moved(limit, moved, "precision", precision)
