import numpy as np
import pytest

from samesense.errors import ConfigError
from samesense.inference.search import mining
from samesense.inference.search.mining import cluster
from tests.inference.made_vectors import cosines


def by_search(vectors, threshold, smallest):
    """Connected components by walking from each row to all it is linked with."""
    links = [{j for j, score in enumerate(cosines(row, vectors)) if score >= threshold - 1e-12} for row in vectors]
    left, groups = set(range(len(vectors))), []
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = set().union(*(links[i] for i in edge)) - group
        left -= group
        groups.append(sorted(group))
    return sorted((group for group in groups if len(group) >= smallest), key=lambda group: (-len(group), group[0]))


@pytest.mark.parametrize("block", [1, 11, 1000])
@pytest.mark.parametrize("threshold", [0.2, 0.6, 0.9, 1.0])
def test_equals_a_walk_over_all_links(block, threshold, monkeypatch):
    random = np.random.default_rng(3)
    vectors = random.normal(size=(70, 6)).astype(np.float32)[random.integers(70, size=90)]
    monkeypatch.setattr(mining, "BLOCK_ROWS", block)
    monkeypatch.setattr(mining, "BLOCK_PAIRS", 5)
    for smallest in (1, 2, 3):
        found = cluster(vectors, threshold, smallest=smallest)
        assert [list(one.members) for one in found] == by_search(vectors, threshold, smallest)


def test_the_centre_and_a_chain():
    angles = np.array([0.0, 0.3, 0.6, 0.9, 1.2, 3.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    (chain,) = cluster(vectors, float(np.cos(0.31)))
    assert (chain.members, chain.centre) == ((0, 1, 2, 3, 4), 2)
    assert chain.lowest == pytest.approx(np.cos(0.6), abs=1e-6)
    assert [one.members for one in cluster(vectors, float(np.cos(0.29)))] == []


def test_equal_rows_have_the_first_as_centre():
    (group,) = cluster(np.ones((5000, 2), dtype=np.float32), 1.0)
    assert (group.members, group.centre, group.lowest) == (tuple(range(5000)), 0, 1.0)


def test_nothing_in_nothing_out_and_refusals():
    assert cluster(np.zeros((0, 4), dtype=np.float32), 0.9) == []
    with pytest.raises(ConfigError, match="A cluster has one member or more; received 0"):
        cluster(np.ones((2, 2), dtype=np.float32), 0.9, smallest=0)
    with pytest.raises(ConfigError, match="A threshold is a cosine"):
        cluster(np.ones((2, 2), dtype=np.float32), 9.0)
