"""What holds for every metric: of correlation, of ranking and classification, and of geometry."""

import itertools

import numpy as np
import pytest

from samesense.errors import DataError
from samesense.metrics import (
    alignment,
    anisotropy,
    average_precision,
    effective_rank,
    kendall,
    ndcg,
    pearson,
    spearman,
    uniformity,
)

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 6, 200).astype(float)
SCORES = np.round(LABELS / 5 + RNG.normal(size=200), 1)

correlation = pytest.mark.parametrize("metric", [spearman, pearson, kendall])


@correlation
def test_equal_and_opposite_values_are_exactly_one_and_minus_one(metric):
    assert metric(LABELS, LABELS) == 1.0
    assert metric(-LABELS, LABELS) == -1.0


@correlation
def test_lists_and_arrays_of_any_width_agree(metric):
    assert metric(SCORES.tolist(), LABELS.astype(int).tolist()) == metric(SCORES, LABELS.astype(np.float32))
    assert type(metric(SCORES, LABELS)) is float


@correlation
def test_inputs_are_left_as_they_were(metric):
    scores, labels = SCORES.copy(), LABELS.copy()
    metric(scores, labels)
    assert (scores == SCORES).all() and (labels == LABELS).all()


@correlation
def test_refuses_what_is_not_finite_and_names_the_first(metric):
    for bad, side in itertools.product([np.nan, np.inf, -np.inf], ["scores", "labels"]):
        given = {"scores": SCORES.copy(), "labels": LABELS.copy()}
        given[side][[17, 40]] = bad
        with pytest.raises(DataError, match=rf"{side}\[17\] is {bad} \(2 of 200 are not finite\)"):
            metric(**given)


@correlation
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


def average_precision_of_grades(scores, labels):
    return average_precision(scores, np.asarray(labels) > 2)


RANKINGS = {
    "linear": ndcg,
    "exponential": lambda scores, labels: ndcg(scores, labels, "exponential"),
    "precision": average_precision_of_grades,
}

ranking = pytest.mark.parametrize("metric", RANKINGS.values(), ids=RANKINGS)


@ranking
def test_a_ranking_leaves_inputs_alone_and_refuses_what_is_not_finite(metric):
    scores, labels = SCORES.copy(), LABELS.copy()
    metric(scores, labels)
    assert (scores == SCORES).all() and (labels == LABELS).all()
    scores[[17, 40]] = np.nan
    with pytest.raises(DataError, match=r"scores\[17\] is nan \(2 of 200 are not finite\)"):
        metric(scores, labels)
    with pytest.raises(DataError, match="got 199 scores and 200 labels"):
        metric(SCORES[1:], labels)


CLOUD = RNG.normal(size=(80, 9)) + 0.4

geometry = pytest.mark.parametrize(
    "metric",
    [uniformity, anisotropy, effective_rank, lambda x: alignment(x[:40], x[40:])],
    ids=["uniformity", "anisotropy", "effective_rank", "alignment"],
)


@geometry
def test_geometry_does_not_change_under_rotation_and_scale(metric):
    rotation, _ = np.linalg.qr(RNG.normal(size=(9, 9)))
    assert metric(7 * CLOUD @ rotation) == pytest.approx(metric(CLOUD), abs=1e-10)
    assert type(metric(CLOUD)) is float


@geometry
def test_geometry_leaves_rows_alone_and_takes_float32(metric):
    rows = CLOUD.astype(np.float32)
    before = rows.copy()
    assert metric(rows) == pytest.approx(metric(CLOUD), abs=1e-5)
    assert (rows == before).all()
