import math

import pytest
import torch

from samesense.losses import angle_scores, row_cosine
from tests.references.angle import angle_score as reference


@pytest.mark.parametrize("n", [1, 2, 31, 1024])
@pytest.mark.parametrize("dim", [2, 6])
def test_equals_complex_numbers(vectors, n, dim):
    u, v = vectors(n, dim), vectors(n, dim, seed=1)
    expected = [reference(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    assert angle_scores(u, v).tolist() == pytest.approx(expected, abs=1e-13)


def test_range():
    u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    v = torch.tensor([[1.0, 0.0], [1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    assert angle_scores(u, v).tolist() == pytest.approx([1.0, math.sqrt(2), 0.0])


def test_is_the_size_of_the_cosine_where_the_imaginary_part_vanishes(vectors):
    u, v = vectors(31), vectors(31, seed=1)
    u[:, 3:] = v[:, 3:] = 0
    torch.testing.assert_close(angle_scores(u, v), row_cosine(u, v).abs())


def test_messages():
    with pytest.raises(ValueError) as error:
        angle_scores(torch.zeros(2, 3), torch.zeros(2, 3))
    assert str(error.value) == "angle_scores halves the embedding, so its dimension must be even; received 3."
    with pytest.raises(ValueError) as error:
        angle_scores(torch.zeros(2, 4), torch.zeros(1, 4))
    assert str(error.value) == "angle_scores takes two matrices of shape (pairs, dim); received (2, 4) and (1, 4)."
