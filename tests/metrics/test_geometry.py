import numpy as np
import pytest
import torch

from samesense.errors import ConfigError, DataError
from samesense.metrics import alignment, anisotropy, effective_rank, geometry, uniformity
from tests.references import geometry as reference


def cloud(n=60, dim=7, seed=0, offset=0.5):
    return np.random.default_rng(seed).normal(size=(n, dim)) + offset


def test_golden_values():
    x = np.array([[1, 0], [0, 1.0]])
    y = np.array([[0.6, 0.8], [0.8, 0.6]])
    assert alignment(x, y) == pytest.approx(0.8, abs=1e-12)
    assert uniformity(np.vstack([x, y])) == pytest.approx(-1.0156920058, abs=1e-10)


def test_equal_plain_loops():
    for t in [0.5, 2.0, 5.0]:
        x = cloud()
        y = cloud(seed=1)
        x[3] = x[9]  # a tie: two texts with one embedding
        assert alignment(x, y) == pytest.approx(reference.alignment(x, y), abs=1e-12)
        assert uniformity(x, t) == pytest.approx(reference.uniformity(x, t), abs=1e-12)
        assert anisotropy(x) == pytest.approx(reference.anisotropy(x), abs=1e-12)
        assert effective_rank(x) == pytest.approx(reference.effective_rank(x), abs=1e-9)


def test_uniformity_equals_torch_pdist_at_full_size():
    x = cloud(2900, 48)
    rows = torch.nn.functional.normalize(torch.from_numpy(x))
    expected = torch.pdist(rows).pow(2).mul(-2).exp().mean().log().item()
    assert uniformity(x) == pytest.approx(expected, abs=1e-10)


def test_anisotropy_equals_the_matrix_of_cosines_at_full_size():
    x = cloud(1500, 48)
    cosines = np.corrcoef(np.hstack([x, -x]))  # a row with its negative has mean 0, so this is the cosine
    assert anisotropy(x) == pytest.approx(cosines[np.triu_indices(1500, 1)].mean(), abs=1e-12)


def test_blocks_do_not_change_uniformity(monkeypatch):
    for cells in [1, 60, 61, 250, 10_000]:
        x = cloud()
        whole = uniformity(x)
        monkeypatch.setattr(geometry, "BLOCK_CELLS", cells)
        assert uniformity(x) == pytest.approx(whole, abs=1e-13)


def test_uniformity_does_not_underflow():
    opposite = np.array([[1.0, 0], [-1, 0]])
    assert uniformity(opposite, t=1000) == -4000.0
    assert uniformity(np.ones((5, 3))) == pytest.approx(0.0, abs=1e-14)


def test_known_shapes():
    identity = np.eye(6)
    assert anisotropy(identity) == pytest.approx(0.0, abs=1e-14)
    assert anisotropy(np.vstack([identity, -identity])) == pytest.approx(-1 / 11, abs=1e-14)
    assert anisotropy(np.ones((9, 4))) == pytest.approx(1.0)
    assert uniformity(identity) == pytest.approx(-4.0)
    assert alignment(identity, -identity) == pytest.approx(4.0)
    assert effective_rank(np.vstack([identity, -identity]) + 100) == pytest.approx(6.0)
    assert effective_rank(np.outer(np.arange(5), np.ones(3))) == pytest.approx(1.0)


def test_length_does_not_matter_however_extreme():
    for factor in [1e-300, 1e-20, 1e20, 1e300]:
        x = cloud(20)
        y = cloud(20, seed=1)
        assert alignment(factor * x, y) == pytest.approx(alignment(x, y), rel=1e-12)
        assert uniformity(factor * x) == pytest.approx(uniformity(x), rel=1e-12)
        assert anisotropy(factor * x) == pytest.approx(anisotropy(x), rel=1e-12)
        assert effective_rank(factor * x) == pytest.approx(effective_rank(x), rel=1e-9)


def test_float32_rows_are_measured_in_float64():
    x = cloud(500).astype(np.float32)
    assert uniformity(x) == uniformity(x.astype(np.float64))


SINGLE = [
    uniformity,
    anisotropy,
    effective_rank,
    lambda x: alignment(x, cloud(len(x))),
    lambda x: alignment(cloud(), x),
]


@pytest.mark.parametrize("measure", SINGLE)
def test_refuses_a_row_that_is_not_finite(measure):
    x = cloud()
    x[[4, 8], 2] = np.nan
    with pytest.raises(DataError, match=r"row 4 does not \(2 of 60"):
        measure(x)


@pytest.mark.parametrize("measure", [function for function in SINGLE if function is not effective_rank])
def test_refuses_a_zero_row(measure):
    x = cloud()
    x[7] = 0
    with pytest.raises(DataError, match=r"\[7\] is one \(1 of 60 are\)"):
        measure(x)


@pytest.mark.parametrize("measure", [uniformity, anisotropy, effective_rank])
def test_refuses_what_is_no_matrix_of_two_rows(measure):
    for bad in [np.ones((1, 4)), np.ones(4), np.ones((0, 4)), np.ones((4, 0))]:
        with pytest.raises(DataError, match=r"at least 2 rows, got 1|must be a matrix"):
            measure(bad)


def test_refuses_more():
    with pytest.raises(DataError, match=r"\(60, 7\) and \(50, 7\)"):
        alignment(cloud(), cloud(50))
    with pytest.raises(DataError, match="undefined because all 5 rows are the same"):
        effective_rank(np.ones((5, 3)))
    for t in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ConfigError, match="above 0"):
            uniformity(cloud(), t)
