import itertools

import numpy as np
import pytest

from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError, ModelError
from samesense.inference.search import mining
from samesense.inference.search.mining import mine
from tests.inference.made_vectors import cosines


def by_brute_force(vectors, top, threshold):
    pairs = []
    for i in range(len(vectors)):
        for j, score in enumerate(cosines(vectors[i], vectors[i + 1 :]), i + 1):
            if score >= threshold - 1e-12:
                pairs.append((-round(score, 12), i, j))
    return [(i, j) for _, i, j in sorted(pairs)[:top]]


@pytest.mark.parametrize("block", [1, 13, 64, 1000])
@pytest.mark.parametrize(("top", "threshold"), [(1, -1.0), (40, -1.0), (10_000, 0.3), (50, 0.999)])
def test_equals_brute_force_with_ties(block, top, threshold, monkeypatch):
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 10)).astype(np.float32)[random.integers(60, size=90)]
    monkeypatch.setattr(mining, "BLOCK_ROWS", block)
    monkeypatch.setattr(mining, "BLOCK_PAIRS", 17)
    pairs = mine(vectors, top=top, threshold=threshold)
    assert [(pair.first, pair.second) for pair in pairs] == by_brute_force(vectors, top, threshold)
    for first, second, score in pairs:
        assert score == pytest.approx(cosines(vectors[first], vectors[second : second + 1])[0], abs=1e-12)


def test_all_equal():
    vectors = np.ones((7, 3), dtype=np.float32)
    pairs = mine(vectors, top=5, threshold=1.0)
    assert pairs == [(i, j, 1.0) for i, j in itertools.combinations(range(7), 2)][:5]


def test_a_pair_just_below_the_threshold_is_none():
    vectors = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
    score = float(row_cosines(vectors[:1], vectors[1:])[0])
    assert len(mine(vectors, threshold=score)) == 1
    assert mine(vectors, threshold=np.nextafter(score, 2)) == []


def test_one_row_or_none_has_no_pairs():
    assert mine(np.ones((1, 3), dtype=np.float32)) == []
    assert mine(np.ones((0, 3), dtype=np.float32)) == []


def test_rows_from_a_mapped_file(tmp_path):
    vectors = np.random.default_rng(2).normal(size=(50, 8)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    assert mine(np.load(tmp_path / "vectors.npy", mmap_mode="r"), top=9) == mine(vectors, top=9)


def test_refusals():
    vectors = np.ones((4, 3), dtype=np.float32)
    with pytest.raises(ConfigError, match="`top` is a whole number of 1 or more; received 0"):
        mine(vectors, top=0)
    for wrong in (1.2, -2.0, float("nan")):
        with pytest.raises(ConfigError, match="A threshold is a cosine, from -1 to 1"):
            mine(vectors, threshold=wrong)
    with pytest.raises(ModelError, match="a matrix; received the shape"):
        mine(vectors[0])
    vectors[2] = 0
    with pytest.raises(ModelError, match="row 2, counted from 0"):
        mine(vectors)


def test_many_equal_texts_are_not_all_compared_again(monkeypatch):
    counts = []

    def counted(vectors, near):
        counts.append(len(near.scores))
        return exact(vectors, near)

    exact = mining.pair_cosines
    monkeypatch.setattr(mining, "pair_cosines", counted)
    monkeypatch.setattr(mining, "BLOCK_ROWS", 64)
    monkeypatch.setattr(mining, "BLOCK_PAIRS", 100)
    vectors = np.ones((300, 4), dtype=np.float32)
    pairs = mine(vectors, top=250)
    assert pairs == [(i, j, 1.0) for i, j in itertools.combinations(range(300), 2)][:250]
    assert sum(counts) < 1000 < 300 * 299 / 2
