"""Training of one encoder on several objectives: the order of their batches, and their collation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformerTrainer
from sentence_transformers.base.sampler import (
    MultiDatasetDefaultBatchSampler,
    ProportionalBatchSampler,
    RoundRobinBatchSampler,
)

from samesense.training.batches import Batches, BatchSampler, batch_sampler_of

Mixing = Literal["proportional", "round-robin", "weighted", "in-turn"]
"""How batches of several data sets are ordered: at random, in proportion to their numbers; alternating until one data
set is finished; at random by weights; or all batches of one data set before those of the next."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """How the batches of several data sets follow each other.

    Attributes:
        mixing: see :data:`Mixing`.
        weights: weight of each data set in order, for ``"weighted"`` and ``"in-turn"``; if empty, the numbers of
            batches are the weights.
        steps: number of steps of the whole run, for ``"in-turn"``.
        batches: how the examples of each data set, by its name, are put into batches.
        sizes: batch size of each data set, by its name.
    """

    mixing: Mixing
    weights: tuple[float, ...]
    steps: int
    batches: Mapping[str, Batches | BatchSampler]
    sizes: Mapping[str, int]


class MixedCollator:
    """Collates each batch by the collator of its data set, whose name the trainer adds to the examples."""

    def __init__(self, collators: Mapping[str, Callable[..., Any]]) -> None:
        self.collators = collators
        self.valid_label_columns = ["label"]  # the trainer reads this

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of the given examples, all from one data set."""
        name = examples[0]["dataset_name"]
        rows = [{key: value for key, value in row.items() if key != "dataset_name"} for row in examples]
        return {**self.collators[name](rows), "dataset_name": name}

    def begin(self, name: str, passes: int) -> None:
        """Set the epoch of a collator that draws its data again in each pass."""
        if hasattr(self.collators[name], "epoch"):
            self.collators[name].epoch = passes  # type: ignore[attr-defined]


def proportional_counts(total: int, weights: Sequence[float]) -> list[int]:
    """Return integers in proportion to the weights, with sum ``total``, by the largest remainder method."""
    exact = [total * weight / sum(weights) for weight in weights]
    counts = [math.floor(value) for value in exact]
    # the largest remainders get one more each
    order = sorted(range(len(exact)), key=lambda index: counts[index] - exact[index])
    for index in order[: total - sum(counts)]:
        counts[index] += 1
    return counts


class _InPasses(MultiDatasetDefaultBatchSampler):  # type: ignore[misc]
    """Base of samplers that repeat data sets as often as needed; ``begin`` is called at the start of each pass."""

    def __init__(self, *arguments: Any, mix: Mix, begin: Callable[[str, int], None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.mix = mix
        self.begin = begin
        self.lengths = [len(sampler) for sampler in self.batch_samplers]

    def counts(self) -> list[int]:
        """Return the number of batches that each data set contributes."""
        return proportional_counts(len(self), self.mix.weights or self.lengths)

    def endless(self, index: int, first: int) -> Iterator[list[int]]:
        """Yield the batches of a data set in endless passes, beginning with pass ``first``."""
        offset = sum(len(dataset) for dataset in self.dataset.datasets[:index])
        passes = first
        while True:
            self.batch_samplers[index].set_epoch(passes)
            self.begin(list(self.mix.sizes)[index], passes)
            # the trainer concatenates the data sets, so rows are offset
            for batch in self.batch_samplers[index]:
                yield [row + offset for row in batch]
            passes += 1


class WeightedBatches(_InPasses):
    """Random order of batches by weights; an epoch has as many batches as all data sets together."""

    def __len__(self) -> int:
        return sum(self.lengths)

    def __iter__(self) -> Iterator[list[int]]:
        self.generator.manual_seed(self.seed + self.epoch)
        counts = self.counts()
        # which data set each batch of the epoch comes from
        owners = torch.tensor([index for index, count in enumerate(counts) for _ in range(count)])
        passes = [-(-count // length) for count, length in zip(counts, self.lengths, strict=True)]
        streams = [self.endless(index, self.epoch * passes_per_epoch) for index, passes_per_epoch in enumerate(passes)]
        for index in owners[torch.randperm(len(owners), generator=self.generator)].tolist():
            yield next(streams[index])


class InTurnBatches(_InPasses):
    """All batches of the run, one data set after the other, in as many passes as the steps require."""

    def __len__(self) -> int:
        return self.mix.steps

    def __iter__(self) -> Iterator[list[int]]:
        self.generator.manual_seed(self.seed + self.epoch)
        for index, count in enumerate(self.counts()):
            batches = self.endless(index, 0)
            yield from (next(batches) for _ in range(count))


class MixedTrainer(SentenceTransformerTrainer):  # type: ignore[misc]
    """The trainer of sentence-transformers for several data sets, with a batch size for each of them."""

    mix: Mix

    def get_batch_sampler(self, dataset: Any, batch_size: int, *arguments: Any, **options: Any) -> Any:
        """Return the batch sampler of one data set, with its own kind and batch size."""
        name = dataset[0]["dataset_name"]
        shared = self.args.batch_sampler
        # the trainer has one kind of batches for all data sets: set it while this one's sampler is made
        self.args.batch_sampler = batch_sampler_of(self.mix.batches[name])
        try:
            return super().get_batch_sampler(dataset, self.mix.sizes[name], *arguments, **options)
        finally:
            self.args.batch_sampler = shared

    def get_multi_dataset_batch_sampler(self, dataset: Any, *arguments: Any, **options: Any) -> Any:
        """Return the batch sampler over all data sets."""
        if self.mix.mixing == "proportional":
            return ProportionalBatchSampler(dataset, *arguments, **options)
        if self.mix.mixing == "round-robin":
            return RoundRobinBatchSampler(dataset, *arguments, **options)
        kind = WeightedBatches if self.mix.mixing == "weighted" else InTurnBatches
        return kind(dataset, *arguments, mix=self.mix, begin=self.data_collator.begin, **options)
