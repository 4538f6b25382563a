"""Comparisons of two models: means of outcomes, and swaps of scores."""

import itertools

import numpy as np
import pytest
import scipy.stats

from samesense.errors import ConfigError, DataError
from samesense.metrics import (
    mean_interval,
    paired_bootstrap,
    paired_mean,
    paired_permutation,
    pearson,
    resampling,
    spearman,
)
from samesense.metrics.resampling import resamples

CORRELATIONS = {"spearman": spearman, "pearson": pearson}


def outcomes(n, rate, seed=0):
    return (np.random.default_rng(seed).random(n) < rate).astype(float)


def scored(n, first_noise=1.0, second_noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, n).astype(float)
    first, second = (np.round(labels + noise * rng.normal(size=n), 1) for noise in (first_noise, second_noise))
    return first, 10 * second + 3, labels  # two models in different units


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
    first, _, labels = scored(100)
    for statistic in CORRELATIONS:
        same = paired_permutation(first, 7 * first - 2, labels, statistic, samples=200)
        assert same.difference == pytest.approx(0, abs=1e-12)
        assert same.p_value == 1.0


@pytest.mark.parametrize("statistic", CORRELATIONS)
def test_swaps_equal_every_possible_swap_of_a_few_pairs(statistic):
    first, second, labels = scored(9, 0.5, 3.0, seed=4)
    first = first**5  # another shape, so that one unit is not another's multiple
    first_scores, second_scores = (
        scipy.stats.rankdata(side) if statistic == "spearman" else scipy.stats.zscore(side) for side in (first, second)
    )
    correlate = {"spearman": scipy.stats.spearmanr, "pearson": scipy.stats.pearsonr}[statistic]
    observed = correlate(first_scores, labels).statistic - correlate(second_scores, labels).statistic
    larger = []
    for signs in itertools.product([False, True], repeat=9):
        left = np.where(signs, first_scores, second_scores)
        right = np.where(signs, second_scores, first_scores)
        larger.append(
            abs(correlate(left, labels).statistic - correlate(right, labels).statistic) >= abs(observed) - 1e-12
        )
    comparison = paired_permutation(first, second, labels, statistic, samples=8000)
    assert comparison.difference == pytest.approx(observed, abs=1e-12)
    assert comparison.p_value == pytest.approx(np.mean(larger), abs=0.02)


@pytest.mark.parametrize("statistic", CORRELATIONS)
def test_swaps_find_a_clear_difference(statistic):
    first, second, labels = scored(300, 0.5, 3.0)
    comparison = paired_permutation(first, second, labels, statistic)
    assert comparison.difference == CORRELATIONS[statistic](first, labels) - CORRELATIONS[statistic](second, labels)
    assert comparison.p_value == 1 / 1001
    assert paired_permutation(second, first, labels, statistic).p_value == comparison.p_value


def test_swaps_find_nothing_as_often_as_promised():
    small = 0
    for trial in range(200):
        first, second, labels = scored(80, seed=trial)
        small += paired_permutation(first, second, labels, "spearman", samples=200, seed=trial).p_value <= 0.05
    assert 0.005 <= small / 200 <= 0.11


def test_means_find_nothing_as_often_as_promised():
    small = 0
    for trial in range(300):
        first = outcomes(200, 0.7, seed=trial)
        second = outcomes(200, 0.7, seed=1000 + trial)
        small += paired_mean(first, second, samples=200, seed=trial).p_value <= 0.05
    assert 0.01 <= small / 300 <= 0.1


@pytest.mark.parametrize("statistic", CORRELATIONS)
def test_blocks_do_not_change_the_swaps(monkeypatch, statistic):
    first, second, labels = scored(101, 1.0, 1.1)
    whole = paired_permutation(first, second, labels, statistic, samples=50)
    monkeypatch.setattr("samesense.metrics.permutation.BLOCK_CELLS", 700)
    assert paired_permutation(first, second, labels, statistic, samples=50) == whole


def test_blocks_do_not_change_the_means(monkeypatch):
    values = np.random.default_rng(0).random(101)
    whole = mean_interval(values, samples=50)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 700)
    assert mean_interval(values, samples=50) == pytest.approx(whole, abs=1e-14)


def test_a_swap_without_a_correlation_counts_against_a_difference():
    # half of the swaps leave one model with equal scores
    comparison = paired_permutation([1, 2], [2, 1], [0, 1], "spearman", samples=400)
    assert (comparison.difference, comparison.p_value) == (2.0, 1.0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: paired_mean([1, 0], [1, 0, 1]), DataError, "the same examples, got 2 and 3"),
        (lambda: paired_mean([1], [0]), DataError, "at least 2 examples, got 1 values_a"),
        (lambda: paired_mean([1, 0], [1, np.nan]), DataError, r"values_b\[1\] is nan"),
        (lambda: mean_interval([]), DataError, "at least 2 examples, got 0"),
        (lambda: mean_interval([0, 1], level=2), ConfigError, "level"),
        (lambda: paired_mean([1, 0], [1, 1], samples=0), ConfigError, "samples"),
        (lambda: paired_permutation([1, 2], [1, 2], [1, 2], "tau"), ConfigError, "'tau'"),
        (lambda: paired_permutation([1, 2], [1, 2], [1, 2], "pearson", seed=-1), ConfigError, "seed"),
        (lambda: paired_permutation([1, 1], [1, 2], [1, 2], "pearson"), DataError, "scores are all 1"),
        (lambda: paired_permutation([1, 2, 3], [1, 2], [1, 2, 3], "pearson"), DataError, "2 scores and 3 labels"),
    ],
)
def test_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()
