"""Measure what a new model changes: neighbours, scores, the threshold, and the texts that changed most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from samesense.choices import check_count
from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.inference.encode import encode_with_bar
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import blocks
from samesense.inference.search.mining import check_threshold, cosines_of
from samesense.metrics.classification import best_threshold, check_binary, precision_at, recall_at
from samesense.results.shown import Shown
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
    """The same threshold in both models: as many pairs reach it.

    Attributes:
        old: threshold of the old model.
        new: threshold of the new model; ``None`` where no pair, or every pair, reaches the old one, unless both models
            give the pairs the same scores.
        of: ``"pairs"`` that are labelled, or pairs of ``"neighbours"``.
        share: share of these pairs that reach the old threshold.
        precision: precision of the old and of the new model at their thresholds; ``None`` without labels, where no pair
            reaches them, or without a new threshold.
        recall: recall of both, likewise.
    """

    old: float
    new: float | None
    of: Literal["pairs", "neighbours"]
    share: float
    precision: tuple[float, float] | None = None
    recall: tuple[float, float] | None = None

    def lines(self) -> list[str]:
        """Return the threshold as lines of the report."""
        name = {"pairs": "labelled pairs", "neighbours": "pairs of neighbours"}[self.of]
        if self.new is None:
            count = "every one" if self.share else "none"
            return [f"threshold moved   {self.old:.4f} -> unknown, as {count} of the {name} reaches it"]
        lines = [
            f"threshold moved   {self.old:.4f} -> {self.new:.4f}, reached by {100 * self.share:.1f} % of the {name}"
        ]
        for label, figures in (("precision there", self.precision), ("recall there", self.recall)):
            if figures is not None:
                lines.append(f"{label:<18}{figures[0]:.3f} -> {figures[1]:.3f}")
        return lines


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
            old = self.threshold.old
            threshold = {**self.threshold._asdict(), "old": old if math.isfinite(old) else None}
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
            lines[2:2] = self.threshold.lines()
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
        pairs: pairs labelled 1 for a yes, 0 for a no. As many of them reach the new threshold as the old one, and the
            precision and recall of both are reported.
        threshold: threshold of the old model; with pairs, the default is that of best F1. Without pairs, as many pairs
            of neighbours reach the new threshold.

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
    first, second = _pairs_of_neighbours(sample, old_nearest, new_nearest)
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


def _pairs_of_neighbours(
    sample: Indices, old_nearest: Sequence[Indices], new_nearest: Sequence[Indices]
) -> tuple[Indices, Indices]:
    """Return the pairs of each sampled text with all that are near to it by either model, as two columns."""
    either = [np.union1d(old, new) for old, new in zip(old_nearest, new_nearest, strict=True)]
    return np.repeat(sample, [len(ids) for ids in either]), np.concatenate(either)


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
    check_count("top", top)
    check_count("queries", queries)
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
        before, after = scores
        moved = _with_equal_share(before, after, threshold)
        return Moved(threshold, moved, "neighbours", float((before >= threshold).mean()))
    labels = np.asarray(pairs.labels, dtype=np.float64)
    before = old.scores(pairs.pairs())
    after = new.scores(pairs.pairs())
    if threshold is None:
        threshold = best_threshold(before, labels, "f1", dividing=True)
    moved = _with_equal_share(before, after, threshold)
    share = float((before >= threshold).mean())
    if moved is None or not share:
        return Moved(threshold, moved, "pairs", share)
    return Moved(
        threshold,
        moved,
        "pairs",
        share,
        precision=(precision_at(before, labels, threshold), precision_at(after, labels, moved)),
        recall=(recall_at(before, labels, threshold), recall_at(after, labels, moved)),
    )


def _with_equal_share(before: Floats, after: Floats, threshold: float) -> float | None:
    """Return the threshold that as many scores ``after`` reach as scores ``before`` reach the given one.

    It divides the gap between the two scores around it as the given one does, so that models with nearly the same
    scores have nearly the same threshold. ``None`` if no score or every score reaches the given one: then there is no
    such gap.
    """
    if np.array_equal(before, after):
        return threshold
    count = int((before >= threshold).sum())
    if count in (0, len(before)):
        return None
    lower, upper = np.sort(before)[[-count - 1, -count]].astype(np.float64)
    new_lower, new_upper = np.sort(after)[[-count - 1, -count]].astype(np.float64)
    moved = new_lower + (new_upper - new_lower) * (threshold - lower) / (upper - lower)
    # A rounded result may not fall onto the lower score, which does not reach the threshold.
    return float(np.clip(moved, np.nextafter(new_lower, new_upper), new_upper))
