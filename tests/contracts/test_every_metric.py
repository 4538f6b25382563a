"""What holds for every metric: of correlation, of ranking and classification, and of geometry."""

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
def test_lies_between_minus_one_and_one(metric):
    assert 0 < metric(SCORES, LABELS) < 1
    assert metric(LABELS, LABELS) == 1.0
    assert metric(-LABELS, LABELS) == -1.0


@correlation
def test_is_symmetric(metric):
    assert metric(SCORES, LABELS) == pytest.approx(metric(LABELS, SCORES), abs=1e-14)


@correlation
def test_order_of_pairs_does_not_matter(metric):
    order = RNG.permutation(200)
    assert metric(SCORES[order], LABELS[order]) == pytest.approx(metric(SCORES, LABELS), abs=1e-14)


@correlation
def test_an_increasing_line_changes_nothing(metric):
    assert metric(8 * SCORES - 3, LABELS) == pytest.approx(metric(SCORES, LABELS), abs=1e-13)


@correlation
def test_an_increasing_curve_changes_only_pearson(metric):
    unchanged = metric(np.exp(3 * SCORES), LABELS) == pytest.approx(metric(SCORES, LABELS), abs=1e-13)
    assert unchanged == (metric is not pearson)


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
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["scores", "labels"])
def test_refuses_what_is_not_finite_and_names_the_first(metric, side, bad):
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
def test_a_ranking_is_best_in_the_order_of_the_labels(metric):
    worst, middle, best = metric(-LABELS, LABELS), metric(SCORES, LABELS), metric(LABELS, LABELS)
    assert 0 < worst < middle < best == pytest.approx(1.0, abs=1e-14)
    assert type(middle) is float


@ranking
def test_a_ranking_depends_on_the_order_of_scores_only(metric):
    expected = pytest.approx(metric(SCORES, LABELS), abs=1e-13)
    assert metric(np.exp(SCORES), LABELS) == expected
    assert metric((8 * SCORES - 3).tolist(), LABELS.tolist()) == expected
    for order in (RNG.permutation(200), np.argsort(LABELS), np.argsort(-LABELS)):  # ties must not follow the rows
        assert metric(SCORES[order], LABELS[order]) == expected


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
    "metric", [uniformity, anisotropy, effective_rank, lambda x: alignment(x[:40], x[40:])],
    ids=["uniformity", "anisotropy", "effective_rank", "alignment"],
)  # fmt: skip


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
