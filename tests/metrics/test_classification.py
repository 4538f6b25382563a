import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, precision_score, recall_score

from samesense.errors import ConfigError, DataError
from samesense.metrics import (
    accuracy_at,
    average_precision,
    best_threshold,
    f1_at,
    precision_at,
    recall_at,
)
from tests.references import classification as reference

MEASURES = {"accuracy": accuracy_at, "f1": f1_at}


def data(n, decimals, positive_rate=0.3, seed=0):
    """Scores with ties (few decimals) or hardly any (many)."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < positive_rate).astype(float)
    labels[:2] = [0, 1]
    return np.round(labels + rng.normal(size=n), decimals), labels


def test_average_precision_equals_scikit_learn():
    for decimals, n in itertools.product([0, 1, 12], [2, 31, 40_000]):
        scores, labels = data(n, decimals)
        assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


@pytest.mark.parametrize("metric", MEASURES)
def test_no_other_threshold_is_better(metric):
    for decimals, positive_rate in itertools.product([0, 1, 12], [0.05, 0.5, 0.95]):
        scores, labels = data(150, decimals, positive_rate)
        reached = MEASURES[metric](scores, labels, best_threshold(scores, labels, metric))
        assert reached == pytest.approx(reference.best_value(scores, labels, metric), abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=12), st.sampled_from([*MEASURES])
)
def test_no_other_threshold_is_better_on_small_integers(items, metric):
    scores, labels = zip(*items, strict=True)
    assume(len(set(labels)) == 2)
    reached = MEASURES[metric](scores, labels, best_threshold(scores, labels, metric))
    assert reached == pytest.approx(reference.best_value(scores, labels, metric), abs=1e-12)


@pytest.mark.parametrize("threshold", [-np.inf, -0.3, 0.4, 1.0, np.inf])
def test_measures_equal_scikit_learn(threshold):
    scores, labels = data(5000, 1)
    called = (scores >= threshold).astype(float)
    assert accuracy_at(scores, labels, threshold) == pytest.approx(accuracy_score(labels, called), abs=1e-14)
    assert f1_at(scores, labels, threshold) == pytest.approx(f1_score(labels, called), abs=1e-14)
    precision = precision_score(labels, called, zero_division=1)
    assert precision_at(scores, labels, threshold) == pytest.approx(precision, abs=1e-14)
    assert recall_at(scores, labels, threshold) == pytest.approx(recall_score(labels, called), abs=1e-14)


def test_the_threshold_lies_midway():
    assert best_threshold([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]) == pytest.approx(0.5)
    assert best_threshold([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], "f1") == pytest.approx(0.5)


def test_of_equally_good_thresholds_the_highest():
    # above 3 and above 1 both tell three of four right
    assert best_threshold([4, 3, 2, 1], [1, 0, 1, 0]) == 3.5


def test_everything_or_nothing_positive():
    assert best_threshold([1, 2, 3, 4], [1, 1, 1, 0]) == -np.inf
    assert best_threshold([1, 2, 3, 4], [1, 0, 0, 0]) == np.inf
    assert best_threshold([1, 2, 3, 4], [1, 0, 0, 0], "f1") == -np.inf


def test_neighbouring_floats_stay_apart():
    low = 1.0
    high = np.nextafter(1.0, 2)
    for pair in ([low, high], [-high, -low], [0.0, 5e-324]):
        assert accuracy_at(pair, [0, 1], best_threshold(pair, [0, 1])) == 1.0


def test_accuracy_and_f1_may_want_other_thresholds():
    scores, labels = data(400, 12, positive_rate=0.2)
    assert best_threshold(scores, labels, "f1") < best_threshold(scores, labels, "accuracy")


@pytest.mark.parametrize("measure", [average_precision, best_threshold, lambda s, y: f1_at(s, y, 0.5)])
@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([0, 0, 0], "0 positives among 3 pairs"),
        ([1, 1, 1], "3 positives among 3 pairs"),
        ([0, 1, 2], r"labels\[2\] is 2"),
        ([0, 1, np.nan], r"labels\[2\] is nan"),
        ([0, 1], "3 scores and 2 labels"),
    ],
)
def test_refuses_other_labels(measure, labels, text):
    with pytest.raises(DataError, match=text):
        measure([0.1, 0.2, 0.3], labels)


def test_refuses_other_settings():
    with pytest.raises(ConfigError, match="'auc'"):
        best_threshold([0, 1], [0, 1], "auc")
    with pytest.raises(DataError, match="got NaN"):
        accuracy_at([0, 1], [0, 1], float("nan"))
