import pytest
import torch
from torch.nn import functional as F

from samesense.losses import triplet
from tests.references.triplet import triplet as reference


@pytest.mark.parametrize("n", [1, 2, 31, 1024])
@pytest.mark.parametrize(("distance", "default"), [("cosine", 0.5), ("euclidean", 1.0)])
@pytest.mark.parametrize("margin", [None, 0.0, 5.0])
def test_equals_the_loop(vectors, n, distance, default, margin):
    a, p, n = vectors(n), vectors(n, seed=1), vectors(n, seed=2)
    expected = reference(a.tolist(), p.tolist(), n.tolist(), distance, default if margin is None else margin)
    loss = triplet(a, p, n, distance=distance, margin=margin)
    assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_finite_gradient_where_embeddings_coincide(distance, dtype):
    x = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=dtype)
    columns = [x.clone().requires_grad_() for _ in range(3)]
    triplet(*columns, distance=distance).backward()
    assert all(column.grad.isfinite().all() for column in columns)


def test_a_margin_of_five_is_unreachable_for_unit_vectors():
    a = F.normalize(torch.randn(50, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    assert triplet(a, a, -a, distance="euclidean", margin=5.0).item() == pytest.approx(3.0, abs=1e-5)
    assert triplet(a, a, -a, distance="euclidean").item() == 0.0


def test_no_triplet_costs_nothing():
    assert triplet(*[torch.zeros(0, 3)] * 3).item() == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distance": "dot"}, "distance must be 'cosine' or 'euclidean'; received 'dot'."),
        ({"margin": -1.0}, "margin must be >= 0; received -1.0."),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError) as error:
        triplet(*[torch.zeros(2, 3)] * 3, **arguments)
    assert str(error.value) == message


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError) as error:
        triplet(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(1, 3))
    assert str(error.value) == ("triplet takes 3 matrices of one shape (rows, dim); received (2, 3), (2, 3), (1, 3).")
