import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from samesense.errors import DataError
from samesense.metrics import pearson, spearman
from samesense.metrics.correlation import average_ranks

ORACLES = {spearman: scipy.stats.spearmanr, pearson: scipy.stats.pearsonr}


def data(n, levels, seed=0):
    """Scores related to labels, both with the wanted number of distinct values (None: no ties)."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) if levels is None else rng.integers(0, levels, n).astype(float)
    scores = labels + rng.normal(size=n)
    if levels is not None:
        scores = np.round(scores)
    labels[:2], scores[:2] = [0, 1], [0, 1]  # never constant
    return scores, labels


def test_by_hand():
    # ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, spreads 4.5 and 5
    assert spearman([1, 5, 5, 9], [0, 1, 2, 3]) == pytest.approx(4.5 / math.sqrt(4.5 * 5), abs=1e-15)
    # deviations -1, 0, 1 against -2, 1, 1
    assert pearson([1, 2, 3], [0, 3, 3]) == pytest.approx(3 / math.sqrt(2 * 6), abs=1e-15)
    assert average_ranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4, 1, 4, 2, 4]


@pytest.mark.parametrize("metric", ORACLES)
def test_equals_scipy(metric):
    for levels, n in itertools.product([2, 6, None], [2, 31, 100_000]):
        scores, labels = data(n, levels)
        assert metric(scores, labels) == pytest.approx(ORACLES[metric](scores, labels).statistic, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=2, max_size=30))
def test_spearman_equals_scipy_on_small_integers(pairs):
    scores, labels = zip(*pairs, strict=True)
    assume(len(set(scores)) > 1 and len(set(labels)) > 1)
    assert spearman(scores, labels) == pytest.approx(scipy.stats.spearmanr(scores, labels).statistic, abs=1e-12)


def test_large_integers_do_not_overflow():
    labels = np.array([0, 1] * 50_000, dtype=np.int8)
    assert spearman(labels, labels) == 1.0
    assert spearman(-labels.astype(np.int32), labels) == -1.0


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200, 1e307])
def test_pearson_of_extreme_magnitudes(factor):
    plain = np.array([1.0, 2.0, 4.0, 3.0])
    assert pearson(factor * plain, [1, 2, 3, 4]) == pytest.approx(pearson(plain, [1, 2, 3, 4]), abs=1e-9)


def test_pearson_of_a_small_spread_far_from_zero():
    plain = np.array([1.0, 2.0, 4.0, 3.0])
    assert pearson(plain + 2.0**40, [1, 2, 3, 4]) == pytest.approx(pearson(plain, [1, 2, 3, 4]), abs=1e-12)


@pytest.mark.parametrize("values", [[[1, 2], [3, 4]], ["a", "b"], [[1], [2, 3]]])
def test_refuses_what_is_no_vector(values):
    with pytest.raises(DataError, match="scores must be a flat list of numbers"):
        spearman(values, [1, 2])
