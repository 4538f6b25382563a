"""What holds for every correlation metric."""

import numpy as np
import pytest

from samesense.errors import DataError
from samesense.metrics import pearson, spearman

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 6, 200).astype(float)
SCORES = np.round(LABELS / 5 + RNG.normal(size=200), 1)

pytestmark = pytest.mark.parametrize("metric", [spearman, pearson])


def test_lies_between_minus_one_and_one(metric):
    assert 0 < metric(SCORES, LABELS) < 1
    assert metric(LABELS, LABELS) == 1.0
    assert metric(-LABELS, LABELS) == -1.0


def test_is_symmetric(metric):
    assert metric(SCORES, LABELS) == pytest.approx(metric(LABELS, SCORES), abs=1e-14)


def test_order_of_pairs_does_not_matter(metric):
    order = RNG.permutation(200)
    assert metric(SCORES[order], LABELS[order]) == pytest.approx(metric(SCORES, LABELS), abs=1e-14)


def test_an_increasing_line_changes_nothing(metric):
    assert metric(8 * SCORES - 3, LABELS) == pytest.approx(metric(SCORES, LABELS), abs=1e-13)


def test_an_increasing_curve_changes_only_pearson(metric):
    unchanged = metric(np.exp(3 * SCORES), LABELS) == pytest.approx(metric(SCORES, LABELS), abs=1e-13)
    assert unchanged == (metric is spearman)


def test_lists_and_arrays_of_any_width_agree(metric):
    assert metric(SCORES.tolist(), LABELS.astype(int).tolist()) == metric(SCORES, LABELS.astype(np.float32))
    assert type(metric(SCORES, LABELS)) is float


def test_inputs_are_left_as_they_were(metric):
    scores, labels = SCORES.copy(), LABELS.copy()
    metric(scores, labels)
    assert (scores == SCORES).all() and (labels == LABELS).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["scores", "labels"])
def test_refuses_what_is_not_finite_and_names_the_first(metric, side, bad):
    given = {"scores": SCORES.copy(), "labels": LABELS.copy()}
    given[side][[17, 40]] = bad
    with pytest.raises(DataError, match=rf"{side}\[17\] is {bad} \(2 of 200 are not finite\)"):
        metric(**given)


@pytest.mark.parametrize(
    ("scores", "labels", "text"),
    [
        ([0.5, 0.5, 0.5], [1, 2, 3], "The correlation is undefined because scores are all 0.5."),
        ([1, 2, 3], [4, 4, 4], "The correlation is undefined because labels are all 4."),
        ([1], [1], "The correlation is undefined because it needs at least 2 pairs, got 1."),
        ([], [], "The correlation is undefined because it needs at least 2 pairs, got 0."),
        ([1, 2], [1, 2, 3], "There must be one score for each label, got 2 scores and 3 labels."),
    ],
)
def test_refuses_where_it_is_undefined(metric, scores, labels, text):
    with pytest.raises(DataError) as caught:
        metric(scores, labels)
    assert str(caught.value) == text
