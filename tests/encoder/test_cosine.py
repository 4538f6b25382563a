import numpy as np
import pytest

from samesense.encoder import cosine as score
from samesense.encoder.cosine import cosine_score
from samesense.errors import ModelError

VECTORS = {"a": [3.0, 4.0], "b": [4.0, 3.0], "c": [-6.0, -8.0], "d": [4.0, -3.0], "zero": [0.0, 0.0]}


def encode(texts):
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def test_by_hand():
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "b")]
    assert cosine_score(encode)(pairs).tolist() == pytest.approx([0.96, -1, 0, 1], abs=1e-7)


def test_encodes_each_distinct_text_once():
    calls = []

    def counting(texts):
        calls.append(list(texts))
        return encode(texts)

    cosine_score(counting)([("b", "a"), ("a", "c"), ("b", "b")])
    assert calls == [["b", "a", "c"]]


def test_blocks_do_not_change_the_numbers(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    pairs = [(str(i), str((7 * i + 1) % 50)) for i in range(50)]
    scored = cosine_score(lambda texts: vectors[[int(text) for text in texts]])
    whole = scored(pairs)
    monkeypatch.setattr(score, "BLOCK_PAIRS", 3)
    assert scored(pairs) == pytest.approx(whole, abs=1e-15)
    for (first, second), value in zip(pairs, whole, strict=True):
        x = vectors[int(first)].astype(float)
        y = vectors[int(second)].astype(float)
        assert value == pytest.approx(x @ y / np.sqrt(x @ x * (y @ y)), abs=1e-14)


def test_equal_embeddings_score_exactly_one():
    vectors = np.random.default_rng(0).normal(size=(200, 33)).astype(np.float32)
    pairs = [(f"{i}", f"{i}") for i in range(200)] + [(f"{i}", f"{i} again") for i in range(200)]
    scores = cosine_score(lambda texts: vectors[[int(text.split()[0]) for text in texts]])(pairs)
    assert (scores == 1.0).all()


@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e20, 1e37])
def test_length_does_not_matter(size):
    scores = cosine_score(lambda texts: (encode(texts).astype(float) * size).astype(np.float32))([("a", "b")])
    assert scores[0] == pytest.approx(0.96, abs=1e-4)


def test_no_pairs_need_no_model():
    assert cosine_score(lambda texts: 1 / 0)([]).shape == (0,)


def test_names_a_text_whose_embedding_is_zero():
    with pytest.raises(ModelError, match="The embedding of 'zero' is all zeros"):
        cosine_score(encode)([("a", "zero")])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_names_the_first_text_whose_embedding_is_not_finite(bad):
    def broken(texts):
        rows = encode(texts)
        rows[1:, 1] = bad
        return rows

    with pytest.raises(ModelError, match=r"The embedding of 'b' holds .* \(2 of 3 texts"):
        cosine_score(broken)([("a", "b"), ("c", "a")])


def test_a_long_text_is_shown_in_part():
    with pytest.raises(ModelError, match=r"'x{57}\.\.\.' is all zeros"):
        cosine_score(lambda texts: np.zeros((len(texts), 2), dtype=np.float32))([("x" * 900, "y")])


@pytest.mark.parametrize("shape", [(1, 4), (3, 4), (2,), (2, 2, 2)])
def test_refuses_another_number_of_rows(shape):
    with pytest.raises(ModelError, match="one row for each text, a matrix of 2 rows"):
        cosine_score(lambda texts: np.ones(shape, dtype=np.float32))([("a", "b")])


def test_refuses_integers():
    with pytest.raises(ModelError, match="floating-point"):
        cosine_score(lambda texts: np.ones((2, 2), dtype=np.int8))([("a", "b")])
