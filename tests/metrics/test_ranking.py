import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from samesense.errors import ConfigError, DataError
from samesense.metrics import kendall, ndcg
from tests.references import ranking as reference

EXAMPLE = [0.93, 0.94, 0.45, 0.47, 0.46], [4.8, 3.6, 1.6, 1.4, 1.0]
"""Scores and labels of the worked example of RankCSE, Table 1."""

LISTS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 5)), min_size=2, max_size=6)


def data(n, levels, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) * 5 if levels is None else rng.integers(0, levels, n).astype(float)
    scores = labels + 2 * rng.normal(size=n)
    return (scores if levels is None else np.round(scores)), labels


def test_worked_example():
    assert kendall(*EXAMPLE) == pytest.approx(0.40, abs=1e-12)
    assert ndcg(*EXAMPLE) == pytest.approx(0.9455, abs=5e-5)
    assert ndcg(*EXAMPLE, gain="exponential") == pytest.approx(0.8366, abs=5e-5)


def test_kendall_of_two_items():
    assert kendall([1, 2], [0, 5]) == 1.0
    assert kendall([2, 1], [0, 5]) == -1.0


def test_kendall_at_full_size():
    scores, labels = data(5000, 6)
    by_definition = scipy.stats.somersd(labels, scores).statistic * scipy.stats.somersd(scores, labels).statistic
    assert kendall(scores, labels) ** 2 == pytest.approx(by_definition, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(LISTS)
def test_kendall_of_small_lists_with_ties(items):
    scores, labels = zip(*items, strict=True)
    assume(len(set(scores)) > 1 and len(set(labels)) > 1)
    assert kendall(scores, labels) == pytest.approx(reference.kendall(scores, labels), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(LISTS, st.sampled_from(["linear", "exponential"]))
def test_ndcg_is_the_mean_over_all_orders_that_the_scores_allow(items, gain):
    scores, labels = zip(*items, strict=True)
    assume(any(labels))
    assert ndcg(scores, labels, gain) == pytest.approx(reference.ndcg_over_all_orders(scores, labels, gain), abs=1e-12)


def test_ndcg_equals_scikit_learn():
    for levels, n in itertools.product([2, 6, None], [4, 37, 2000]):
        scores, labels = data(n, levels)
        assert ndcg(scores, labels) == pytest.approx(ndcg_score([labels], [scores]), abs=1e-12)
        assert ndcg(scores, labels, "exponential") == pytest.approx(ndcg_score([2**labels - 1], [scores]), abs=1e-12)


def test_large_labels_do_not_overflow():
    assert ndcg([2, 1], [900, 800], "exponential") == pytest.approx(1.0)
    assert ndcg([1, 2], [1e300, 1e300]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("labels", "gain", "error", "text"),
    [
        ([0, 0], "linear", DataError, "undefined because all 2 labels are 0"),
        ([1, -0.5], "linear", DataError, r"labels\[1\] is -0.5"),
        ([1, 2000], "exponential", DataError, "too large for a label of 2000"),
        ([1, 2], "log", ConfigError, "'log'"),
    ],
)
def test_ndcg_refuses(labels, gain, error, text):
    with pytest.raises(error, match=text):
        ndcg([0.1, 0.2], labels, gain)


def test_ndcg_refuses_a_single_item():
    with pytest.raises(DataError, match="at least 2 items, got 1"):
        ndcg([0.5], [3])
