"""Comparisons of the mean outcomes of two models."""

import numpy as np
import pytest
import scipy.stats

from samesense.errors import ConfigError, DataError
from samesense.metrics import mean_interval, paired_bootstrap, paired_mean, resampling
from samesense.metrics.resampling import resamples


def outcomes(n, rate, seed=0):
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def test_the_means_are_those_of_the_drawn_examples():
    first = outcomes(50, 0.8)
    second = np.random.default_rng(1).random(50)
    means = []
    for drawn in resamples(50, 200, seed=3):
        for rows in drawn:
            means.append(first[rows].mean() - second[rows].mean())
    comparison = paired_mean(first, second, samples=200, seed=3)
    assert comparison.difference == pytest.approx(first.mean() - second.mean(), abs=1e-14)
    assert (comparison.low, comparison.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=1e-12)
    smaller = min(np.sum(np.array(means) <= 0), np.sum(np.array(means) >= 0))
    assert comparison.p_value == pytest.approx(min(1, 2 * (smaller + 1) / 201))


def test_mean_interval_is_that_of_scipy():
    values = np.random.default_rng(0).random(300)
    expected = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=1, n_resamples=5000)
    interval = mean_interval(values, samples=5000)
    assert interval == pytest.approx(tuple(expected.confidence_interval), abs=0.003)
    wide = mean_interval(values, level=0.99)
    assert wide[0] < interval[0] < values.mean() < interval[1] < wide[1]


@pytest.mark.parametrize("n", [5, 55])
def test_what_is_always_right_has_the_exact_interval_of_a_share(n):
    always = scipy.stats.binomtest(n, n).proportion_ci(0.95, method="exact")
    assert mean_interval([1.0] * n) == pytest.approx((always.low, always.high))
    assert mean_interval([0.0] * n) == pytest.approx((1 - always.high, 1 - always.low))
    assert mean_interval([0.5] * n) == (0.5, 0.5)


@pytest.mark.parametrize(("n", "least"), [(3, 1 / 3), (4, 1 / 12)])
def test_a_few_pairs_in_order_are_no_proof(n, least):
    up = [float(number) for number in range(n)]
    assert paired_bootstrap(up, up[::-1], up, "spearman").p_value == pytest.approx(least)


def test_a_clear_difference_of_means_and_its_mirror():
    good = outcomes(500, 0.9)
    bad = outcomes(500, 0.6, seed=1)
    comparison = paired_mean(good, bad)
    turned = paired_mean(bad, good)
    assert 0 < comparison.low < comparison.difference < comparison.high
    assert comparison.p_value == turned.p_value == 2 / 1001
    assert (turned.low, turned.high) == pytest.approx((-comparison.high, -comparison.low))


def test_no_difference_between_a_model_and_itself():
    values = outcomes(100, 0.7)
    comparison = paired_mean(values, values, samples=200)
    assert (comparison.difference, comparison.low, comparison.high, comparison.p_value) == (0, 0, 0, 1)


def test_means_find_nothing_as_often_as_promised():
    small = 0
    for trial in range(300):
        first = outcomes(200, 0.7, seed=trial)
        second = outcomes(200, 0.7, seed=1000 + trial)
        small += paired_mean(first, second, samples=200, seed=trial).p_value <= 0.05
    assert 0.01 <= small / 300 <= 0.1


def test_blocks_do_not_change_the_means(monkeypatch):
    values = np.random.default_rng(0).random(101)
    whole = mean_interval(values, samples=50)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 700)
    assert mean_interval(values, samples=50) == pytest.approx(whole, abs=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: paired_mean([1, 0], [1, 0, 1]), DataError, "the same examples, got 2 and 3"),
        (lambda: paired_mean([1], [0]), DataError, "at least 2 examples, got 1 values_a"),
        (lambda: paired_mean([1, 0], [1, np.nan]), DataError, r"values_b\[1\] is nan"),
        (lambda: mean_interval([]), DataError, "at least 2 examples, got 0"),
        (lambda: mean_interval([0, 1], level=2), ConfigError, "level"),
        (lambda: paired_mean([1, 0], [1, 1], samples=0), ConfigError, "samples"),
    ],
)
def test_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()
