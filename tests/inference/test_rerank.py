import numpy as np
import pytest

from samesense.errors import ConfigError, ModelError
from samesense.inference.search.rerank import Ranked, rerank

TEXTS = ["far", "near", "nearer", "nearest", "near"]
ANGLES = {"query": 0.0, "far": 1.5, "near": 0.4, "nearer": 0.2, "nearest": 0.1}
SCORES = {"far": 9.0, "near": 0.5, "nearer": 0.9, "nearest": 0.5}


def encode(texts):
    return np.array([[np.cos(ANGLES[text]), np.sin(ANGLES[text])] for text in texts], dtype=np.float32)


@pytest.fixture
def cross():
    def score(pairs):
        score.seen += pairs
        return np.array([SCORES[text] for _, text in pairs])

    score.seen = []
    return score


def test_the_nearest_are_found_and_put_in_another_order(cross):
    answer = rerank("query", TEXTS, encode, cross, top_k=4)
    assert [(r.position, r.text, r.score) for r in answer] == [
        (2, "nearer", 0.9),
        (1, "near", 0.5),
        (3, "nearest", 0.5),
        (4, "near", 0.5),
    ]
    assert [r.cosine for r in answer] == pytest.approx([np.cos(ANGLES[r.text]) for r in answer], abs=1e-6)
    assert set(cross.seen) == {("query", text) for text in ("near", "nearer", "nearest")}


def test_ties_stay_in_the_order_given(cross):
    assert [r.position for r in rerank("query", ["near"] * 3, encode, cross, top_k=2)] == [0, 1]


def test_all_texts_where_there_are_fewer_than_asked_for(cross):
    answer = rerank("query", ["far", "near"], encode, cross, top_k=10)
    assert [r.text for r in answer] == ["far", "near"]
    assert rerank("query", [], encode, cross) == []


def test_equals_sorting_everything_where_everything_is_scored():
    random = np.random.default_rng(0)
    vectors = {f"text {i}": random.normal(size=8).astype(np.float32) for i in range(300)}
    scores = {text: float(random.integers(20)) for text in vectors}
    texts = list(vectors)
    answer = rerank(
        texts[0],
        texts,
        lambda requested: np.stack([vectors[text] for text in requested]),
        lambda pairs: np.array([scores[text] for _, text in pairs]),
        top_k=300,
    )
    expected = sorted(range(300), key=lambda i: (-scores[texts[i]], i))
    assert [r.position for r in answer] == expected
    assert isinstance(answer[0], Ranked)


def test_refusals(cross):
    with pytest.raises(ConfigError) as error:
        rerank("query", TEXTS, encode, cross, top_k=0)
    assert str(error.value) == "`top_k` is a whole number of 1 or more; received 0."
    with pytest.raises(ModelError) as error:
        rerank("query", TEXTS, encode, lambda pairs: np.full(len(pairs), np.nan), top_k=2)
    assert str(error.value) == "The cross-encoder must give one finite score for each of 2 pairs; got [nan, nan]."
    with pytest.raises(ModelError, match="one finite score for each of 2 pairs"):
        rerank("query", TEXTS, encode, lambda pairs: np.zeros(3), top_k=2)
