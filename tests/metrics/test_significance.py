import numpy as np
import pytest
import scipy.stats

from samesense.errors import ConfigError, DataError
from samesense.metrics import bootstrap_interval, paired_bootstrap, resampling, spearman
from samesense.metrics.resampling import resamples
from samesense.metrics.statistics import STATISTICS

ORACLES = {"spearman": scipy.stats.spearmanr, "pearson": scipy.stats.pearsonr}


def data(n, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, n).astype(float)
    return np.round(labels + noise * rng.normal(size=n), 1), labels


@pytest.mark.parametrize("statistic", ORACLES)
def test_a_resample_equals_scipy_on_the_drawn_rows(statistic):
    scores, labels = data(40)
    drawn = next(resamples(40, 20, seed=5))
    figure = STATISTICS[statistic]
    values = figure.resample(drawn, figure.prepare_scores(scores), figure.prepare_labels(labels))
    for rows, value in zip(drawn, values, strict=True):
        assert len(rows) == 40
        assert value == pytest.approx(ORACLES[statistic](scores[rows], labels[rows]).statistic, abs=1e-12)


@pytest.mark.parametrize("statistic", ORACLES)
def test_a_constant_resample_is_undefined(statistic):
    scores = np.array([0.1, 0.2, 0.7])
    labels = np.array([1.0, 1.0, 2.0])
    drawn = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [2, 2, 2]])
    figure = STATISTICS[statistic]
    values = figure.resample(drawn, figure.prepare_scores(scores), figure.prepare_labels(labels))
    assert np.isnan(values).tolist() == [True, True, False, True]


@pytest.mark.parametrize("statistic", ORACLES)
def test_blocks_do_not_change_the_numbers(monkeypatch, statistic):
    scores, labels = data(101)
    whole = bootstrap_interval(scores, labels, statistic, samples=50)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", 700)
    assert bootstrap_interval(scores, labels, statistic, samples=50) == pytest.approx(whole, abs=1e-13)


def test_the_seed_fixes_the_interval():
    scores, labels = data(80)
    first = bootstrap_interval(scores, labels, "spearman", samples=100)
    assert bootstrap_interval(scores, labels, "spearman", samples=100) == first
    assert bootstrap_interval(scores, labels, "spearman", samples=100, seed=1) != first


def test_a_higher_level_is_wider_and_holds_the_value():
    scores, labels = data(200)
    low, high = bootstrap_interval(scores, labels, "spearman")
    wide_low, wide_high = bootstrap_interval(scores, labels, "spearman", level=0.99)
    assert wide_low < low < spearman(scores, labels) < high < wide_high


@pytest.mark.parametrize("statistic", ORACLES)
def test_covers_the_true_correlation_about_as_often_as_promised(statistic):
    rng = np.random.default_rng(11)
    rho = 0.6
    covered = 0
    truth = rho if statistic == "pearson" else 6 / np.pi * np.arcsin(rho / 2)
    for trial in range(200):
        x, noise = rng.normal(size=(2, 100))
        low, high = bootstrap_interval(x, rho * x + np.sqrt(1 - rho**2) * noise, statistic, samples=200, seed=trial)
        covered += low <= truth <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_takes_many_rows():
    scores, labels = data(20_000)
    low, high = bootstrap_interval(scores, labels, "spearman", samples=60)
    assert low < spearman(scores, labels) < high
    assert high - low < 0.02


def test_refuses_if_most_resamples_are_undefined():
    seed = _seed_with_most_resamples_constant()
    with pytest.raises(DataError, match=r"undefined on 5\d\d of 1000 resamples"):
        bootstrap_interval([0, 1], [0, 1], "spearman", seed=seed)


def _seed_with_most_resamples_constant():
    for seed in range(20):
        drawn = np.concatenate(list(resamples(2, 1000, seed)))
        if (drawn[:, 0] != drawn[:, 1]).sum() < 500:
            return seed
    raise AssertionError


@pytest.mark.parametrize(
    ("setting", "text"),
    [({"samples": 0}, "samples"), ({"level": 1.0}, "level"), ({"seed": -1}, "seed"), ({"statistic": "tau"}, "'tau'")],
)
def test_refuses_settings_out_of_range(setting, text):
    with pytest.raises(ConfigError, match=text):
        bootstrap_interval(*data(20), **{"statistic": "spearman", **setting})


def test_paired_finds_a_clear_difference():
    good, labels = data(300, noise=0.5)
    bad, _ = data(300, noise=3.0)
    comparison = paired_bootstrap(good, bad, labels, "spearman")
    assert comparison.difference == pytest.approx(spearman(good, labels) - spearman(bad, labels))
    assert 0 < comparison.low < comparison.difference < comparison.high
    assert comparison.p_value == 2 / 1001
    turned = paired_bootstrap(bad, good, labels, "spearman")
    assert (turned.low, turned.high) == pytest.approx((-comparison.high, -comparison.low))
    assert turned.p_value == comparison.p_value


def test_paired_finds_none_between_a_model_and_itself():
    scores, labels = data(100)
    comparison = paired_bootstrap(scores, 2 * scores, labels, "spearman", samples=200)
    assert (comparison.difference, comparison.low, comparison.high, comparison.p_value) == (0, 0, 0, 1)


def test_paired_p_values_are_small_as_often_as_promised_without_a_difference():
    rng = np.random.default_rng(2)
    small = 0
    for trial in range(200):
        truth = rng.normal(size=100)
        first, second = truth + rng.normal(size=(2, 100))
        small += paired_bootstrap(first, second, truth, "pearson", samples=200, seed=trial).p_value <= 0.05
    assert 0.005 <= small / 200 <= 0.11


@pytest.mark.parametrize("statistic", ["average_precision", "f1"])
def test_thousands_of_balanced_pairs_are_compared(statistic):
    """The number of placements of their positives is beyond any float."""
    labels = np.tile([0.0, 1.0], 1000)
    noise = np.random.default_rng(0).normal(size=(2, 2000))
    better, worse = labels + noise[0] > 0.5, labels + 3 * noise[1] > 0.5
    compared = paired_bootstrap(better.astype(float), worse.astype(float), labels, statistic, samples=200)
    assert compared.difference > 0 and 0 <= compared.p_value < 0.02
