import numpy as np
import pytest
import scipy.stats

from samesense.errors import ConfigError, DataError, ModelError
from samesense.evaluation.argument import ArgumentTask, cross_validation, shared_sentences
from samesense.metrics import bootstrap_interval
from tests.evaluation.toy import candidate, hash_of, pair_data

TOPICS = ["gardens", "trains", "music"]


def arguments(n=120, seed=0):
    rng = np.random.default_rng(seed)
    topics = [TOPICS[i % 3] for i in range(n)]
    rows = [
        (f"{topic} claim {rng.integers(n // 2)}", f"{topic} reply {i}", round(5 * rng.random(), 1))
        for i, topic in enumerate(topics)
    ]
    return pair_data(rows, subsets=topics)


DATA = arguments()
TABLE = {
    pair: round(label + 2 * hash_of(pair[1]) / 101, 1) for pair, label in zip(DATA.pairs(), DATA.labels, strict=True)
}
MODEL = candidate(lambda first, second: TABLE[first, second])
SCORES = MODEL.scores(DATA.pairs())


def held_out_mean(folds, correlate):
    labels = np.array(DATA.labels)
    return np.mean([correlate(SCORES[held], labels[held]).statistic for _, held in folds])


@pytest.mark.parametrize("k", [2, 7, 10])
def test_random_folds_hold_each_row_out_once(k):
    folds = cross_validation(DATA, k, "mixed", seed=3)
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(120))
    assert {len(held) for _, held in folds} <= {120 // k, 120 // k + 1}
    for train, held in folds:
        assert sorted([*train, *held]) == list(range(120))


@pytest.mark.parametrize("mode", ["apart", "mixed"])
def test_the_seed_fixes_the_folds(mode):
    first, again, other_seed = (cross_validation(DATA, 10, mode, seed)[0][1].tolist() for seed in (1, 1, 2))
    assert first == again != other_seed


def test_folds_apart_share_no_sentence_and_are_alike():
    folds = cross_validation(DATA, 5, "apart", seed=0)
    assert shared_sentences(DATA, folds) == 0
    assert sorted(np.concatenate([held for _, held in folds])) == list(range(120))
    assert {len(held) for _, held in folds} <= {23, 24, 25}
    means = [np.mean([DATA.labels[row] for row in held]) for _, held in folds]
    assert max(means) - min(means) < 0.6


def test_pairs_that_hang_together_are_not_dealt_into_folds_apart():
    star = pair_data([("hub", f"s{number}", number % 3) for number in range(30)])
    with pytest.raises(DataError, match=r"share no sentence: 30 of 30 are connected .* or take `folds` 3-mixed"):
        cross_validation(star, 3, "apart")
    twins = pair_data([(f"a{number % 4}", f"b{number % 4}", number % 3) for number in range(30)])
    with pytest.raises(DataError, match="they fall into 4 groups that share none"):
        cross_validation(twins, 5, "apart")
    assert len(cross_validation(twins, 4, "apart")) == 4


def test_folds_by_topic_hold_out_a_topic():
    folds = cross_validation(DATA, mode="by-topic")
    assert [{DATA.subsets[row] for row in held} for _, held in folds] == [{topic} for topic in TOPICS]
    assert all(not set(train) & set(held) for train, held in folds)
    assert shared_sentences(DATA, folds) == 0


def test_shared_sentences_equal_plain_loops():
    folds = cross_validation(DATA, 5, "mixed", seed=0)
    count = 0
    for train, held in folds:
        for row in held:
            here = {DATA.sentences1[row], DATA.sentences2[row]}
            count += any(here & {DATA.sentences1[train_row], DATA.sentences2[train_row]} for train_row in train)
    assert 0 < count < 120
    assert shared_sentences(DATA, folds) == count


def test_a_second_sentence_leaks_as_a_first_does():
    data = pair_data([("a", "x", 1), ("x", "b", 2), ("c", "d", 3)])
    folds = [(np.delete(np.arange(3), row), np.array([row])) for row in range(3)]
    assert shared_sentences(data, folds) == 2


@pytest.mark.parametrize("mode", ["apart", "mixed", "by-topic"])
def test_figures_equal_scipy_fold_by_fold(mode):
    task = ArgumentTask(DATA, folds=6, mode=mode, seed=4)
    rows = {(row.metric, row.subset): row for row in task.evaluate(MODEL).results}
    folds = cross_validation(DATA, 6, mode, 4)
    for metric, correlate in (("spearman", scipy.stats.spearmanr), ("pearson", scipy.stats.pearsonr)):
        assert rows[metric, "all"].value == pytest.approx(correlate(SCORES, DATA.labels).statistic, abs=1e-12)
        assert rows[metric, "mean"].value == pytest.approx(held_out_mean(folds, correlate), abs=1e-12)
    whole = rows["spearman", "all"]
    assert (whole.low, whole.high) == bootstrap_interval(SCORES, DATA.labels, "spearman")
    assert (whole.task, whole.dataset, whole.n, whole.model, whole.seed) == ("argument", "toy.test.tsv", 120, "m", 5)


def test_rows_of_each_mode():
    mixed = ArgumentTask(DATA, note="raw text").evaluate(MODEL).results
    assert [(row.metric, row.subset) for row in mixed] == [
        ("spearman", "all"),
        ("spearman", "mean"),
        ("pearson", "all"),
        ("pearson", "mean"),
    ]
    shared = shared_sentences(DATA, cross_validation(DATA))
    assert mixed[1].protocol == (
        f"by rule; raw text; 10 random folds, seed 0; {shared} of 120 held-out pairs share a sentence with training "
        "pairs; mean over 10 of 10 subsets"
    )
    topics = ArgumentTask(DATA, mode="by-topic").evaluate(MODEL).results
    assert [row.subset for row in topics] == ["all", *TOPICS, "mean"] * 2
    assert "each topic a fold; 0 of 120 held-out pairs share" in topics[0].protocol


def test_evidence_is_the_rank_correlation_over_all_pairs():
    (evidence,) = ArgumentTask(DATA).evaluate(MODEL).evidence
    assert (evidence.metric, evidence.statistic) == ("spearman", "spearman")
    assert evidence.values.tolist() == SCORES.tolist()
    assert evidence.labels.tolist() == DATA.labels
    assert evidence.examples == DATA.pairs()


def test_a_fold_without_a_correlation_is_left_out_and_counted():
    flat = candidate(lambda a, b: 0.5 if a.startswith("music") else TABLE[a, b])
    rows = {(row.metric, row.subset): row for row in ArgumentTask(DATA, mode="by-topic").evaluate(flat).results}
    assert ("spearman", "music") not in rows
    assert "mean over 2 of 3 subsets" in rows["spearman", "mean"].protocol


def test_the_model_is_asked_once():
    requests = []

    def score(first, second):
        requests.append((first, second))
        return TABLE[first, second]

    ArgumentTask(DATA).evaluate(candidate(score))
    assert requests == DATA.pairs()
    assert set(ArgumentTask(DATA).texts()) == {text for pair in requests for text in pair}


@pytest.mark.parametrize(
    ("data", "settings", "error", "text"),
    [
        (DATA, {"folds": 1}, ConfigError, "2 to 30 folds, got 1"),
        (DATA, {"folds": 31}, ConfigError, "2 to 30 folds, got 31"),
        (DATA, {"mode": "cross"}, ConfigError, "'cross'"),
        (DATA, {"seed": -1}, ConfigError, "seed"),
        (DATA.take(range(19)), {}, DataError, "10 folds need at least 20 pairs, got 19"),
        (pair_data([("a", "b", 1), ("c", "d", 2)]), {"mode": "by-topic"}, DataError, "found 0 for 2 pairs"),
        (pair_data([("a", "b", 1), ("c", "d", 1)]), {}, DataError, "labels are all 1"),
    ],
)
def test_refuses(data, settings, error, text):
    with pytest.raises(error, match=text):
        ArgumentTask(data, **settings)


def test_refuses_a_pair_without_a_topic_and_broken_scores():
    some = pair_data([("a", "b", i) for i in range(4)], subsets=["x", "y", "", "x"])
    with pytest.raises(DataError, match="topic of every pair"):
        ArgumentTask(some, mode="by-topic")
    with pytest.raises(ModelError, match="pair 0 is nan"):
        ArgumentTask(DATA).evaluate(candidate(lambda a, b: np.nan))
    with pytest.raises(DataError, match="scores are all 1"):
        ArgumentTask(DATA).evaluate(candidate(lambda a, b: 1))
