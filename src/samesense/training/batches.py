"""Batch samplers: random, with different labels, of whole groups, without duplicate texts, and of neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sentence_transformers.base.sampler import BatchSamplers, DefaultBatchSampler, NoDuplicatesBatchSampler

from samesense.data.batch_order import count_label_aware_examples, deal_groups
from samesense.errors import ConfigError, DataError
from samesense.execution.ranks import world_size

Batches = Literal["random", "label-aware", "no-duplicates", "grouped"]
"""Random batches; batches with at least two labels each; for InfoNCE, batches without duplicate texts; or, for losses
within groups, batches of whole groups."""

BatchSampler = Callable[..., DefaultBatchSampler]
"""What makes a batch sampler of a data set, as sentence-transformers calls it."""

NEIGHBOURS = 8
"""Examples of a group in :class:`NeighbourBatches`."""

_BUCKET = 16384
"""Most examples among which neighbours are looked for exactly."""


def _label_columns(dataset: Any, valid_label_columns: list[str] | None) -> list[str]:
    """Return the columns of a data set that hold labels."""
    return [name for name in valid_label_columns or ["label"] if name in dataset.column_names]


class LabelAwareBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Batches with at least two different labels each, so that every batch has something to compare.

    Examples are sorted by label, equal labels in random order, and divided into ``batch_size`` strata; a batch takes
    one example from each stratum. So each batch has the label distribution of the data, to within one or two examples;
    with labels 0 and 1, the data's fraction of positives. With many different labels, those within one stratum, the
    nearest to each other, are not compared. Each epoch is drawn again, determined by seed and epoch.

    An epoch uses each example at most once. It leaves out the examples that do not fill a batch and, if the commonest
    label would need more than all but one place in each batch, the surplus of that label; which ones is drawn again in
    each epoch.

    The class, not an instance, goes into ``SentenceTransformerTrainingArguments(batch_sampler=LabelAwareBatches)``.

    Raises:
        DataError: if there is no label column, or all labels are equal.
        ConfigError: if ``batch_size`` is 1.

    Source: none; the CoSENT paper draws batches at random, and the loss of those with one label is exactly 0.
    """

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool = False, **options: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **options)
        label_columns = _label_columns(dataset, self.valid_label_columns)
        if not label_columns:
            raise DataError(
                f"Label-aware batches need a label column; the data have {', '.join(dataset.column_names)}. "
                "Take random batches."
            )
        self.labels = np.asarray(dataset[label_columns[0]][:], dtype=np.float64)
        values, counts = np.unique(self.labels, return_counts=True)
        if len(values) < 2:
            raise DataError(
                f"Label-aware batches need two different labels; received {len(self.labels)} labels, all equal."
            )
        if batch_size < 2:
            raise ConfigError(f"A comparison needs two examples in a batch; received batch_size {batch_size}.")
        self.commonest = values[counts.argmax()]
        self.size = min(batch_size, len(self.labels))
        self.batches = count_label_aware_examples(self.labels, batch_size) // self.size

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        examples = self._examples_of_epoch(random)
        # one stratum per row: neighbours in the order of labels
        order = examples[np.argsort(self.labels[examples], kind="stable")].reshape(self.size, self.batches)
        # first and last keep their order: examples at the same place in them never share a label
        for stratum in order[1:-1]:
            random.shuffle(stratum)
        for batch in random.permutation(self.batches):
            yield order[:, batch].tolist()

    def _examples_of_epoch(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the examples of an epoch in random order, with one per batch that has not the commonest label."""
        shuffled = random.permutation(len(self.labels))
        # every batch needs one example that has not the commonest label
        different = np.flatnonzero(self.labels[shuffled] != self.commonest)[: self.batches]
        remaining = np.delete(shuffled, different)[: self.batches * (self.size - 1)]
        return random.permutation(np.concatenate([shuffled[different], remaining]))


class _OrderedBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Base of batches that are consecutive parts of an order of all examples, drawn again in each epoch."""

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool = False, **options: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **options)
        self.rows = len(dataset)

    def __len__(self) -> int:
        size: int = self.batch_size
        if self.drop_last:
            return self.rows // size
        return math.ceil(self.rows / size)

    def __iter__(self) -> Iterator[list[int]]:
        examples = self._order(np.random.default_rng((self.seed, self.epoch)))
        for number in range(len(self)):
            yield examples[number * self.batch_size : (number + 1) * self.batch_size].tolist()

    def _order(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the examples of an epoch ``(rows,)``."""
        raise NotImplementedError


class GroupedBatches(_OrderedBatches):
    """Batches of whole groups, for a loss that only compares examples of one group.

    Random batches of many groups would hold hardly two examples of one. Here groups come in random order, and only
    where none fits into what is left of a batch is one cut; see :func:`samesense.data.batch_order.deal_groups`. All
    batches but the last are full, each example comes once an epoch, and each epoch is drawn again, determined by seed
    and epoch.

    The label of an example is ``[label, group]``, as in :mod:`samesense.losses.groups`.

    Raises:
        DataError: if there is no such label column.
    """

    def __init__(self, dataset: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(dataset, *arguments, **options)
        label_columns = _label_columns(dataset, self.valid_label_columns)
        rows = np.asarray(dataset[label_columns[0]][:], dtype=np.float64) if label_columns else np.empty(0)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise DataError(
                "Batches of groups need a column of labels [label, group]; the data have "
                f"{', '.join(dataset.column_names)}. Take random batches."
            )
        self.groups = rows[:, 1].astype(np.intp)

    def _order(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        return deal_groups(self.groups, self.batch_size, random)


class NeighbourBatches(_OrderedBatches):
    """Batches of groups of :data:`NEIGHBOURS` examples that lie close together by given vectors.

    Sentences of a random batch are all about equally far from each other, so that there is little to rank. Here each
    has seven near ones in its batch, and all others are far.

    A group is an example drawn at random with its nearest ones of those that no group has yet, so the last groups of
    an epoch are of what is left over. Each example comes once an epoch; groups are drawn again in each epoch,
    determined by seed and epoch. Of more than 16,384 examples, neighbours are looked for in random parts of the space,
    cut at the median of a direction, so that time grows with the number of examples.

    Args:
        vectors: unit vectors of all examples, float32 ``(examples, dim)``.

    Source: none; Liu et al. 2023 (RankCSE) draw batches at random.
    """

    def __init__(self, dataset: Any, *arguments: Any, vectors: npt.NDArray[np.float32], **options: Any) -> None:
        super().__init__(dataset, *arguments, **options)
        if len(vectors) != len(dataset):
            raise ValueError(f"{len(vectors)} vectors for {len(dataset)} examples")
        self.vectors = vectors

    def _order(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        groups = [
            group for bucket in self._buckets(np.arange(len(self.vectors)), random) for group in self._groups(bucket)
        ]
        # Groups that are not full come last, so that none of the others is cut by the end of a batch.
        order = sorted(random.permutation(len(groups)), key=lambda index: len(groups[index]) < NEIGHBOURS)
        return np.concatenate([groups[index] for index in order])

    def _buckets(self, examples: npt.NDArray[np.intp], random: np.random.Generator) -> Iterator[npt.NDArray[np.intp]]:
        """Yield parts of the space in which neighbours are looked for, their examples in random order."""
        if len(examples) <= _BUCKET:
            yield random.permutation(examples)
            return
        first, second = random.choice(examples, 2, replace=False)
        along = self.vectors[examples] @ (self.vectors[first] - self.vectors[second])
        order = examples[np.argsort(along, kind="stable")]
        # Whole groups, so that at most one group of an epoch is not full.
        middle = len(order) // 2 // NEIGHBOURS * NEIGHBOURS
        yield from self._buckets(order[:middle], random)
        yield from self._buckets(order[middle:], random)

    def _groups(self, examples: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
        """Yield each example that is not in a group yet with its nearest of such."""
        vectors = self.vectors[examples]
        free = np.ones(len(examples), dtype=bool)
        for position in range(len(examples)):
            if not free[position]:
                continue
            ungrouped = np.flatnonzero(free)
            size = min(NEIGHBOURS, len(ungrouped))
            cosines = vectors[ungrouped] @ vectors[position]
            # The example itself is in its group, also where another one has the same vector.
            cosines[ungrouped == position] = np.inf
            group = ungrouped[np.argpartition(-cosines, size - 1)[:size]]
            free[group] = False
            yield examples[group]


class NoDuplicatesInStep(DefaultBatchSampler):  # type: ignore[misc]
    """Batches for several processes, without duplicate texts among all batches of one step.

    Accelerate gives consecutive batches to the processes, and losses compare the rows of all of them. So the batch of a
    whole step is drawn and then divided. Examples that do not fill a step are left out, as in sentence-transformers.

    Raises:
        DataError: if there are too few different texts for one step.
    """

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool = True, **options: Any) -> None:
        super().__init__(dataset, batch_size, True, **options)
        self.steps = NoDuplicatesBatchSampler(dataset, batch_size * world_size(), True, **options)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch from which the batches are drawn."""
        super().set_epoch(epoch)
        self.steps.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.steps) * world_size()

    def __iter__(self) -> Iterator[list[int]]:
        step: list[int] = []
        for step in self.steps:  # consecutive batches go to different processes
            for start in range(0, len(step), self.batch_size):
                yield step[start : start + self.batch_size]
        if not step:
            raise DataError(
                f"A step needs {self.steps.batch_size} rows without a text in common, for {world_size()} processes of "
                f"batch_size {self.batch_size} each; received {len(self.steps.dataset)} rows, which have too few. "
                "Lower batch_size, or take random batches."
            )


