import numpy as np
import pytest

from samesense.errors import DataError, ModelError
from samesense.evaluation.ranking import RankingTask, ranked_lists
from samesense.metrics import mean_interval
from tests.evaluation.toy import candidate, hash_of, pair_data
from tests.references import ranking as reference


def lengths(first, second):
    return -abs(len(first) - len(second))


ROWS = [
    ("cat", "dog", 3.0),
    ("cat", "small cat", 4.5),
    ("the red bus", "cat", 0.0),  # the query is second
    ("big animal", "cat", 2.0),
    ("cat", "dog", 4.0),  # a repeated pair: one partner with label 3.5
    ("dog", "cat", 3.5),  # the same pair in reverse
    ("sea", "lake", 4.0),
    ("sea", "river", 4.0),
    ("sea", "rain", 4.0),
    ("sea", "road", 4.0),  # labels of this query are all equal
    ("snow", "ice", 1.0),
    ("snow", "ice", 2.0),
    ("ice", "snow", 1.0),
    ("ice", "snow", 3.0),  # two queries with a single partner each
]


def test_queries_and_their_partners():
    lists = {item.query: item for item in ranked_lists(pair_data(ROWS))}
    assert set(lists) == {"cat", "sea", "snow", "ice"}
    assert lists["cat"].partners == ["dog", "small cat", "the red bus", "big animal"]
    assert lists["cat"].labels == pytest.approx([3.5, 4.5, 0.0, 2.0])
    assert lists["ice"].partners == ["snow"]


def test_three_pairs_make_no_query_and_four_do():
    rows = [("a", str(i), i) for i in range(3)]
    assert ranked_lists(pair_data(rows)) == []
    assert len(ranked_lists(pair_data([*rows, ("4", "a", 4)]))) == 1
    assert len(ranked_lists(pair_data([*rows, ("A", "4", 4)]))) == 0  # spelled differently


def test_a_sentence_paired_with_itself_counts_once():
    rows = [("a", "a", 5), ("a", "b", 1), ("a", "c", 2)]
    assert ranked_lists(pair_data(rows)) == []
    assert ranked_lists(pair_data([*rows, ("a", "d", 3)]))[0].partners == ["a", "b", "c", "d"]


def test_equal_labels_stay_equal_when_averaged():
    rows = [("a", partner, 0.1) for partner in "bcde" for _ in range(7)]
    assert set(ranked_lists(pair_data(rows))[0].labels) == {0.1}


def test_figures_and_what_they_say():
    task = RankingTask(pair_data(ROWS), note="raw text")
    evaluated = task.evaluate(candidate(lengths))
    kcc, ndcg = evaluated.results
    scores = [0, -6, -8, -7]
    labels = [3.5, 4.5, 0.0, 2.0]
    assert (kcc.task, kcc.dataset, kcc.split, kcc.subset, kcc.metric, ndcg.metric) == (
        "ranking",
        "toy.test.tsv",
        "test",
        "all",
        "kcc",
        "ndcg",
    )
    assert (kcc.model, kcc.seed, kcc.n, ndcg.n) == ("m", 5, 1, 2)
    assert kcc.value == pytest.approx(reference.kendall(scores, labels))
    mean = (reference.ndcg_over_all_orders(scores, labels, "linear") + 1) / 2
    assert ndcg.value == pytest.approx(mean)
    assert kcc.protocol == (
        "by rule; raw text; queries: sentences in either position with more than 3 pairs, subsets pooled, equal pairs "
        "averaged; Kendall's tau-b, mean over 1 of 4 queries; undefined: 3 with equal labels, 0 with constant scores"
    )
    assert "linear gain, mean over 2 of 4 queries; undefined: 2 with one partner or labels of 0" in ndcg.protocol
    assert kcc.low is None  # one query has no interval
    assert ndcg.low <= ndcg.value <= ndcg.high


def many(queries=40, partners=6, seed=0):
    rng = np.random.default_rng(seed)
    return [(f"query {q}", f"partner {q} {p}", rng.integers(0, 6)) for q in range(queries) for p in range(partners)]


