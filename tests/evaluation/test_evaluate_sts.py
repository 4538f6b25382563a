import numpy as np
import pytest

from samesense.encoder.cosine import cosine_score
from samesense.errors import ConfigError, DataError, ModelError
from samesense.evaluation import evaluate_sts
from samesense.metrics import bootstrap_interval, pearson, spearman

N = 400
LABELS = np.random.default_rng(0).integers(0, 6, N).tolist()
PAIRS = [(f"left {i}", f"right {i}") for i in range(N)]


def fixed(scores):
    return lambda pairs: np.array(scores, dtype=float)


def values(results, metric="spearman"):
    return {row.subset: row.value for row in results if row.metric == metric}


def test_an_oracle_gets_one_and_a_random_score_about_zero():
    oracle = evaluate_sts(fixed(LABELS), PAIRS, LABELS, dataset="d")
    assert [(row.metric, row.value) for row in oracle] == [("spearman", 1.0), ("pearson", 1.0)]
    chance = evaluate_sts(fixed(np.random.default_rng(1).random(N)), PAIRS, LABELS, dataset="d")
    for row in chance:
        assert abs(row.value) < 0.15
        assert row.low < 0 < row.high


def test_a_row_says_what_it_is():
    scores = np.random.default_rng(1).random(N) + LABELS
    (row,) = evaluate_sts(
        fixed(scores),
        PAIRS,
        LABELS,
        dataset="stsb.test",
        split="test",
        model="m",
        seed=7,
        metrics=["pearson"],
    )
    assert (row.task, row.dataset, row.split, row.subset, row.metric) == ("sts", "stsb.test", "test", "all", "pearson")
    assert (row.model, row.seed, row.n, row.value) == ("m", 7, N, pearson(scores, LABELS))
    assert row.protocol == "cosine; all pairs; 95 % bootstrap, 1000 samples"
    assert (row.low, row.high) == bootstrap_interval(scores, LABELS, "pearson")
    assert row.seconds >= 0


def test_intervals_can_be_left_out():
    rows = evaluate_sts(fixed(LABELS), PAIRS, LABELS, dataset="d", intervals=False, protocol="cosine, lower case")
    assert {(row.low, row.high, row.protocol) for row in rows} == {(None, None, "cosine, lower case; all pairs")}


def test_subsets_and_their_means_by_hand():
    scores, labels = [1, 2, 3, 9, 8], [1, 2, 3, 1, 2]
    subsets = ["x", "x", "x", "y", "y"]
    rows = evaluate_sts(fixed(scores), PAIRS[:5], labels, dataset="d", subsets=subsets, intervals=False)
    assert [row.subset for row in rows] == ["all", "x", "y", "mean", "wmean"] * 2
    found = values(rows)
    assert found == pytest.approx(
        {"all": spearman(scores, labels), "x": 1, "y": -1, "mean": 0, "wmean": 0.2}, abs=1e-15
    )
    assert {row.subset: row.n for row in rows} == {"all": 5, "x": 3, "y": 2, "mean": 5, "wmean": 5}
    protocols = {row.subset: row.protocol for row in rows}
    assert protocols["x"] == "cosine; pairs of the subset"
    assert protocols["mean"] == "cosine; mean over 2 of 2 subsets"
    assert protocols["wmean"] == "cosine; mean weighted by size over 2 of 2 subsets"


def test_an_undefined_subset_is_absent_and_never_zero():
    labels = [1, 2, 3, 4, 4, 4, 5]
    subsets = ["x", "x", "x", "flat", "flat", "flat", "single"]
    rows = evaluate_sts(fixed(range(7)), PAIRS[:7], labels, dataset="d", subsets=subsets, intervals=False)
    assert values(rows).keys() == {"all", "x", "mean", "wmean"}
    assert values(rows)["mean"] == values(rows)["wmean"] == 1.0
    means = [row for row in rows if row.subset in ("mean", "wmean")]
    assert all("over 1 of 3 subsets" in row.protocol and row.n == 3 for row in means)


def test_without_any_defined_subset_there_is_no_mean():
    rows = evaluate_sts(fixed([1, 2]), PAIRS[:2], [1, 2], dataset="d", subsets=["x", "y"], intervals=False)
    assert values(rows).keys() == {"all"}


def test_only_real_rows_have_intervals():
    subsets = ["main-captions/MSRvid/2012test", "main-news/headlines/2013"] * (N // 2)
    scores = np.random.default_rng(1).random(N) + LABELS
    rows = evaluate_sts(fixed(scores), PAIRS, LABELS, dataset="d", subsets=subsets)
    assert {row.subset for row in rows if row.low is None} == {"mean", "wmean"}
    assert {row.subset for row in rows if row.low is not None} == {"all", *subsets}


@pytest.mark.parametrize("subsets", [None, [""] * N, ["only"] * N, [str(i % 31) for i in range(N)]])
def test_subsets_that_say_nothing_are_ignored(subsets):
    rows = evaluate_sts(fixed(LABELS), PAIRS, LABELS, dataset="d", subsets=subsets, intervals=False)
    assert values(rows).keys() == {"all"}


def test_thirty_subsets_are_kept_and_empty_names_are_none():
    rows = evaluate_sts(
        fixed(LABELS), PAIRS, LABELS, dataset="d", subsets=[str(i % 30) for i in range(N)], intervals=False
    )
    assert len(values(rows)) == 33
    some = evaluate_sts(
        fixed(LABELS), PAIRS, LABELS, dataset="d", subsets=[["", "x", "y"][i % 3] for i in range(N)], intervals=False
    )
    assert values(some).keys() == {"all", "x", "y", "mean", "wmean"}


def test_a_broken_encoder_gives_no_number():
    encoder = cosine_score(lambda texts: np.full((len(texts), 4), np.nan, dtype=np.float32))
    with pytest.raises(ModelError, match="The embedding of 'left 0' holds a NaN"):
        evaluate_sts(encoder, PAIRS, LABELS, dataset="d")


def test_scores_are_checked():
    with pytest.raises(ModelError, match="one score for each of 400 pairs"):
        evaluate_sts(fixed(LABELS[:-1]), PAIRS, LABELS, dataset="d")
    with pytest.raises(ModelError, match=r"that of pair 3 is nan \(1 of 400"):
        evaluate_sts(fixed([*LABELS[:3], np.nan, *LABELS[4:]]), PAIRS, LABELS, dataset="d")
    with pytest.raises(DataError, match=r"undefined because scores are all 0\.5"):
        evaluate_sts(fixed([0.5] * N), PAIRS, LABELS, dataset="d")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"labels": LABELS[1:]}, DataError, "399 labels and 400 pairs"),
        ({"labels": [1] * N}, DataError, "labels are all 1"),
        ({"labels": [np.nan, *LABELS[1:]]}, DataError, r"labels\[0\] is nan"),
        ({"subsets": ["x"]}, DataError, "one subset for each pair, got 1 and 400"),
        ({"subsets": ["x", "mean"] * (N // 2)}, DataError, "named 'mean'"),
        ({"metrics": ["accuracy"]}, ConfigError, "'accuracy'"),
    ],
)
def test_refuses_before_the_model_runs(change, error, text):
    def never(pairs):
        raise AssertionError

    with pytest.raises(error, match=text):
        evaluate_sts(never, **{"pairs": PAIRS, "labels": LABELS, "dataset": "d", **change})
