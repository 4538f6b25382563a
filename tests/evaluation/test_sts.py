"""The STS task: its result rows, and their evidence."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from samesense.errors import DataError, ModelError
from samesense.evaluation.sts import StsTask, best_spearman, evaluate_pairs, warn_of_reversed_labels
from samesense.metrics import bootstrap_interval, pearson, spearman
from tests.evaluation.toy import pair_data
from tests.models import made_model

N = 400
LABELS = np.random.default_rng(0).integers(0, 6, N).tolist()
SCORES = np.random.default_rng(1).random(N) + LABELS


def pairs(labels=LABELS, subsets=None, source="folder/some.test.tsv"):
    return pair_data([(f"left {i}", f"right {i}", label) for i, label in enumerate(labels)], subsets, source=source)


def fixed(scores, protocol="cosine"):
    return made_model(lambda _: np.array(scores, dtype=float), protocol=protocol, seed=7)


def rows_of(scores, labels=LABELS, subsets=None):
    return evaluate_pairs(fixed(scores), pairs(labels, subsets), intervals=False)


def values(results, metric="spearman"):
    return {row.subset: row.value for row in results if row.metric == metric}


def test_an_oracle_gets_one_and_a_random_score_about_zero():
    oracle = evaluate_pairs(fixed(LABELS), pairs())
    assert [(row.metric, row.value) for row in oracle] == [("spearman", 1.0), ("pearson", 1.0)]
    for row in evaluate_pairs(fixed(np.random.default_rng(1).random(N)), pairs()):
        assert abs(row.value) < 0.15
        assert row.low < 0 < row.high


def test_a_row_says_what_it_is():
    _, row = StsTask(pairs(), dataset="some.test", note="raw text").evaluate(fixed(SCORES)).results
    assert (row.task, row.dataset, row.split, row.subset, row.metric) == ("sts", "some.test", "test", "all", "pearson")
    assert (row.model, row.seed, row.n, row.value) == ("m", 7, N, pearson(SCORES, LABELS))
    assert row.protocol == "cosine; raw text; all pairs; 95 % bootstrap, 1000 samples"
    assert (row.low, row.high) == bootstrap_interval(SCORES, LABELS, "pearson")


@pytest.mark.parametrize("yes", [1, 60, 119])
def test_yes_no_labels_say_how_high_spearman_can_be(yes):
    labels = np.random.default_rng(0).permutation([1.0] * yes + [0.0] * (120 - yes))
    best = best_spearman(labels)
    perfect = labels + np.random.default_rng(1).random(120) / 2
    assert best == pytest.approx(spearmanr(perfect, labels).statistic)
    assert best == pytest.approx(np.sqrt(3 * yes * (120 - yes) / (120**2 - 1)))
    task = StsTask(replace(pairs(labels.tolist()), kind="binary"))
    bound = f"without equal scores, Spearman is at most {100 * best:.1f} here"
    assert task.remark() == f"yes/no labels: {bound} ({yes} of 120 are yes)"


def test_graded_labels_have_no_such_remark():
    assert StsTask(pairs()).remark() == ""
    assert best_spearman([1, 2, 3, 4]) == pytest.approx(1)


def test_intervals_can_be_left_out():
    rows = evaluate_pairs(fixed(LABELS, "cosine, lower case"), pairs(), intervals=False)
    assert {(row.low, row.high, row.protocol) for row in rows} == {(None, None, "cosine, lower case; all pairs")}


def test_subsets_and_their_means_by_hand():
    scores = [1, 2, 3, 9, 8]
    labels = [1, 2, 3, 1, 2]
    rows = rows_of(scores, labels, ["x", "x", "x", "y", "y"])
    assert [row.subset for row in rows] == ["all", "x", "y", "mean", "wmean"] * 2
    figures = values(rows)
    assert figures == pytest.approx(
        {"all": spearman(scores, labels), "x": 1, "y": -1, "mean": 0, "wmean": 0.2}, abs=1e-15
    )
    assert {row.subset: row.n for row in rows} == {"all": 5, "x": 3, "y": 2, "mean": 5, "wmean": 5}
    protocols = {row.subset: row.protocol for row in rows}
    assert protocols["x"] == "cosine; pairs of the subset"
    assert protocols["mean"] == "cosine; mean over 2 of 2 subsets"
    assert protocols["wmean"] == "cosine; mean weighted by size over 2 of 2 subsets"


def test_an_undefined_subset_is_absent_and_never_zero():
    rows = rows_of(range(7), [1, 2, 3, 4, 4, 4, 5], ["x", "x", "x", "flat", "flat", "flat", "single"])
    assert values(rows).keys() == {"all", "x", "mean", "wmean"}
    assert values(rows)["mean"] == values(rows)["wmean"] == 1.0
    means = [row for row in rows if row.subset in ("mean", "wmean")]
    assert all("over 1 of 3 subsets" in row.protocol and row.n == 3 for row in means)


def test_without_any_defined_subset_there_is_no_mean():
    assert values(rows_of([1, 2], [1, 2], ["x", "y"])).keys() == {"all"}


def test_only_real_rows_have_intervals():
    subsets = ["main-captions/MSRvid/2012test", "main-news/headlines/2013"] * (N // 2)
    rows = evaluate_pairs(fixed(SCORES), pairs(subsets=subsets))
    assert {row.subset for row in rows if row.low is None} == {"mean", "wmean"}
    assert {row.subset for row in rows if row.low is not None} == {"all", *subsets}


@pytest.mark.parametrize("subsets", [None, [""] * N, ["only"] * N, [str(i % 31) for i in range(N)]])
def test_subsets_that_say_nothing_are_ignored(subsets):
    assert values(rows_of(LABELS, subsets=subsets)).keys() == {"all"}


def test_thirty_subsets_are_kept_and_empty_names_are_none():
    assert len(values(rows_of(LABELS, subsets=[str(i % 30) for i in range(N)]))) == 33
    some = rows_of(LABELS, subsets=[["", "x", "y"][i % 3] for i in range(N)])
    assert values(some).keys() == {"all", "x", "y", "mean", "wmean"}


def test_a_broken_encoder_gives_no_number():
    encoder = made_model(encode=lambda texts: np.full((len(texts), 4), np.nan, dtype=np.float32))
    with pytest.raises(ModelError, match="The embedding of 'left 0' holds a NaN"):
        evaluate_pairs(encoder, pairs())


def test_scores_are_checked():
    with pytest.raises(ModelError, match="one score for each of 400 pairs"):
        evaluate_pairs(fixed(LABELS[:-1]), pairs())
    for wrong in ([*LABELS, 0], [[label] for label in LABELS]):
        with pytest.raises(ModelError, match="one score for each of 400 pairs, got an array of shape"):
            evaluate_pairs(fixed(wrong), pairs())
    with pytest.raises(ModelError, match=r"that of pair 3 is nan \(1 of 400"):
        evaluate_pairs(fixed([*LABELS[:3], np.nan, *LABELS[4:]]), pairs())
    with pytest.raises(DataError, match=r"undefined because scores are all 0\.5"):
        evaluate_pairs(fixed([0.5] * N), pairs())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"labels": [1] * N}, "labels are all 1"),
        ({"labels": [np.nan, *LABELS[1:]]}, r"labels\[0\] is nan"),
        ({"subsets": ["x"]}, "one subset for each pair, got 1 and 400"),
        ({"subsets": ["x", "mean"] * (N // 2)}, "named 'mean'"),
    ],
)
def test_refuses_before_the_model_runs(change, text):
    with pytest.raises(DataError, match=text):
        StsTask(pairs(**change))
    with pytest.raises(DataError, match="399 labels and 400 pairs"):
        StsTask(replace(pairs(), labels=LABELS[1:]))


def test_the_evidence_gives_the_figure_again():
    evaluated = StsTask(pairs()).evaluate(fixed(SCORES))
    (evidence,) = evaluated.evidence
    assert (evidence.task, evidence.dataset, evidence.metric) == ("sts", "some.test.tsv", "spearman")
    assert (evidence.model, evidence.seed, evidence.statistic) == ("m", 7, "spearman")
    assert list(evidence.examples) == pairs().pairs()
    assert spearman(evidence.values, evidence.labels) == evaluated.results[0].value


def test_the_model_runs_once_and_its_time_is_in_every_row():
    calls = []

    def score(pairs_to_score):
        calls.append(len(pairs_to_score))
        return SCORES

    rows = evaluate_pairs(made_model(score), pairs(), intervals=False)
    assert calls == [N]
    assert len({row.seconds for row in rows}) == 1
    assert all(row.low is None for row in rows)


def test_its_texts_are_the_sentences():
    task = StsTask(pairs())
    assert list(task.texts()) == task.data.sentences1 + task.data.sentences2
    assert (task.suite, task.embeds) == ("sts", False)


REVERSALS = {
    "scored": "write 5 - score in their place",
    "binary": "if yes and no are exchanged in score",
    "triplet": "exchange their columns",
    "nli": "give it by `label_order`",
}


@pytest.mark.parametrize(("kind", "fix"), REVERSALS.items())
def test_labels_that_fall_where_cosines_rise_look_reversed(kind, fix, caplog):
    model = made_model(encode=lambda texts: np.ones((len(texts), 2), dtype=np.float32))
    warn_of_reversed_labels(model, replace(pairs(), kind=kind), -SCORES)
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "labels look reversed" in record.message and fix in record.message


@pytest.mark.parametrize(
    ("scores", "embeds", "count"),
    [
        (SCORES, True, N),
        # a weak order, as of hard pairs, and a strong one of few pairs
        (-0.1 * np.array(LABELS) + np.random.default_rng(1).standard_normal(N), True, N),
        (-SCORES, True, 19),
        (-0.5 * np.array(LABELS) + 2 * np.random.default_rng(1).standard_normal(N), True, 20),
        # scores that are no cosines may be distances themselves
        (-SCORES, False, N),
    ],
)
def test_labels_look_reversed_only_where_that_is_certain(scores, embeds, count, caplog):
    encode = (lambda texts: np.ones((len(texts), 2), dtype=np.float32)) if embeds else None
    model = made_model(lambda _: scores, encode)
    warn_of_reversed_labels(model, pairs(LABELS[:count]), scores[:count])
    assert not caplog.records
