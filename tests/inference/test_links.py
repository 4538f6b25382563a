"""Pairs of rows at a floor or above, and groups made of them, against plain loops."""

import numpy as np
import pytest

from samesense.inference.duplicates import links as module
from samesense.inference.duplicates.groups import linked, represented
from samesense.inference.duplicates.links import exact_links, list_search
from samesense.inference.search import lists
from samesense.inference.search.exact import unit_rows
from tests.inference.made_vectors import cosines


def never(first, second):
    """Pairs of rows of which none differs in what was not read."""
    return np.zeros(len(first), dtype=bool)


def made(rows, kinds, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(kinds, 8))
    vectors = centres[random.integers(kinds, size=rows)] + 0.4 * random.normal(size=(rows, 8))
    vectors *= random.uniform(0.1, 3, size=(rows, 1))
    vectors[-3:] = vectors[0]
    return vectors.astype(np.float32)


def all_pairs(vectors, floor):
    table = [cosines(row, vectors) for row in vectors]
    return {
        (i, j): table[i][j] for i in range(len(vectors)) for j in range(i + 1, len(vectors)) if table[i][j] >= floor
    }


def as_dict(links):
    return {
        (i, j): s for i, j, s in zip(links.first.tolist(), links.second.tolist(), links.scores.tolist(), strict=True)
    }


@pytest.mark.parametrize("block", [7, 1000])
def test_every_pair_at_the_floor_is_found(block, monkeypatch):
    monkeypatch.setattr("samesense.inference.search.mining.BLOCK_ROWS", block)
    vectors = made(90, 9)
    links, true = exact_links(vectors, 0.6), all_pairs(vectors, 0.6)
    assert len(true) > 100
    assert as_dict(links) == pytest.approx(true)
    assert np.isneginf(links.beyond).all()


@pytest.mark.parametrize("most", [1, 3, 8])
def test_what_is_left_out_is_known(most, monkeypatch):
    monkeypatch.setattr("samesense.inference.search.mining.BLOCK_ROWS", 16)
    monkeypatch.setattr(module, "POOL", 50)
    monkeypatch.setattr(module, "SORTED_LINKS", 20)
    vectors = made(90, 5)
    links, true = exact_links(vectors, 0.5, most=most), all_pairs(vectors, 0.5)
    linked_pairs = as_dict(links)
    assert linked_pairs == {pair: pytest.approx(true[pair]) for pair in linked_pairs}
    assert len(linked_pairs) < len(true)
    assert len(linked_pairs) <= most * len(vectors)
    for (i, j), score in true.items():
        assert (i, j) in linked_pairs or min(links.beyond[i], links.beyond[j]) >= score - 1e-9
    for row in range(len(vectors)):
        scores = sorted((score for pair, score in true.items() if row in pair), reverse=True)[:most]
        row_scores = sorted((score for pair, score in linked_pairs.items() if row in pair), reverse=True)[:most]
        assert row_scores == pytest.approx(scores, abs=1e-6)


def test_many_equal_rows_stay_bounded(monkeypatch):
    monkeypatch.setattr(module, "POOL", 1000)
    links = exact_links(np.ones((1500, 4), dtype=np.float32), 0.9, most=4)
    assert len(links.scores) <= 4 * 1500
    assert set(links.scores) == {1.0}


def test_lists_find_nearly_all_and_say_how_many():
    vectors = unit_rows(made(2000, 300))
    links, true = list_search().links(vectors, 0.8), all_pairs(vectors[:200], 0.8)
    linked_pairs = as_dict(links)
    assert all(first < second for first, second in linked_pairs)
    recall = sum(pair in linked_pairs for pair in true) / len(true)
    assert recall >= 0.97
    assert 0.98 <= links.recall <= 1
    assert len(linked_pairs) == len(links.scores), "each pair once"
    assert links.sampled > 50
    for pair in list(linked_pairs)[:50]:
        assert linked_pairs[pair] == pytest.approx(cosines(vectors[pair[0]], vectors[[pair[1]]])[0])


def test_with_few_links_in_the_sample_most_lists_are_looked_in():
    rows = unit_rows(np.random.default_rng(0).normal(size=(3000, 32)).astype(np.float32))
    rows[1] = rows[0]
    for floor, sampled in ((0.999, 2), (1.1, 0)):
        search_lists = lists.make_lists(rows, rows, floor, 10)
        assert search_lists.probes.shape[1] == lists.PROBES[-1]
        assert search_lists.sampled <= sampled
        assert np.isnan(search_lists.recall) == (search_lists.sampled == 0)


