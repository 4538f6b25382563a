import itertools
import math

import pytest
import torch

from samesense.losses import triplet
from tests.references.triplet import triplet as reference


@pytest.mark.parametrize(("distance", "default"), [("cosine", 0.5), ("euclidean", 1.0)])
def test_equals_the_loop(vectors, distance, default):
    for n, margin in itertools.product([1, 2, 31, 1024], [None, 0.0, 5.0]):
        a = vectors(n)
        p = vectors(n, seed=1)
        q = vectors(n, seed=2)
        expected = reference(a.tolist(), p.tolist(), q.tolist(), distance, default if margin is None else margin)
        loss = triplet(a, p, q, distance=distance, margin=margin)
        assert loss.item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_no_triplet_costs_nothing():
    assert triplet(*[torch.zeros(0, 3)] * 3).item() == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"distance": "dot"}, "distance must be 'cosine' or 'euclidean'; received 'dot'."),
        ({"margin": -1.0}, "margin must be >= 0; received -1.0."),
        ({"margin": math.nan}, "margin must be >= 0; received nan."),
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
