"""Invariants of batches: label-aware ones on random labels of all kinds, and those without duplicates."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from datasets import Dataset
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from samesense.errors import ConfigError, DataError
from samesense.training import batches as batches_module
from samesense.training.batches import (
    NEIGHBOURS,
    GroupedBatches,
    LabelAwareBatches,
    NeighbourBatches,
    batch_sampler_of,
    share_without_comparison,
)

GROUPS = st.lists(st.integers(0, 9), min_size=1, max_size=60)


def grouped_batches(groups, size, *, seed=0, epoch=0):
    rows = [[float(index % 3), float(group)] for index, group in enumerate(groups)]
    sampler = GroupedBatches(Dataset.from_dict({"a": ["a"] * len(groups), "label": rows}), size, seed=seed)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    return batches


@settings(max_examples=100, deadline=None)
@given(groups=GROUPS, size=st.integers(1, 12), epoch=st.integers(0, 2))
def test_grouped_batches_are_full_and_hold_every_example_once(groups, size, epoch):
    batches = grouped_batches(groups, size, epoch=epoch)
    assert sorted(itertools.chain(*batches)) == list(range(len(groups)))
    assert all(len(batch) == size for batch in batches[:-1])
    assert grouped_batches(groups, size, epoch=epoch) == batches
    # At most one group is cut at the end of a batch, or a group is larger than a batch.
    counts = Counter(groups)
    cut = [
        group for group in counts if counts[group] <= size and sum(group in {groups[i] for i in b} for b in batches) > 1
    ]
    assert len(cut) < len(batches)


def test_groups_that_fill_batches_stay_whole_and_are_drawn_again():
    groups = [index // 3 for index in range(120)] + [40 + index // 2 for index in range(80)]
    batches = grouped_batches(groups, 16)
    counts = Counter(groups)
    whole = sum(
        Counter(groups[i] for i in batch)[group] == counts[group]
        for batch in batches
        for group in {groups[i] for i in batch}
    )
    assert whole >= 0.9 * len(counts)
    assert grouped_batches(groups, 16, epoch=1) != batches
    assert grouped_batches(groups, 16, seed=1) != batches
    assert [len(batch) for batch in grouped_batches([0] * 50, 16)] == [16, 16, 16, 2]


def test_a_group_larger_than_a_batch_does_not_gather_the_small_ones_before_it():
    groups = [0] * 100 + list(range(1, 101))
    firsts = [
        sum(groups[i] > 0 for batch in grouped_batches(groups, 8, seed=seed)[:12] for i in batch) for seed in range(9)
    ]
    assert max(firsts) < 96


def test_batches_of_groups_need_groups():
    with pytest.raises(
        DataError, match=r"Batches of groups need a column of labels \[label, group\]; the data have a, label"
    ):
        GroupedBatches(Dataset.from_dict({"a": ["a"], "label": [1.0]}), 2)


LABELS = st.one_of(
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=80),
    st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]), min_size=2, max_size=80),
    st.lists(st.floats(0, 5), min_size=2, max_size=80),
)
SAMPLER = settings(max_examples=100, deadline=None)


def batches_of(labels, size, seed=0, epoch=0):
    sampler = LabelAwareBatches(Dataset.from_dict({"sentence1": ["a"] * len(labels), "label": labels}), size, seed=seed)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    return batches


@SAMPLER
@given(labels=LABELS, size=st.integers(2, 20), epoch=st.integers(0, 3))
def test_every_batch_is_full_and_has_two_labels_and_no_example_comes_twice(labels, size, epoch):
    assume(len(set(labels)) > 1)
    batches = batches_of(labels, size, epoch=epoch)
    assert batches
    assert all(len(batch) == min(size, len(labels)) for batch in batches)
    assert all(len({labels[index] for index in batch}) > 1 for batch in batches)
    taken = list(itertools.chain(*batches))
    assert len(set(taken)) == len(taken)
    left = len(labels) - len(taken)
    commonest = max(Counter(labels).values())
    short = len(labels) - commonest < len(labels) // size  # too few of other labels: an epoch has fewer batches
    assert short or left < size


@SAMPLER
@given(labels=LABELS, size=st.integers(2, 12))
def test_each_batch_has_each_label_as_often_as_the_epoch_does(labels, size):
    assume(len(set(labels)) > 1)
    batches = batches_of(labels, size)
    whole = Counter(labels[index] for index in itertools.chain(*batches))
    for batch in batches:
        counts = Counter(labels[index] for index in batch)
        assert all(abs(counts[label] - whole[label] / len(batches)) < 2 for label in whole)


def test_binary_batches_keep_the_share_of_positives():
    labels = [float(index % 50 < 9) for index in range(20000)]  # 18 %, as in ATEC
    counts = {sum(labels[index] for index in batch) for batch in batches_of(labels, 16)}
    assert counts == {2.0, 3.0}


def test_the_same_seed_and_epoch_give_the_same_batches_and_others_others():
    labels = list(np.random.default_rng(0).integers(0, 6, 200).astype(float))
    first = batches_of(labels, 16, seed=3, epoch=1)
    assert batches_of(labels, 16, seed=3, epoch=1) == first
    assert batches_of(labels, 16, seed=3, epoch=2) != first
    assert batches_of(labels, 16, seed=4, epoch=1) != first
    drawn = {index for epoch in range(8) for batch in batches_of(labels, 16, epoch=epoch) for index in batch}
    assert drawn == set(range(200))  # examples that one epoch leaves out come in another


def test_neighbours_in_label_meet_in_some_epoch():
    labels = [float(index) for index in range(64)]
    met = set()
    for epoch in range(100):
        for batch in batches_of(labels, 16, epoch=epoch):
            met |= set(itertools.combinations(sorted(batch), 2))
    fraction = len(met) / math.comb(64, 2)
    assert fraction > 0.9  # pairs within one part, 6 of each 16th, never do


def test_a_rare_label_shortens_the_epoch_and_every_common_example_has_its_turn():
    labels = [1.0] * 3 + [0.0] * 97
    batches = batches_of(labels, 10)
    assert len(batches) == 3
    assert all(sum(labels[index] for index in batch) == 1 for batch in batches)
    drawn = {index for epoch in range(60) for batch in batches_of(labels, 10, epoch=epoch) for index in batch}
    assert len(drawn) == 100


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_batches(ranks):
    labels = [float(index % 5 == 0) for index in range(333)]
    sampler = LabelAwareBatches(Dataset.from_dict({"sentence1": ["a"] * 333, "label": labels}), 16, seed=1)
    whole = list(sampler)
    shards = [list(BatchSamplerShard(sampler, num_processes=ranks, process_index=rank)) for rank in range(ranks)]
    assert len({len(shard) for shard in shards}) == 1
    dealt = [batch for step in zip(*shards, strict=True) for batch in step]
    assert dealt[: len(whole)] == whole
    assert all(
        len({labels[index] for index in batch}) == 2 for batch in dealt
    )  # also the batches that fill the last step


@pytest.mark.parametrize("ranks", [2, 3])
def test_no_text_comes_twice_in_a_step_of_all_ranks(ranks, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", str(ranks))
    texts = [f"text {index // 2}" for index in range(60)]  # each comes twice
    data = Dataset.from_dict({"anchor": texts, "positive": [f"to {index}" for index in range(60)]})
    generator = torch.Generator()
    sampler = batch_sampler_of("no-duplicates")(data, 4, drop_last=True, generator=generator, seed=1)
    orders = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        shards = [list(BatchSamplerShard(sampler, num_processes=ranks, process_index=rank)) for rank in range(ranks)]
        steps = [list(itertools.chain(*batches)) for batches in zip(*shards, strict=True)]
        assert len(steps) == 60 // (4 * ranks) == len(sampler) / ranks
        assert all(len(step) == 4 * ranks == len({texts[index] for index in step}) for step in steps)
        orders.append(steps)
    assert orders[0] != orders[1]


def test_texts_of_which_none_fill_a_step_of_all_ranks_are_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    data = Dataset.from_dict({"anchor": ["a"] * 9 + ["b"], "positive": [f"to {number}" for number in range(10)]})
    sampler = batch_sampler_of("no-duplicates")(data, 2, drop_last=True, generator=torch.Generator(), seed=1)
    with pytest.raises(DataError, match=r"needs 4 rows .* 2 processes of batch_size 2 .*; received 10 rows"):
        list(sampler)


def test_refusals():
    data = Dataset.from_dict({"sentence1": ["a", "b"], "label": [1.0, 1.0]})
    with pytest.raises(DataError, match=r"need two different labels; received 2 labels, all equal\.$"):
        LabelAwareBatches(data, 2)
    with pytest.raises(DataError, match=r"need a label column; the data have sentence1\. Take random batches\.$"):
        LabelAwareBatches(data.remove_columns("label"), 2)
    with pytest.raises(ConfigError, match=r"needs two examples in a batch; received batch_size 1\.$"):
        LabelAwareBatches(Dataset.from_dict({"label": [0.0, 1.0]}), 1)


@pytest.mark.parametrize(
    ("labels", "size"), [([0, 0, 0, 1, 1], 2), ([0, 0, 0, 0, 1, 2], 3), ([0, 1], 2), ([0, 1, 1, 1], 5), ([0, 1], 1)]
)
def test_share_without_comparison_is_that_of_all_batches(labels, size):
    every = list(itertools.combinations(labels, min(size, len(labels))))
    assert share_without_comparison(labels, size) == pytest.approx(sum(len(set(b)) == 1 for b in every) / len(every))


def test_share_without_comparison_at_the_size_of_atec():
    labels = [1.0] * 3680 + [0.0] * 16320  # 18.4 % of 20000
    assert share_without_comparison(labels, 16) == pytest.approx(0.816**16, rel=1e-2)
    drawn = np.random.default_rng(0).hypergeometric(3680, 16320, 16, size=50000)
    assert share_without_comparison(labels, 16) == pytest.approx((drawn == 0).mean(), abs=0.003)


def neighbour_batches(examples, size=16, epoch=0, drop_last=False):
    """Return batches of unit vectors in ten clusters, and the cluster of each example."""
    random = np.random.default_rng(5)
    clusters = random.integers(0, 10, examples)
    vectors = random.normal(size=(10, 32))[clusters] + 0.1 * random.normal(size=(examples, 32))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    dataset = Dataset.from_dict({"sentence": ["a"] * examples})
    sampler = NeighbourBatches(dataset, size, drop_last, seed=3, vectors=vectors)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    return batches, clusters


@pytest.mark.parametrize("bucket", [16384, 100])
@pytest.mark.parametrize("examples", [1, 8, 403])
def test_each_example_is_once_in_the_batches_of_neighbours(examples, bucket, monkeypatch):
    monkeypatch.setattr(batches_module, "_BUCKET", bucket)
    batches, _ = neighbour_batches(examples)
    assert sorted(itertools.chain(*batches)) == list(range(examples))
    assert all(len(batch) == 16 for batch in batches[:-1])


def test_groups_of_neighbours_are_of_one_cluster_and_batches_of_several():
    batches, clusters = neighbour_batches(800)
    groups = [group for batch in batches for group in np.split(clusters[batch], 2)]
    assert all(len(group) == NEIGHBOURS for group in groups)
    # The last groups of an epoch are of what is left over.
    assert np.mean([len(set(group)) == 1 for group in groups]) > 0.85
    assert np.mean([len(set(clusters[batch])) > 1 for batch in batches]) > 0.85


def test_batches_of_neighbours_are_drawn_again_in_each_epoch_and_alike_for_a_seed():
    assert neighbour_batches(200)[0] == neighbour_batches(200)[0]
    assert neighbour_batches(200)[0] != neighbour_batches(200, epoch=1)[0]


def test_an_unfilled_batch_of_neighbours_is_dropped_on_request():
    assert [len(batch) for batch in neighbour_batches(40, drop_last=True)[0]] == [16, 16]


def test_batches_of_neighbours_need_a_vector_for_each_example():
    with pytest.raises(ValueError, match="3 vectors for 4 examples"):
        NeighbourBatches(Dataset.from_dict({"sentence": ["a"] * 4}), 2, vectors=np.eye(3, dtype=np.float32))
