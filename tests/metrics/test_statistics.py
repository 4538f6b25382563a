"""Average precision and F1 under resampling: the same figures as one by one, intervals and tests that hold."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from samesense.errors import ConfigError, DataError
from samesense.metrics import bootstrap_interval, paired_bootstrap, paired_seeds
from samesense.metrics.resampling import resamples
from samesense.metrics.statistics import STATISTICS

BINARY = ("average_precision", "f1")


def made(n, noise=1.0, seed=0):
    """Return scores with ties, decisions, and labels; three labels in ten are positive."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) % 10 < 3).astype(float)
    scores = np.round(labels + noise * rng.normal(size=n), 1)
    return {"average_precision": scores, "f1": (scores >= 0.5).astype(float)}, labels


@pytest.mark.parametrize("statistic", BINARY)
@pytest.mark.parametrize("n", [6, 200])
def test_each_resample_has_the_figure_of_scikit_learn(statistic, n):
    values, labels = made(n)
    reference = {"average_precision": average_precision_score, "f1": f1_score}[statistic]
    undefined = 0
    for rows in resamples(n, 100, 0):
        figure = STATISTICS[statistic]
        drawn = figure.resample(rows, figure.prepare_scores(values[statistic]), figure.prepare_labels(labels))
        for row, value in zip(rows, drawn, strict=True):
            both = 0 < labels[row].sum() < n
            undefined += not both
            expected = reference(labels[row], values[statistic][row]) if both else np.nan
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert (undefined > 0) == (n == 6)


@pytest.mark.parametrize("statistic", BINARY)
def test_intervals_cover_the_figure_of_the_population(statistic):
    values, labels = made(20_000)
    population = STATISTICS[statistic].value(values[statistic], labels)
    rng = np.random.default_rng(1)
    covered = 0
    for trial in range(100):
        rows = rng.integers(0, len(labels), 200)
        low, high = bootstrap_interval(values[statistic][rows], labels[rows], statistic, samples=200, seed=trial)
        covered += low <= population <= high
    assert 86 <= covered <= 100


@pytest.mark.parametrize("statistic", BINARY)
def test_a_clear_difference_is_shown_and_equal_models_are_not_told_apart(statistic):
    good, labels = made(300, 0.5)
    poor, _ = made(300, 3.0, seed=1)
    comparison = paired_bootstrap(good[statistic], poor[statistic], labels, statistic)
    figure = STATISTICS[statistic].value
    assert comparison.difference == figure(good[statistic], labels) - figure(poor[statistic], labels)
    assert comparison.low > 0 and comparison.p_value < 0.01
    same = paired_bootstrap(good[statistic], good[statistic], labels, statistic)
    assert (same.low, same.high, same.p_value) == (0, 0, 1)
    small = 0
    for trial in range(100):
        first, second = (made(100, 1.0, seed=1000 * side + trial)[0][statistic] for side in (1, 2))
        labels = made(100)[1]
        small += paired_bootstrap(first, second, labels, statistic, samples=200, seed=trial).p_value <= 0.05
    assert small <= 12


def test_two_or_three_pairs_show_nothing():
    comparison = paired_bootstrap([1.0, 0.0, 0.1], [0.0, 1.0, 0.9], [1, 0, 0], "average_precision")
    assert comparison.p_value >= 2 / 3


def test_seeds_are_compared_by_average_precision():
    labels = made(200)[1]
    good, poor = ([made(200, noise, seed=seed)[0]["average_precision"] for seed in range(3)] for noise in (0.4, 3.0))
    assert paired_seeds(good, poor, labels, "average_precision").p_value < 0.05


def test_what_is_undefined_or_unknown_is_refused():
    with pytest.raises(DataError, match="2 positives among 2"):
        bootstrap_interval([0.1, 0.2], [1, 1], "f1")
    with pytest.raises(ConfigError, match="'spearman', 'pearson', 'average_precision' or 'f1', got 'recall'"):
        bootstrap_interval([0.1, 0.2], [0, 1], "recall")
