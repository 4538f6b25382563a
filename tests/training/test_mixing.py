"""The order of the batches of several data sets, by hand."""

from collections import Counter

import pytest
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import ConcatDataset, RandomSampler

from samesense.training.mixing import InTurnBatches, Mix, MixedCollator, WeightedBatches

SIZES = {"a": 4, "b": 2}


def sampler(kind, begun=None, rows=(8, 6), weights=(1.0, 3.0), steps=5):
    """Two batches of a, rows 0 to 7, and three of b, rows 8 to 13, in each pass."""
    generator = torch.Generator()
    data = [range(count) for count in rows]
    each = [
        DefaultBatchSampler(RandomSampler(rows_of_set, generator=generator), batch_size=size, drop_last=False)
        for rows_of_set, size in zip(data, SIZES.values(), strict=True)
    ]
    mix = Mix(mixing="weighted", weights=weights, steps=steps, batches=dict.fromkeys(SIZES, "random"), sizes=SIZES)
    begin = (lambda *_: None) if begun is None else lambda *arguments: begun.append(arguments)
    return kind(ConcatDataset(data), each, generator, seed=1, mix=mix, begin=begin)


def owners(batches):
    assert all(len({row < 8 for row in batch}) == 1 for batch in batches)
    return ["a" if batch[0] < 8 else "b" for batch in batches]


def test_in_turn_all_batches_of_one_data_set_come_first():
    begun = []
    batches_in_turn = sampler(InTurnBatches, begun, weights=(), steps=10)
    batches = list(batches_in_turn)
    assert owners(batches) == ["a"] * 4 + ["b"] * 6
    assert len(batches_in_turn) == 10
    assert begun == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert Counter(row for batch in batches for row in batch) == dict.fromkeys(range(14), 2)
    assert batches[:2] != batches[2:4]  # another order in each pass
    assert owners(list(sampler(InTurnBatches, steps=9))) == ["a"] * 2 + ["b"] * 7  # 2.25 and 6.75
    assert owners(list(sampler(InTurnBatches, weights=(), steps=3))) == ["a"] + ["b"] * 2  # cut short alike


def test_weights_say_how_many_batches_of_each_there_are():
    begun = []
    weighted = sampler(WeightedBatches, begun)
    first = list(weighted)
    assert Counter(owners(first)) == {"a": 1, "b": 4} and len(weighted) == 5  # 1.25 and 3.75 of 5
    assert sorted(begun) == [("a", 0), ("b", 0), ("b", 1)]
    assert list(sampler(WeightedBatches)) == first
    weighted.set_epoch(1)
    begun.clear()
    second = list(weighted)
    assert second != first and sorted(begun) == [("a", 1), ("b", 2), ("b", 3)]
    assert Counter(owners(list(sampler(WeightedBatches, weights=(5.0, 1.0))))) == {"a": 4, "b": 1}


def test_a_batch_is_put_together_by_its_own_collator():
    class Drawn:
        epoch = 0

        def __call__(self, rows):
            return {"drawn": (self.epoch, rows)}

    collator = MixedCollator({"a": lambda rows: {"plain": rows}, "b": Drawn()})
    collator.begin("a", 3)
    collator.begin("b", 3)
    rows = [{"x": 1, "dataset_name": "a"}]
    assert collator(rows) == {"plain": [{"x": 1}], "dataset_name": "a"}
    assert collator([{"x": 1, "dataset_name": "b"}]) == {"drawn": (3, [{"x": 1}]), "dataset_name": "b"}


@pytest.mark.parametrize("kind", [InTurnBatches, WeightedBatches])
def test_small_data_are_gone_through_as_often_as_needed(kind):
    batches = list(sampler(kind, rows=(8, 1), weights=(1.0, 5.0), steps=3))
    assert Counter(owners(batches)) == {"a": 1, "b": 2}