@pytest.mark.parametrize("range_pairs", [1, 300, 10**6])
def test_all_lists_together_hold_every_pair_once(range_pairs, monkeypatch):
    monkeypatch.setattr(lists, "WANTED", 1.1)
    monkeypatch.setattr(lists, "RANGE_PAIRS", range_pairs)
    monkeypatch.setattr(lists, "INVERTED_ROWS", 50)
    monkeypatch.setattr(lists, "BLOCK_ROWS", 7)
    vectors = unit_rows(made(120, 20))
    search_lists = lists.make_lists(vectors, vectors, 0.5, 200)
    assert (search_lists.probes.shape[1], search_lists.recall) == (15, 1.0)
    pairs = [
        pair
        for numbers in lists.cut_lists(search_lists)
        for near in lists.near_in_lists(search_lists, 0.5, numbers)
        for pair in zip(*map(np.ndarray.tolist, near), strict=True)
    ]
    assert len({pair[:2] for pair in pairs}) == len(pairs)
    assert {pair[:2]: pair[2] for pair in pairs} == pytest.approx(all_pairs(vectors, 0.5), abs=1e-5)
    across = lists.make_lists(vectors[:20], vectors[20:], 0.5, 200)
    pairs = {
        pair[:2]
        for numbers in lists.cut_lists(across)
        for near in lists.near_in_lists(across, 0.5, numbers)
        for pair in zip(*map(np.ndarray.tolist, near), strict=True)
    }
    assert pairs == {(i, j - 20) for i, j in all_pairs(vectors, 0.5) if i < 20 <= j}


def components(vectors, threshold):
    pairs, label = all_pairs(vectors, threshold - 1e-12), list(range(len(vectors)))
    for _ in vectors:
        for i, j in pairs:
            label[i] = label[j] = min(label[i], label[j])
    return label


def greedy(vectors, threshold, order):
    """A row is kept unless a row that is kept is close; then the closest of these stands for it."""
    representatives, stands = [], {}
    for row in order:
        scores = {
            representative: cosines(vectors[row], vectors[[representative]])[0] for representative in representatives
        }
        close = {representative: score for representative, score in scores.items() if score >= threshold}
        if not close:
            representatives.append(row)
        stands[row] = close or {row: 1.0}
    return representatives, stands


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("threshold", [0.55, 0.8, 1.0])
def test_groups_are_the_same_however_few_links_are_kept(most, threshold, monkeypatch):
    monkeypatch.setattr(module, "POOL", 40)
    vectors = made(80, 6, seed=2)
    links = exact_links(vectors, 0.5, most=most)
    order = np.random.default_rng(1).permutation(len(vectors))
    labels = components(vectors, threshold)
    result = linked(vectors, links, threshold, order, never)
    rank = {row: position for position, row in enumerate(order.tolist())}
    for row, label in enumerate(labels):
        members = [member for member, its in enumerate(labels) if its == label]
        assert result.kept_by[row] == min(members, key=rank.__getitem__)
    representatives, stands = greedy(vectors, threshold, order.tolist())
    result = represented(vectors, links, threshold, order, never)
    assert sorted(np.flatnonzero(result.kept_by == np.arange(len(vectors)))) == sorted(representatives)
    for row, close in stands.items():
        assert result.kept_by[row] in close
        assert result.scores[row] == pytest.approx(close[result.kept_by[row]])
        if most == 100:
            assert result.scores[row] == pytest.approx(max(close.values()))


@pytest.mark.parametrize("count", [1, 2, 8, 32])
@pytest.mark.parametrize("centres", [1, 2, 8, 33, 65, 300])
def test_closest_centres_are_those_of_sorting_all(centres, count):
    random = np.random.default_rng(centres)
    vectors = unit_rows(random.normal(size=(40, 16)))
    table = unit_rows(random.normal(size=(centres, 16)))
    expected = np.argsort(-(vectors @ table.T), axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(lists.closest_lists(vectors, table, count, ""), expected)


def test_closest_centres_of_equal_scores_are_different_ones():
    vectors = unit_rows(np.ones((5, 4)))
    table = unit_rows(np.ones((100, 4)))
    assert all(len(set(row)) == 8 for row in lists.closest_lists(vectors, table, 8, "").tolist())
