"""What a change of the model changes: neighbours, scores, the threshold, and the texts that moved most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import blocks
from samesense.inference.search.mining import check_threshold, cosines_of
from samesense.inference.stream import encode_with_bar
from samesense.metrics.classification import best_threshold, check_binary, precision_at, threshold_at
from samesense.results import Shown
from samesense.types import Embeddings, Floats, Indices

SHOWN = 10
"""Texts that changed most."""


class Changed(NamedTuple):
    """A text whose neighbours changed.

    Attributes:
        text: it.
        overlap: share of its nearest texts that both models have.
        before: its nearest text by the old model.
        after: the same by the new one.
    """

    text: str
    overlap: float
    before: str
    after: str


class Moved(NamedTuple):
    """A threshold in both models.

    Attributes:
        old: of the old model.
        new: that of the new one at the same precision, or that as many pairs reach; infinity if there is none.
        of: ``"precision"`` on labelled pairs, or ``"share"`` of the pairs of neighbours.
        precision: that precision, or share.
    """

    old: float
    new: float
    of: Literal["precision", "share"]
    precision: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Drift(Shown):
    """What is other in a new model. Prints as a table.

    Attributes:
        overlap: share of the nearest texts that both models have, mean over the queries.
        moved: mean distance of the two cosines, over each query and its nearest texts by either model.
        shift: mean of the new cosine less the old one, over the same.
        threshold: where a threshold moved to, if one was asked for.
        changed: the texts whose neighbours changed most; none where all stayed.
        texts: how many different texts there were.
        queries: how many of them were asked for.
        top: nearest texts of each.
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
        """Share of the nearest texts that are others now: 1 less the overlap."""
        return 1 - self.overlap

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types; a threshold above or below all scores is ``None``."""
        threshold = None
        if self.threshold is not None:
            old, new = (value if math.isfinite(value) else None for value in self.threshold[:2])
            threshold = {**self.threshold._asdict(), "old": old, "new": new}
        changed = [change._asdict() for change in self.changed]
        return {"drift": self.drift, **asdict(self), "threshold": threshold, "changed": changed}

    def __str__(self) -> str:
        """Return it as lines of text."""
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


def drift(
    old: Model,
    new: Model,
    texts: Sequence[str],
    *,
    top: int = 10,
    queries: int = 1000,
    pairs: PairData | None = None,
    threshold: float | None = None,
) -> Drift:
    """Compare what two models make of the same texts.

    Args:
        old: the model in use.
        new: the one that is to follow.
        texts: such as they are used on; equal ones count once.
        top: nearest texts that are compared.
        queries: texts whose neighbours are looked for among all, sampled with a fixed seed.
        pairs: labelled 1 for a yes, 0 for a no, on which the new threshold has the precision of the old one.
        threshold: of the old model; with pairs, by default that of best F1. Without pairs, the new one is that which as
            many of the pairs of neighbours reach.

    Raises:
        ConfigError: if ``top`` or the threshold is out of range, or labels are graded.
        DataError: if there are not three different texts.
        ModelError: if a vector is not finite or all zeros.
    """
    check_drift(top, queries, pairs, threshold)
    once = list(dict.fromkeys(texts))
    if len(once) < 3:
        raise DataError(f"Neighbours are compared among at least 3 different texts; received {len(once)}.")
    if top >= len(once) - 1:
        raise DataError(
            f"The {top} nearest of {len(once)} texts are all there are, whatever the model. Give more texts, or a "
            "smaller `top`."
        )
    sample = np.sort(np.random.default_rng(0).choice(len(once), size=min(queries, len(once)), replace=False))
    before, after = (unit_rows(encode_with_bar(model, once, normalize=True)) for model in (old, new))
    theirs = _nearest(before, sample, top)
    ours = _nearest(after, sample, top)
    overlaps = np.array([len(np.intersect1d(a, b)) / top for a, b in zip(theirs, ours, strict=True)])
    either = [np.union1d(a, b) for a, b in zip(theirs, ours, strict=True)]
    first = np.repeat(sample, [len(ids) for ids in either])
    second = np.concatenate(either)
    scores = cosines_of(before, first, second), cosines_of(after, first, second)
    worst = [index for index in np.argsort(overlaps, kind="stable")[:SHOWN] if overlaps[index] < 1]
    changed = (
        Changed(once[sample[number]], float(overlaps[number]), once[theirs[number][0]], once[ours[number][0]])
        for number in worst
    )
    return Drift(
        overlap=float(overlaps.mean()), moved=float(np.abs(scores[1] - scores[0]).mean()),
        shift=float((scores[1] - scores[0]).mean()), changed=tuple(changed), texts=len(once), queries=len(sample),
        top=top, threshold=_threshold(old, new, pairs, threshold, scores),
    )  # fmt: skip


def check_drift(top: int, queries: int, pairs: PairData | None, threshold: float | None) -> None:
    """Refuse what :func:`drift` cannot be asked for, before anything is encoded."""
    if top < 1 or queries < 1:
        raise ConfigError(f"One neighbour and one query are the least; received `top` {top} and `queries` {queries}.")
    if threshold is not None:
        check_threshold(threshold)
    if pairs is not None:
        if pairs.graded:
            raise ConfigError(f"{pairs.name}: pairs are labelled 1 (yes) or 0 (no) here; received graded ones.")
        check_binary(pairs.labels)


def _nearest(vectors: Embeddings, sample: Indices, top: int) -> list[Indices]:
    """Return for each sampled row its nearest others, the nearest first."""
    best = [Best(top + 1) for _ in sample]
    nearest(vectors[sample], lambda: blocks(vectors), best, top + 1)
    return [closest.ids[closest.ids != row][:top] for row, closest in zip(sample, best, strict=True)]


def _threshold(
    old: Model, new: Model, pairs: PairData | None, threshold: float | None, scores: tuple[Floats, Floats]
) -> Moved | None:
    if pairs is None:
        if threshold is None:
            return None
        fraction = float((scores[0] >= threshold).mean())
        limit = float(np.quantile(scores[1], 1 - fraction, method="higher")) if fraction else float("inf")
        return Moved(threshold, limit, "share", fraction)
    right = np.asarray(pairs.labels, dtype=np.float64)
    before = old.scores(pairs.pairs())
    after = new.scores(pairs.pairs())
    limit = best_threshold(before, right, "f1") if threshold is None else threshold
    precision = (
        precision_at(before, right, limit) if (before >= limit).any() else 0.0
    )  # of no pair that is called the same
    moved = threshold_at(after, right, precision=precision) if precision else float("inf")
    return Moved(limit, moved, "precision", precision)