def batch_sampler_of(batches: Batches | BatchSampler) -> BatchSampler | BatchSamplers:
    """Return the value of ``batch_sampler`` for the training arguments of sentence-transformers."""
    if callable(batches):
        return batches
    if batches == "label-aware":
        return LabelAwareBatches
    if batches == "grouped":
        return GroupedBatches
    if batches == "no-duplicates":
        if world_size() == 1:
            return BatchSamplers.NO_DUPLICATES
        return NoDuplicatesInStep
    return BatchSamplers.BATCH_SAMPLER


def examples_of_epoch(dataset: Any, batches: object, batch_size: int) -> int:
    """Return the number of examples that an epoch uses."""
    if batches == "label-aware":
        return count_label_aware_examples(dataset["label"][:], batch_size)
    return len(dataset)


def check_fills_step(dataset: Any, batches: object, batch_size: int) -> None:
    """Raise ConfigError if the data do not fill one step of all processes, which would then train on nothing."""
    if world_size() == 1:
        return
    needed = batch_size * world_size()
    examples = examples_of_epoch(dataset, batches, batch_size)
    if examples < needed:
        raise ConfigError(
            f"A step of {world_size()} processes with batch_size {batch_size} each takes {needed} examples; received "
            f"{examples}. Lower batch_size, or take fewer processes."
        )


def share_without_comparison(labels: Sequence[float], batch_size: int) -> float:
    """Return the probability that a random batch has only one label, so that CoSENT learns nothing from it.

    It is the sum over labels of C(count, batch_size) / C(examples, batch_size); 1 for a batch of one.
    """
    size = min(batch_size, len(labels))
    counts = np.unique(np.asarray(labels), return_counts=True)[1].tolist()
    # Exact integers: as floats, the binomials of thousands of examples overflow.
    return sum(math.comb(count, size) for count in counts if count >= size) / math.comb(len(labels), size)
