"""Which batches a loss can learn from, decided by texts and labels without a model.

The loss of a batch is constant if it has nothing to compare, such as a single pair, the same positive for all anchors,
or only one label. Texts that differ only in case and spaces count as equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from samesense.data.batch_order import deal_groups
from samesense.data.pairs.keys import Keys, pair_keys
from samesense.types import Floats, Indices

MOST_ROWS = 50_000
"""Maximum number of rows of an epoch that are put into batches for the check."""

MOST_BATCHES = 200
"""Maximum number of batches without duplicates: to form one takes a look at all remaining rows."""


@dataclass(frozen=True)
class Batch:
    """A batch as keys of its texts and labels.

    Attributes:
        texts: keys of the texts ``(columns, rows)``, equal for equal texts.
        labels: labels ``(rows,)`` if the loss takes any.
        settings: settings of the loss.
        groups: groups of the rows ``(rows,)`` if the loss only compares rows of one group.
    """

    texts: Keys
    labels: Floats | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    groups: Indices | None = None

    def __len__(self) -> int:
        return len(self.texts.T)

    def by_group(self) -> Iterator[Batch]:
        """Yield the rows of each group as a batch of its own."""
        if self.groups is None:
            yield self
            return
        order = np.argsort(self.groups, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(self.groups[order])) + 1):
            yield Batch(self.texts[:, rows], None if self.labels is None else self.labels[rows], self.settings)


@dataclass(frozen=True)
class Lesson:
    """The condition under which a loss can learn from a batch.

    Attributes:
        teaches: returns whether a batch fulfils it.
        lacking: description of the batches that do not, as the predicate of a sentence.
        fix: advice for the user.
        label_aware: whether such batches come of how labels are dealt, so that label-aware batches have none.
    """

    teaches: Callable[[Batch], bool]
    lacking: str
    fix: str = "raise batch_size"
    label_aware: bool = False

    def advice(self, batch_size: int, batches: str, margin: float = 0.0) -> str:
        """Return what the user of a run with these batches may change; label-aware ones only where they would help."""
        if not self.label_aware or batch_size == 1:
            return self.fix
        if margin:
            return "lower margin: labels that differ by no more count as equal"
        if batches == "label-aware":
            return self.fix
        return "take `batches` label-aware, which has none"

    def within_groups(self) -> Lesson:
        """Return the condition of a loss that only compares rows of one group: that a group of the batch fulfils it."""
        return Lesson(
            lambda batch: any(self.teaches(group) for group in batch.by_group()),
            f"hold only groups that {self.lacking}",
            "raise batch_size, or give several labelled candidates for each first text",
        )


def differ(first: int, second: int) -> Callable[[Batch], bool]:
    """Return whether any row has different texts in two columns."""
    return lambda batch: bool((batch.texts[first] != batch.texts[second]).any())


def has_order(batch: Batch) -> bool:
    """Return whether any label exceeds another by more than the margin."""
    if batch.labels is None or not len(batch):
        return False
    return bool(batch.labels.max() - batch.labels.min() > batch.settings.get("margin", 0.0))


def has_two_pairs(batch: Batch) -> bool:
    """Return whether there are two different pairs; those of a text with itself count as one."""
    return len(np.unique(_similarity_keys(batch))) > 1


def has_ordered_texts(batch: Batch) -> bool:
    """Return whether two different pairs have labels that differ by more than the margin.

    Pairs of a text with itself count as one pair, as their cosine is always 1.
    """
    if not has_order(batch) or batch.labels is None:
        return False
    if batch.settings.get("similarity") == "angle":  # AnglE's similarity is not symmetric
        return True
    pairs = _similarity_keys(batch)
    margin = batch.settings.get("margin", 0.0)
    # If the two extremes are one pair, the next ones decide.
    highest = int(batch.labels.argmax())
    lowest = int(batch.labels.argmin())
    lowest_other = batch.labels[pairs != pairs[highest]].min(initial=np.inf)
    highest_other = batch.labels[pairs != pairs[lowest]].max(initial=-np.inf)
    return bool(batch.labels[highest] - lowest_other > margin or highest_other - batch.labels[lowest] > margin)


def _similarity_keys(batch: Batch) -> Keys:
    """Return a key of each row, equal where the cosines must be: of a text with itself it is always 1."""
    first, second = batch.texts[:2]
    keys: Keys = np.where(first == second, np.uint64(0), pair_keys(first, second))
    return keys


def has_rival(batch: Batch) -> bool:
    """Return whether any anchor has a candidate that differs from its positive, or with ``symmetric`` another anchor.

    A single column is its own positive. Labels, if there are any, tell which hard negatives count.
    """
    # In the opposite direction a positive picks among the anchors.
    if batch.settings.get("symmetric") and len(np.unique(batch.texts[0])) > 1:
        return True
    positives = batch.texts[min(1, len(batch.texts) - 1)]
    negatives = batch.texts[2:] if batch.labels is None else batch.texts[2:, batch.labels > 0]
    return bool(len(batch)) and len(np.unique(np.concatenate([positives, negatives.ravel()]))) > 1


def has_angle_terms(batch: Batch) -> bool:
    """Return whether a term of AnglE with a non-zero weight has something to compare."""
    settings = batch.settings
    if settings.get("cosine_weight", 1.0) and has_ordered_texts(batch):
        return True
    if settings.get("angle_weight", 1.0) and has_order(batch):
        return True
    if not settings.get("in_batch_weight", 1.0) or batch.labels is None:
        return False
    positive = batch.labels > settings["positive_above"]
    return bool(positive.any()) and len(np.unique(batch.texts[1])) > 1


IN_ORDER = Lesson(has_ordered_texts, "have one label only", label_aware=True)
OF_LOGITS = Lesson(has_order, IN_ORDER.lacking, label_aware=True)
TWO_PAIRS = Lesson(has_two_pairs, "have one pair only")
TWO_LOGITS = Lesson(lambda batch: len(batch) > 1, TWO_PAIRS.lacking)
OF_PAIRS = Lesson(
    differ(0, 1),  # the cosine of a text with itself is always 1
    "hold pairs of one text twice only",
    "give pairs of two texts; perhaps both columns of texts are the same",
)
OF_ROWS = Lesson(lambda batch: len(batch) > 0, "are empty", "give more data")
OF_TRIPLETS = Lesson(differ(1, 2), "hold triplets only whose positive is their negative", "give other negatives")
IN_BATCH = Lesson(
    has_rival,
    "have no negative: one row, or the same positive in all of them",
    "raise batch_size, give hard negatives, or positives that differ",
)
OF_ANGLE = Lesson(has_angle_terms, "have one label only and no negative", label_aware=True)


def drawn_batches(
    count: int,
    size: int,
    seed: int,
    batches: str,
    texts: Keys,
    labels: Floats | None,
    groups: Indices | None = None,
) -> Iterator[Indices]:
    """Yield the rows of batches for up to :data:`MOST_ROWS` rows, drawn like those of the run, but not the same."""
    # Not in the order of the file, which is often sorted by label.
    random = np.random.default_rng(seed)
    if groups is None:
        order = random.permutation(count)[:MOST_ROWS]
    else:
        order = deal_groups(groups, size, random)[:MOST_ROWS]
    if batches == "label-aware" and labels is not None:
        # strata of neighbouring labels, as in LabelAwareBatches
        order = order[np.argsort(labels[order], kind="stable")]
        batch_count = max(1, len(order) // size)
        yield from order[: batch_count * min(size, len(order))].reshape(-1, batch_count).T
    elif batches == "no-duplicates":
        yield from _without_duplicates(order, size, texts)
    else:
        yield from (order[start : start + size] for start in range(0, len(order), size))


def _without_duplicates(order: Indices, size: int, texts: Keys) -> Iterator[Indices]:
    """Yield at most :data:`MOST_BATCHES` batches without duplicate texts, drawn as in sentence-transformers."""
    remaining = order.tolist()
    columns = texts.T.tolist()
    for _ in range(MOST_BATCHES):
        if not remaining:
            return
        batch: list[int] = []
        later: list[int] = []
        batch_texts: set[int] = set()
        for position, row in enumerate(remaining):
            if batch_texts.isdisjoint(columns[row]):
                batch.append(row)
                batch_texts.update(columns[row])
            else:
                later.append(row)
            if len(batch) == size:
                # Rows that were not looked at come next, after those put off.
                later += remaining[position + 1 :]
                break
        remaining = later
        yield np.array(batch, dtype=np.intp)
