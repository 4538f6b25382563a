"""Overlap with other data: pairs of a test that are trained on."""

from types import SimpleNamespace

from samesense.data.overlap import count_trained_pairs
from tests.data.made import pair_data

TEST = pair_data([("a", "b", 1.0), ("c", "d", 2.0), ("e", "f", 3.0)], "scored")


def test_pairs_are_found_whichever_sentence_comes_first_and_however_they_are_spelled():
    turned = pair_data([("B!", "A", 0.0), ("d", "C.", 0.0), ("f", "e", 5.0)], "scored")
    assert count_trained_pairs(TEST, turned) == 3
    assert count_trained_pairs(TEST, pair_data([("a", "d", 1.0), ("c", "b", 2.0)], "scored")) == 0


def test_a_pair_that_comes_twice_counts_twice():
    twice = pair_data([("a", "b", 1.0), ("B!", "A", 2.0), ("c", "d", 3.0)], "scored")
    assert count_trained_pairs(twice, pair_data([("b", "a", 0.0)], "scored")) == 2


def test_pairs_are_found_in_every_part_of_several_data():
    several = (TEST.take([0]), pair_data([("x", "y", 1.0)], "scored"), TEST.take([2]))
    assert count_trained_pairs(TEST, SimpleNamespace(parts=[SimpleNamespace(data=dataset) for dataset in several])) == 2
