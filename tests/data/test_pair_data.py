"""Pairs in memory: take, split, concatenate."""

from dataclasses import replace

import numpy as np
import pytest

from samesense.data import concat, read_pairs
from samesense.data.pairs.doctor import examine
from samesense.data.pairs.keys import components, pair_key, text_keys
from samesense.errors import ConfigError, DataError


def put(tmp_path, name, rows, header="subset\tscore\tsentence1\tsentence2"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return read_pairs(path)


@pytest.fixture
def data(tmp_path):
    rows = [f"part {i % 3}\t{i % 6}\tword {i}\tother {i}" for i in range(60)]
    rows += [f"again\t{i % 6}\tOTHER {i}\tWord {i}" for i in range(0, 60, 2)]
    return put(tmp_path, "many.tsv", rows)


def test_take_keeps_order_and_everything_else(data):
    subset = data.take([5, 2])
    assert subset.pairs() == [("word 5", "other 5"), ("word 2", "other 2")]
    assert (subset.labels, subset.subsets, len(subset)) == ([5.0, 2.0], ["part 2", "part 2"], 2)
    assert (subset.kind, subset.scale, subset.source) == (data.kind, data.scale, data.source)
    assert subset.sha256 != data.sha256
    assert data.take(range(len(data))) == data


@pytest.mark.parametrize("seed", range(5))
def test_no_pair_stands_on_both_sides_of_a_split(data, seed):
    train, held = data.split(0.2, seed)
    keys = [{pair_key(*pair) for pair in side.pairs()} for side in (train, held)]
    assert not keys[0] & keys[1]
    assert len(train) + len(held) == 90
    assert 18 <= len(held) <= 19
    assert (train, held) == data.split(0.2, seed)


def test_a_split_has_no_leak_that_the_doctor_would_warn_of(tmp_path):
    rows = [(f"Is it number {number}?", f"number {number}, is it", number % 2) for number in range(60)]
    rows += [(second.upper() + "!", f"is it number {number}", number % 2) for number, (_, second, _) in enumerate(rows)]
    path = tmp_path / "train.tsv"
    path.write_text("sentence1\tsentence2\tlabel\n" + "".join(f"{a}\t{b}\t{c}\n" for a, b, c in rows))
    train, held = read_pairs(path).split(0.2, 0)
    assert examine(train, against={"dev": held}).overlaps == {"dev": 0}
    assert len(held) == 24


def test_a_split_depends_on_the_seed_and_not_on_the_order(data):
    held = data.split(0.2, 1)[1]
    assert held != data.split(0.2, 2)[1]
    backwards = data.take(reversed(range(90))).split(0.2, 1)[1]
    assert sorted(backwards.pairs()) == sorted(held.pairs())


def hanging_together(pairs):
    """Return the connected components of pairs, grown until no further pair shares a sentence."""
    left = set(range(len(pairs)))
    groups = []
    while left:
        group = set()
        texts = set(pairs[min(left)])
        while neighbours := {row for row in left - group if texts & set(pairs[row])}:
            group |= neighbours
            texts |= {text for row in neighbours for text in pairs[row]}
        groups.append(sorted(group))
        left -= group
    return groups


def test_components_are_those_that_grow_one_by_one():
    random = np.random.default_rng(0)
    for texts in (3, 20, 60, 200):
        pairs = [(f"t{first}", f"t{second}") for first, second in random.integers(texts, size=(50, 2))]
        groups = components(*(text_keys(side) for side in zip(*pairs, strict=True)))
        assert [np.flatnonzero(groups == group).tolist() for group in range(groups.max() + 1)] == hanging_together(
            pairs
        )
    assert not len(components(text_keys([]), text_keys([])))


@pytest.mark.parametrize("seed", range(3))
def test_no_sentence_stands_on_both_sides_of_a_split_by_sentences(tmp_path, seed):
    random = np.random.default_rng(seed)
    drawn = random.integers(220, size=(200, 2)).tolist()
    rows = [f"a\t{number % 6}\tText {first}.\ttext {second}" for number, (first, second) in enumerate(drawn)]
    data = put(tmp_path, "shared.tsv", rows)
    train, held = data.split(0.05, seed, apart="sentences")
    assert 5 <= len(held) <= 10
    assert examine(train, against={"dev": held}).shared_sentences == {"dev": 0}
    backwards = data.take(reversed(range(200))).split(0.05, seed, apart="sentences")[1]
    assert sorted(backwards.pairs()) == sorted(held.pairs())


def test_pairs_that_all_hang_together_are_not_split_by_sentences(tmp_path):
    data = put(tmp_path, "star.tsv", [f"a\t{number % 6}\tone\tother {number}" for number in range(50)])
    with pytest.raises(
        DataError, match=r"50 rows with 50 different pairs cannot be split.*since 50 are connected by shared"
    ):
        data.split(0.1, 0, apart="sentences")


def test_a_split_by_sentences_that_holds_out_less_than_half_of_what_was_asked_for_is_refused(tmp_path):
    rows = [f"a\t{number % 3}\thub\ts{number}" for number in range(94)] + [
        f"a\t{number % 3}\tx{number}\ty{number}" for number in range(6)
    ]
    data = put(tmp_path, "hub.tsv", rows)
    with pytest.raises(DataError, match="cannot be split into two parts, since 94 are connected"):
        data.split(0.2, 0, apart="sentences")
    assert [len(split) for split in data.split(0.1, 0, apart="sentences")] == [94, 6]


def test_a_split_that_cannot_be_made_is_refused(data):
    with pytest.raises(ConfigError) as caught:
        data.split(1.5, 0)
    assert str(caught.value) == "The share to hold out must lie between 0 and 1; received 1.5. Example: 0.1"
    with pytest.raises(DataError) as refused:
        data.take([0, 60]).split(0.5, 0, apart="pairs")
    assert str(refused.value) == (
        f"{data.source}: 2 rows with 1 different pairs cannot be split into two parts. "
        "Give a file with more pairs, or a dev file of its own."
    )


def test_an_empty_subset_column_counts_as_none(tmp_path):
    assert put(tmp_path, "none.tsv", ["\t1\ta\tb", "\t0\tc\td"]).subsets is None


def test_concat_joins_rows_and_counts(tmp_path):
    first = put(tmp_path, "first.tsv", ["x\t1\ta\tb", "y\t0\tc\td"])
    second = put(tmp_path, "second.tsv", ["e\tf\t1", "g\th\t0"], "text1\ttext2\tlabel")
    joined = concat([first, second])
    assert joined.pairs() == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    assert (joined.labels, joined.subsets) == ([1.0, 0.0, 1.0, 0.0], ["x", "y", "", ""])
    assert (joined.label_column, joined.name) == ("score + label", "first.tsv + second.tsv")
    assert joined.take([0, 1]).sha256 == first.sha256


def test_what_is_known_of_parts_is_known_of_the_whole(data):
    flagged = replace(data, own_scale=True, dropped=2, dropped_unlabelled=1)
    joined = concat([flagged, replace(flagged, own_scale=False, dropped=3)])
    assert (joined.own_scale, joined.dropped, joined.dropped_unlabelled) == (True, 5, 2)


def test_concat_refuses_labels_that_cannot_be_compared(tmp_path):
    binary = put(tmp_path, "binary.tsv", ["x\t1\ta\tb", "y\t0\tc\td"])
    scored = put(tmp_path, "scored.tsv", ["x\t5\ta\tb", "y\t0\tc\td"])
    with pytest.raises(DataError) as caught:
        concat([binary, scored])
    assert str(caught.value) == (
        f"Labels can be joined only if they are of one kind and scale; {binary.source} is binary on (0, 1) and "
        f"{scored.source} is scored on (0, 5). Give one scale to all as `label_range` LOW HIGH, train on them apart, "
        "or rescale one file."
    )
    with pytest.raises(DataError) as empty:
        concat([])
    assert str(empty.value) == "There is nothing to join: no data was given. Give at least one source."
