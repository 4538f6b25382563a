"""The rank of the closest positive, by loops, and what the suite reads."""

import numpy as np
import pytest

import samesense
from samesense.errors import ConfigError, DataError, ModelError
from samesense.evaluation.retrieval import RetrievalTask
from tests.models import made_model

RANDOM = np.random.default_rng(1)
ANCHORS = [f"question {number}" for number in range(7)]
TEXTS = [f"answer {number}" for number in range(12)]
POSITIVES = [[TEXTS[number], TEXTS[number + 1]] if number % 2 else [TEXTS[number]] for number in range(7)]
VECTORS = {text: RANDOM.normal(size=4) for text in [*ANCHORS, *TEXTS]}


def embedder(vectors):
    return made_model(encode=lambda texts: np.array([vectors[text] for text in texts]), protocol="float32", seed=2)


def reciprocal_rank(anchor, positives, texts):
    """Return it from a sorted list of all texts but the other positives."""

    def cosine(text):
        first, second = VECTORS[anchor], VECTORS[text]
        return first @ second / np.linalg.norm(first) / np.linalg.norm(second)

    best = max(positives, key=cosine)
    ranked = sorted((text for text in texts if text == best or text not in positives), key=cosine, reverse=True)
    return 1 / (1 + ranked.index(best))


def test_mrr_equals_sorting_by_hand():
    evaluated = RetrievalTask(ANCHORS, POSITIVES, TEXTS, "desk").evaluate(embedder(VECTORS))
    expected = [reciprocal_rank(anchor, own, TEXTS) for anchor, own in zip(ANCHORS, POSITIVES, strict=True)]
    assert 0.2 < np.mean(expected) < 0.9
    (row,) = evaluated.results
    assert (row.task, row.metric, row.n) == ("retrieval", "mrr", 7)
    assert row.value == pytest.approx(np.mean(expected))
    assert row.low < row.value < row.high
    assert f"among 12 texts; it is first for {expected.count(1)} of 7 anchors" in row.protocol
    (evidence,) = evaluated.evidence
    assert evidence.values == pytest.approx(expected)
    assert evidence.examples[0] == "question 0\nanswer 0"


def test_a_model_that_tells_no_texts_apart_ranks_the_positive_last():
    same = {text: np.ones(4) for text in VECTORS}
    (row,) = RetrievalTask(ANCHORS[::2], POSITIVES[::2], TEXTS, "desk").evaluate(embedder(same)).results
    assert row.value == pytest.approx(1 / 12)


def test_the_anchor_among_the_candidates_is_neither_right_nor_wrong():
    vectors = {"a": np.array([1.0, 0]), "b": np.array([0.9, -0.1]), "c": np.array([0.3, 1.0])}
    task = RetrievalTask(["a", "c"], [["b"], ["b"]], ["a", "b", "c"], "pairs")
    assert task.evaluate(embedder(vectors)).evidence[0].values.tolist() == [1.0, 0.5]


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(DataError, match="desk: each anchor needs a positive, and all are candidates; anchor 1 has 0"):
        RetrievalTask(["a", "b"], [["c"], []], ["c"], "desk")
    with pytest.raises(DataError, match="at least 2 anchors are needed, got 1"):
        RetrievalTask(["a"], [["c"]], ["c"], "desk")
    with pytest.raises(ModelError, match="Suite retrieval needs embeddings"):
        RetrievalTask(ANCHORS, POSITIVES, TEXTS, "desk").evaluate(made_model(lambda pairs: np.zeros(len(pairs))))


def test_a_table_of_questions_and_answers_is_evaluated(tmp_path, tiny_trunk):
    path = tmp_path / "answers.csv"
    path.write_text("question,answer\nold red,red\nnew blue,blue\nold cold,cold\nwet,\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"answers\.csv"):  # the last row has no answer
        samesense.evaluate(str(tiny_trunk), path, suites="retrieval")
    (row,) = samesense.evaluate(str(tiny_trunk), path, suites="retrieval", drop_bad_rows=True)
    assert (row.dataset, row.metric, row.n) == ("answers.csv", "mrr", 3)
    with pytest.raises(ConfigError, match=r"this belongs to retrieval, and the suites asked for are sts"):
        samesense.evaluate(str(tiny_trunk), path, drop_bad_rows=True)
    labelled = tmp_path / "pairs.csv"
    labelled.write_text("sentence1,sentence2,score\na,b,1\nc,d,0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="this belongs to sts, ranking"):
        samesense.evaluate(str(tiny_trunk), labelled, suites="retrieval")
