"""Which batches teach: those in which a loss has something to compare. Known from texts and labels, without a model.

A batch of one pair, one positive that all anchors have, or one label only: the loss of such a batch is constant, and a
run of them ends as it began. Texts count as one whatever their case and spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from samesense.data.pairs.keys import Keys, pair_keys
from samesense.types import Floats, Indices

MOST_ROWS = 50_000
"""Rows of an epoch that are put into batches to be looked at."""


@dataclass(frozen=True)
class Batch:
    """What a loss is given, as numbers.

    Attributes:
        texts: keys of the texts ``(columns, rows)``, equal for equal texts.
        labels: ``(rows,)`` where the loss takes any.
        settings: of the loss.
    """

    texts: Keys
    labels: Floats | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts.T)


@dataclass(frozen=True)
class Lesson:
    """What a batch must have for a loss to learn from it.

    Attributes:
        teaches: whether a batch has it.
        lacking: what batches are like that have it not, in words behind their share.
        fix: what gives it to them.
    """

    teaches: Callable[[Batch], bool]
    lacking: str
    fix: str


def has_two_texts(batch: Batch) -> bool:
    """Return whether any pair is of two texts: the cosine of a text with itself is always 1."""
    return bool((batch.texts[0] != batch.texts[1]).any())


def has_rows(batch: Batch) -> bool:
    """Return whether there is any row."""
    return len(batch) > 0


def has_order(batch: Batch) -> bool:
    """Return whether any label is higher than another by more than the margin."""
    if batch.labels is None or not len(batch):
        return False
    return bool(batch.labels.max() - batch.labels.min() > batch.settings.get("margin", 0.0))


def has_ordered_texts(batch: Batch) -> bool:
    """Return whether labels of two different pairs differ: the cosine of a pair cannot be below itself.

    All pairs of one text twice are as one: their cosine is 1.
    """
    if not has_order(batch) or batch.labels is None:
        return False
    if batch.settings.get("similarity") == "angle":  # which goes by the order of the two texts
        return True
    one, other = batch.texts[:2]
    pairs = np.where(one == other, np.uint64(0), pair_keys(one, other))
    margin = batch.settings.get("margin", 0.0)
    highest, lowest = int(batch.labels.argmax()), int(batch.labels.argmin())
    below = batch.labels[pairs != pairs[highest]].min(initial=np.inf)
    above = batch.labels[pairs != pairs[lowest]].max(initial=-np.inf)
    return bool(batch.labels[highest] - below > margin or above - batch.labels[lowest] > margin)


def has_triplet(batch: Batch) -> bool:
    """Return whether any positive is another text than the negative beside it."""
    return bool((batch.texts[1] != batch.texts[2]).any())


def has_rival(batch: Batch) -> bool:
    """Return whether any anchor has a candidate that is another text than its positive.

    A single column is its own positive. Where there are labels, they say which hard negatives count.
    """
    positives = batch.texts[min(1, len(batch.texts) - 1)]
    negatives = batch.texts[2:] if batch.labels is None else batch.texts[2:, batch.labels > 0]
    return bool(len(batch)) and len(np.unique(np.concatenate([positives, negatives.ravel()]))) > 1


def has_angle_terms(batch: Batch) -> bool:
    """Return whether a term of AnglE's that has a weight has something to compare."""
    settings = batch.settings
    if settings.get("cosine_weight", 1.0) and has_ordered_texts(batch):
        return True
    if settings.get("angle_weight", 1.0) and has_order(batch):
        return True
    if not settings.get("in_batch_weight", 1.0) or batch.labels is None:
        return False
    positive = batch.labels > settings["positive_above"]
    return bool(positive.any()) and len(np.unique(batch.texts[1])) > 1


IN_ORDER = Lesson(has_ordered_texts, "have one label only", "batches label-aware has none")
OF_LOGITS = Lesson(has_order, IN_ORDER.lacking, IN_ORDER.fix)
OF_PAIRS = Lesson(has_two_texts, "hold pairs of one text twice only", "give pairs of two texts")
OF_ROWS = Lesson(has_rows, "are empty", "give more data")
OF_TRIPLETS = Lesson(has_triplet, "hold triplets only whose positive is their negative", "give other negatives")
IN_BATCH = Lesson(
    has_rival,
    "have no negative: one row, or the same positive in all of them",
    "raise batch_size, give hard negatives, or positives that differ",
)
OF_ANGLE = Lesson(has_angle_terms, "have one label only and no negative", "batches label-aware has none")


def drawn_batches(
    count: int, size: int, seed: int, batches: str, texts: Keys, labels: Floats | None
) -> Iterator[Indices]:
    """Yield the rows of each batch of an epoch, or of a part of it: as the run draws them, but not the same ones."""
    order = np.random.default_rng(seed).permutation(count)[:MOST_ROWS]
    if batches == "label-aware" and labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
        number = max(1, len(order) // size)
        yield from order[: number * min(size, len(order))].reshape(-1, number).T
    elif batches == "no-duplicates":
        yield from _without_doubles(order, size, texts)
    else:
        yield from (order[start : start + size] for start in range(0, len(order), size))


def _without_doubles(order: Indices, size: int, texts: Keys, most: int = 200) -> Iterator[Indices]:
    """Yield at most so many batches with no text in two of their rows, as sentence-transformers draws them."""
    left, columns = order.tolist(), texts.T.tolist()
    for _ in range(most):
        if not left:
            return
        batch: list[int] = []
        later: list[int] = []
        seen: set[int] = set()
        for place, row in enumerate(left):
            if seen.isdisjoint(columns[row]):
                batch.append(row)
                seen.update(columns[row])
            else:
                later.append(row)
            if len(batch) == size:
                later += left[place + 1 :]
                break
        left = later
        yield np.array(batch, dtype=np.intp)
