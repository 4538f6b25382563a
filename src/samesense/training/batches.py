"""How examples are put into batches: at random, by label, or without doubles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sentence_transformers.base.sampler import BatchSamplers, DefaultBatchSampler, NoDuplicatesBatchSampler

from samesense.data.examples import label_aware_examples
from samesense.errors import ConfigError, DataError
from samesense.execution.ranks import world_size

Batches = Literal["random", "label-aware", "no-duplicates"]
"""Batches drawn at random; each with two labels at least; or, for InfoNCE, with no text in two of its rows."""


class LabelAwareBatches(DefaultBatchSampler):  # type: ignore[misc]
    """Batches of which none lacks a comparison: each holds two different labels at least.

    Examples are sorted by label, equal labels in random order, and dealt to the batches: each gets one of every
    ``batch_size``-th part of the order. So a batch has each label as often as the data do, to within one or two; with
    labels 0 and 1, the data's share of positives. With many different labels, those of one part, which are the nearest
    to each other, are not compared. Another deal every epoch; the same one from the same seed and epoch.

    An epoch takes each example once at most. It leaves out what fills no batch, and, where the commonest label has more
    than all but one place in each batch, as many of its examples as find no other label to stand beside; which ones is
    drawn anew each epoch.

    The class, not an instance, goes into ``SentenceTransformerTrainingArguments(batch_sampler=LabelAwareBatches)``.

    Raises:
        DataError: if there is no label column, or all labels are equal.
        ConfigError: if a batch has one place only.

    Source: none; the CoSENT paper draws batches at random, and those with one label cost exactly 0.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = False,
        valid_label_columns: list[str] | None = None,
        generator: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, valid_label_columns, generator, seed)
        named = [name for name in valid_label_columns or ["label"] if name in dataset.column_names]
        if not named:
            raise DataError(
                f"Label-aware batches need a label column; the data have {', '.join(dataset.column_names)}. "
                "Take random batches."
            )
        self.labels = np.asarray(dataset[named[0]][:], dtype=np.float64)
        values, counts = np.unique(self.labels, return_counts=True)
        if len(values) < 2:
            raise DataError(
                f"Label-aware batches need two different labels; received {len(self.labels)} labels, all equal."
            )
        if batch_size < 2:
            raise ConfigError(f"A comparison needs two examples in a batch; received batch_size {batch_size}.")
        self.commonest = values[counts.argmax()]
        self.size = min(batch_size, len(self.labels))
        self.batches = label_aware_examples(self.labels, batch_size) // self.size

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self.seed, self.epoch))
        kept = self._kept(random)
        order = kept[np.argsort(self.labels[kept], kind="stable")].reshape(self.size, self.batches)
        for part in order[1:-1]:  # the first and the last part stay: no label can reach from one to the other
            random.shuffle(part)
        for place in random.permutation(self.batches):
            yield order[:, place].tolist()

    def _kept(self, random: np.random.Generator) -> npt.NDArray[np.intp]:
        """Return the examples of an epoch in random order, one of another label than the commonest for each batch."""
        shuffled = random.permutation(len(self.labels))
        others = np.flatnonzero(self.labels[shuffled] != self.commonest)[: self.batches]
        rest = np.delete(shuffled, others)[: self.batches * (self.size - 1)]
        return random.permutation(np.concatenate([shuffled[others], rest]))


class NoDuplicatesInStep(DefaultBatchSampler):  # type: ignore[misc]
    """Batches of several processes, with no text in two rows of those that are one step.

    Accelerate gives each process one of the batches that follow each other, and losses compare what all of them hold.
    So the batch of a whole step is drawn and cut. What fills no step is left out, as sentence-transformers does.

    Raises:
        DataError: if there are too few different texts for one step.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool = True,
        valid_label_columns: list[str] | None = None,
        generator: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dataset, batch_size, True, valid_label_columns, generator, seed)
        whole = batch_size * world_size()
        self.steps = NoDuplicatesBatchSampler(dataset, whole, True, valid_label_columns, generator, seed)

    def set_epoch(self, epoch: int) -> None:
        """Draw the batches of this epoch from now on."""
        super().set_epoch(epoch)
        self.steps.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.steps) * world_size()

    def __iter__(self) -> Iterator[list[int]]:
        step: list[int] = []
        for step in self.steps:
            for start in range(0, len(step), self.batch_size):
                yield step[start : start + self.batch_size]
        if not step:
            raise DataError(
                f"A step needs {self.steps.batch_size} rows without a text in common, for {world_size()} processes of "
                f"batch_size {self.batch_size} each; received {len(self.steps.dataset)} rows, which have too few. "
                "Lower batch_size, or take random batches."
            )


def sampler_of(batches: Batches) -> type[DefaultBatchSampler] | BatchSamplers:
    """Return what sentence-transformers' training arguments take as ``batch_sampler``."""
    if batches == "label-aware":
        return LabelAwareBatches
    if batches == "no-duplicates":
        return BatchSamplers.NO_DUPLICATES if world_size() == 1 else NoDuplicatesInStep
    return BatchSamplers.BATCH_SAMPLER


def examples_of_epoch(dataset: Any, batches: object, batch_size: int) -> int:
    """Return how many examples of a dataset an epoch takes."""
    return label_aware_examples(dataset["label"][:], batch_size) if batches == "label-aware" else len(dataset)


def check_fills_step(dataset: Any, batches: object, batch_size: int) -> None:
    """Raise ConfigError if several processes would train on nothing: they leave out what fills no step of them all."""
    if world_size() == 1:
        return
    needed, examples = batch_size * world_size(), examples_of_epoch(dataset, batches, batch_size)
    if examples < needed:
        raise ConfigError(
            f"A step of {world_size()} processes with batch_size {batch_size} each takes {needed} examples; received "
            f"{examples}. Lower batch_size, or take fewer processes."
        )


def share_without_comparison(labels: Sequence[float], batch_size: int) -> float:
    """Return the probability that a random batch has one label only, so that CoSENT learns nothing from it.

    It is the sum over labels of C(count, batch_size) / C(examples, batch_size); 1 for a batch of one.
    """
    size = min(batch_size, len(labels))
    counts = np.unique(np.asarray(labels), return_counts=True)[1].tolist()
    return sum(math.comb(count, size) for count in counts if count >= size) / math.comb(len(labels), size)
