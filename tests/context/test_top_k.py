"""The highest scores are those that a full sort puts first."""

import numpy as np
import pytest

from samesense.context.retrieval.postings import top_k


@pytest.mark.parametrize("most", [1, 7, 60, 199, 200, 1000])
def test_the_highest_of_many_ties_are_those_of_a_sort(most):
    scores = np.random.default_rng(most).integers(0, 9, 200) / 4
    expected = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:most]
    assert top_k(scores, most).tolist() == expected


def test_scores_that_differ_in_their_last_bits_are_equal():
    scores = np.array([0.5, 0.7, 0.7 + 1e-13, 0.7 - 1e-13, -np.inf])
    assert top_k(scores, 2).tolist() == [1, 2]
    assert top_k(scores, 5).tolist() == [1, 2, 3, 0, 4]


def test_nothing_has_no_highest():
    assert top_k(np.zeros(0), 3).tolist() == []
