"""Several objectives on one encoder: whose batch comes next, and how it is put together."""

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

from samesense.training.batches import Batches, sampler_of

Mixing = Literal["proportional", "round-robin", "weighted", "in-turn"]
"""Each kind by its number of batches, at random; one batch of each after the other, until one kind is through; by
weights, at random; or all passes over the first kind before the second."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """How the batches of several data sets follow each other.

    Attributes:
        mixing: see :data:`Mixing`.
        weights: of each data set in its order, for ``"weighted"`` and ``"in-turn"``; empty for numbers of batches.
        steps: of the whole run, for ``"in-turn"``.
        batches: of each data set by name, how its examples are put into batches.
        sizes: of each data set by name, examples in a batch.
    """

    mixing: Mixing
    weights: tuple[float, ...]
    steps: int
    batches: Mapping[str, Batches]
    sizes: Mapping[str, int]


class MixedCollator:
    """Has each batch put together by the collator of its data set, whose name the trainer asks for."""

    def __init__(self, collators: Mapping[str, Callable[..., Any]]) -> None:
        self.collators = collators
        self.valid_label_columns = ["label"]  # asked for by the trainer

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of some examples of one data set."""
        name = examples[0]["dataset_name"]
        rows = [{key: value for key, value in row.items() if key != "dataset_name"} for row in examples]
        return {**self.collators[name](rows), "dataset_name": name}

    def begin(self, name: str, passes: int) -> None:
        """Tell a collator that draws anew in each pass how many passes over its data are over."""
        if hasattr(self.collators[name], "epoch"):
            self.collators[name].epoch = passes  # type: ignore[attr-defined]


def shares(total: int, weights: Sequence[float]) -> list[int]:
    """Return whole numbers in proportion to the weights that add up to ``total``: by largest remainders."""
    exact = [total * weight / sum(weights) for weight in weights]
    counts = [math.floor(one) for one in exact]
    order = sorted(range(len(exact)), key=lambda part: counts[part] - exact[part])
    for part in order[: total - sum(counts)]:
        counts[part] += 1
    return counts


class _InPasses(MultiDatasetDefaultBatchSampler):  # type: ignore[misc]
    """Goes through a data set as often as its batches are wanted; ``begin`` is told of each pass."""

    def __init__(self, *given: Any, mix: Mix, begin: Callable[[str, int], None], **more: Any) -> None:
        super().__init__(*given, **more)
        self.mix, self.begin = mix, begin
        self.lengths = [len(sampler) for sampler in self.batch_samplers]

    def counts(self) -> list[int]:
        """Return how many batches of each data set there are until all is yielded."""
        return shares(len(self), self.mix.weights or self.lengths)

    def endless(self, part: int, first: int) -> Iterator[list[int]]:
        """Yield the batches of a data set over and over, from the pass of number ``first``."""
        offset = sum(len(one) for one in self.dataset.datasets[:part])
        passes = first
        while True:
            self.batch_samplers[part].set_epoch(passes)
            self.begin(list(self.mix.sizes)[part], passes)
            for batch in self.batch_samplers[part]:
                yield [row + offset for row in batch]
            passes += 1


class WeightedBatches(_InPasses):
    """As many batches in an epoch as there are in all data, in the shares that the weights say, in random order."""

    def __len__(self) -> int:
        return sum(self.lengths)

    def __iter__(self) -> Iterator[list[int]]:
        self.generator.manual_seed(self.seed + self.epoch)
        counts = self.counts()
        owners = torch.tensor([part for part, count in enumerate(counts) for _ in range(count)])
        passes = [-(-count // length) for count, length in zip(counts, self.lengths, strict=True)]
        found = [self.endless(part, self.epoch * each) for part, each in enumerate(passes)]
        for part in owners[torch.randperm(len(owners), generator=self.generator)].tolist():
            yield next(found[part])


class InTurnBatches(_InPasses):
    """All batches of the run: those of one data set after those of the other, in as many passes as there are steps."""

    def __len__(self) -> int:
        return self.mix.steps

    def __iter__(self) -> Iterator[list[int]]:
        self.generator.manual_seed(self.seed + self.epoch)
        for part, count in enumerate(self.counts()):
            found = self.endless(part, 0)
            yield from (next(found) for _ in range(count))


class MixedTrainer(SentenceTransformerTrainer):  # type: ignore[misc]
    """sentence-transformers' own with its data sets and losses by name, and a batch size for each of them."""

    mix: Mix

    def get_batch_sampler(self, dataset: Any, batch_size: int, *given: Any, **more: Any) -> Any:
        """Return the batches of one data set, in its own way and size."""
        name, shared = dataset[0]["dataset_name"], self.args.batch_sampler
        self.args.batch_sampler = sampler_of(self.mix.batches[name])
        try:
            return super().get_batch_sampler(dataset, self.mix.sizes[name], *given, **more)
        finally:
            self.args.batch_sampler = shared

    def get_multi_dataset_batch_sampler(self, dataset: Any, *given: Any, **more: Any) -> Any:
        """Return the batches of all data sets in their order."""
        if self.mix.mixing == "proportional":
            return ProportionalBatchSampler(dataset, *given, **more)
        if self.mix.mixing == "round-robin":
            return RoundRobinBatchSampler(dataset, *given, **more)
        kind = WeightedBatches if self.mix.mixing == "weighted" else InTurnBatches
        return kind(dataset, *given, mix=self.mix, begin=self.data_collator.begin, **more)