def test_means_over_many_queries_equal_plain_loops():
    data = pair_data(many(), subsets=["x", "y"] * 120)
    rng = np.random.default_rng(3)
    table = {pair: rng.integers(0, 9) for pair in data.pairs()}
    task = RankingTask(data, dataset="toy.dev")
    kcc, ndcg = task.evaluate(candidate(lambda a, b: table[a, b])).results
    taus = []
    gains = []
    for start in range(0, 240, 6):
        scores = [table[pair] for pair in data.pairs()[start : start + 6]]
        labels = data.labels[start : start + 6]
        taus.append(reference.kendall(scores, labels))
        gains.append(reference.ndcg_over_all_orders(scores, labels, "linear"))
    assert kcc.value == pytest.approx(np.mean(taus), abs=1e-12)
    assert ndcg.value == pytest.approx(np.mean(gains), abs=1e-12)
    assert (kcc.low, kcc.high) == pytest.approx(mean_interval(taus))
    assert kcc.protocol.endswith("95 % bootstrap, 1000 samples")
    assert "linear gain" in ndcg.protocol
    assert (kcc.dataset, kcc.split) == ("toy.dev", "dev")


def test_evidence_is_query_by_query():
    task = RankingTask(pair_data([*ROWS, *many(5)]))
    evaluated = task.evaluate(candidate(lambda a, b: -hash_of(a + b)))
    for evidence, result in zip(evaluated.evidence, evaluated.results, strict=True):
        assert (evidence.metric, evidence.statistic, evidence.labels) == (result.metric, "mean", None)
        assert len(evidence.values) == len(evidence.examples) == result.n
        assert np.mean(evidence.values) == pytest.approx(result.value)
    assert evaluated.evidence[1].examples[:2] == ["cat", "sea"]


def test_constant_scores_on_a_query_are_undefined_and_counted():
    task = RankingTask(pair_data(many(4)))
    evaluated = task.evaluate(candidate(lambda a, b: 0 if "query 1" in a else hash_of(b)))
    kcc, ndcg = evaluated.results
    assert (kcc.n, ndcg.n) == (3, 4)
    assert "mean over 3 of 4 queries; undefined: 0 with equal labels, 1 with constant scores" in kcc.protocol
    assert [evidence.metric for evidence in evaluated.evidence] == ["ndcg"]  # kcc would cover other queries


def test_a_model_without_any_order_is_refused():
    with pytest.raises(ModelError, match="m gives one score to all partners of each of 4 queries"):
        RankingTask(pair_data(many(4))).evaluate(candidate(lambda a, b: 0.5))


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ModelError, match="pair 0 is nan"):
        RankingTask(pair_data(many(4))).evaluate(candidate(lambda a, b: np.nan))


def test_a_query_without_any_positive_label_has_no_ndcg():
    task = RankingTask(pair_data([*many(3), *[("none", f"n{i}", 0) for i in range(5)]]))
    kcc, ndcg = task.evaluate(candidate(lambda a, b: hash_of(a + b))).results
    assert ndcg.n == 3
    assert "undefined: 1 with one partner or labels of 0" in ndcg.protocol
    assert "undefined: 1 with equal labels" in kcc.protocol


def test_texts_are_all_that_is_scored():
    requests = set()

    def score(first, second):
        requests.update((first, second))
        return hash_of(second)

    task = RankingTask(pair_data(ROWS))
    task.evaluate(candidate(score))
    assert set(task.texts()) == requests


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("a", "b", 1), ("a", "c", -0.5)], "that of pair 1 is -0.5"),
        ([("a", "b", 1), ("a", "c", 2)], "of 2 pairs there are 0 such sentences"),
        ([("a", str(i), 3) for i in range(6)], "there are 1 such sentences, and none has different labels"),
    ],
)
def test_refuses_data_without_a_ranking(rows, text):
    with pytest.raises(DataError, match=text):
        RankingTask(pair_data(rows))
