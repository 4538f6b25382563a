import itertools

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss
from sklearn.metrics import mean_absolute_error as sklearn_mae

from samesense.errors import DataError
from samesense.metrics.calibration import calibration_error, mean_absolute_error, mean_squared_error, reliability
from tests.references import calibration as reference

RNG = np.random.default_rng(5)


def made(n, digits=9):
    values = np.round(RNG.uniform(0, 1, n), digits)
    return values, (RNG.uniform(size=n) < values**2).astype(float)


def test_error_agrees_with_plain_loops_with_ties_and_without():
    for digits, n in itertools.product([1, 2, 9], [1, 7, 10, 1003, 5000]):
        values, labels = made(n, digits)
        assert calibration_error(values, labels) == pytest.approx(
            reference.calibration_error(values, labels), abs=1e-12
        )
        assert calibration_error(5 * values, 5 * labels) == pytest.approx(
            5 * calibration_error(values, labels), abs=1e-12
        )


def test_bins_without_ties_are_those_of_scikit_learn():
    values, labels = made(4000)
    bins = reliability(values, labels)
    observed, predicted = calibration_curve(labels, values, n_bins=10, strategy="quantile")
    np.testing.assert_allclose(bins.labels, observed, atol=1e-12)
    np.testing.assert_allclose(bins.values, predicted, atol=1e-12)
    assert bins.counts.tolist() == [400] * 10
    np.testing.assert_allclose(bins.deviations, np.sqrt(bins.labels * (1 - bins.labels)), atol=1e-12)


def test_equal_values_share_a_bin_and_none_is_empty():
    values = np.repeat([0.1, 0.5, 0.9], [950, 25, 25])
    bins = reliability(values, np.arange(1000.0))
    assert bins.counts.tolist() == [950, 50]
    assert bins.values[1] == pytest.approx(0.7)
    assert reliability([0.3] * 8, range(8)).counts.tolist() == [8]


def test_right_on_average_is_no_error_and_the_order_decides_nothing():
    values = np.repeat([0.25, 0.75], 400)
    labels = np.tile([1, 0, 0, 0], 100).tolist() + np.tile([1, 1, 1, 0], 100).tolist()
    assert calibration_error(values, labels) == pytest.approx(0, abs=1e-15)
    values, labels = made(500, 2)
    order = RNG.permutation(500)
    shuffled = calibration_error(values[order], labels[order])
    assert shuffled == pytest.approx(calibration_error(values, labels), abs=1e-14)


def test_distances_are_those_of_scikit_learn():
    values, labels = made(3000)
    assert mean_squared_error(values, labels) == pytest.approx(brier_score_loss(labels, values), abs=1e-14)
    assert mean_absolute_error(values, labels) == pytest.approx(sklearn_mae(labels, values), abs=1e-14)


@pytest.mark.parametrize("metric", [calibration_error, mean_absolute_error, mean_squared_error, reliability])
def test_what_is_undefined_is_refused(metric):
    for values in [[], [float("nan"), 1.0], [1.0]]:
        with pytest.raises(DataError):
            metric(values, [0.0, 1.0] if values else [])
