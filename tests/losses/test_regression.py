import pytest
import torch

from samesense.losses import mse
from tests.references.regression import mse as reference


def test_equals_the_loop(matrix):
    for n in [1, 2, 31, 1024]:
        scores = matrix(n, 1).view(-1)
        labels = matrix(n, 1, seed=1, rounded=True).view(-1)
        assert mse(scores, labels).item() == pytest.approx(reference(scores.tolist(), labels.tolist()), abs=1e-14)


def test_gradient_is_the_error():
    scores = torch.tensor([0.5, -1.0], requires_grad=True)
    mse(scores, torch.tensor([0, 1])).backward()
    assert scores.grad.tolist() == [0.5, -2.0]


def test_errors_that_overflow_half_precision():
    assert mse(torch.tensor([300.0], dtype=torch.float16), torch.tensor([0.0])).item() == 90000.0


def test_no_pair_costs_nothing():
    assert mse(torch.zeros(0), torch.zeros(0)).item() == 0.0


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError) as error:
        mse(torch.zeros(2, 1), torch.zeros(2))
    assert str(error.value) == (
        "mse takes one score and one label a pair, both of shape (pairs,); received scores (2, 1) and labels (2,)."
    )
