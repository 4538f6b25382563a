import numpy as np
import pytest

from samesense.encoder.cosine import row_cosines
from samesense.errors import ModelError
from samesense.inference.search import exact as search
from samesense.inference.search.exact import Best, nearest, unit_rows
from tests.inference.made_vectors import cosines


def found(queries, ids, rows, count, size):
    blocks = [(ids[i : i + size], rows[i : i + size]) for i in range(0, len(ids), size)]
    best = [Best(count) for _ in queries]
    nearest(queries, lambda: blocks, best, count)
    return [(ranking.ids.tolist(), ranking.scores.tolist()) for ranking in best]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_equals_sorting_everything_with_ties_whatever_the_blocks(dtype, monkeypatch):
    random = np.random.default_rng(0)
    rows = unit_rows(random.normal(size=(300, 12)))[random.integers(300, size=400)].astype(dtype)
    ids = random.permutation(5000)[:400].astype(np.int64)
    queries = unit_rows(np.concatenate([random.normal(size=(4, 12)), rows[:4]]))
    monkeypatch.setattr(search, "BLOCK_QUERIES", 3)
    answers = [found(queries, ids, rows, 25, size) for size in (1, 7, 64, 400)]
    assert all(answer == answers[0] for answer in answers)
    for query, (its_ids, its_scores) in zip(queries, answers[0], strict=True):
        true = cosines(query, rows)
        order = sorted(range(400), key=lambda i: (-round(true[i], 12), ids[i]))[:25]
        assert its_ids == [ids[i] for i in order]
        assert its_scores == pytest.approx([true[i] for i in order], abs=1e-12)


def test_differences_below_float32_are_told_apart():
    base = np.zeros(200)
    base[0] = 1.0
    rows = np.repeat(base[None], 50, axis=0)
    rows[:, 1] = np.linspace(3e-4, 4e-4, 50)[::-1]
    rows = unit_rows(rows)
    answer = found(unit_rows(base[None]), np.arange(50), rows, 50, 50)[0]
    true = cosines(base, rows)
    assert answer[0] == sorted(range(50), key=lambda i: (-true[i], i))
    assert len({float(np.float32(score)) for score in true}) < 10 < len(set(true))


def test_a_score_does_not_depend_on_its_neighbours():
    random = np.random.default_rng(1)
    rows, query = random.normal(size=(40, 37)).astype(np.float32), random.normal(size=(1, 37)).astype(np.float32)
    together = row_cosines(query, rows)
    assert together.tolist() == [row_cosines(query, rows[i : i + 1])[0] for i in range(40)]
    assert row_cosines(rows, rows).tolist() == [1.0] * 40


def test_fewer_rows_than_asked_for_and_none():
    rows = unit_rows(np.eye(3))
    assert found(rows[:1], np.array([9, 5, 7]), rows, 10, 2) == [([9, 5, 7], [1.0, 0.0, 0.0])]
    assert found(rows[:1], np.zeros(0, dtype=np.int64), rows[:0], 10, 2) == [([], [])]


def test_unit_rows_at_the_ends_of_the_range():
    rows = unit_rows(np.array([[3e38, 4e-38], [1e-44, 0], [3, 4]], dtype=np.float32))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-7)
    for broken in (np.nan, np.inf, 0.0):
        with pytest.raises(ModelError, match="row 8, counted from 0"):
            unit_rows(np.array([[1.0, 1.0], [broken, 0.0]]), 7)
