import itertools
import math

import pytest
import torch

from samesense.losses import info_nce, info_nce_scores
from tests.references.info_nce import info_nce as reference
from tests.references.info_nce import info_nce_scores as reference_scores

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)


def test_golden_values():
    assert info_nce_scores(STUDENT, reduction="sum").item() == pytest.approx(4.71213026e-4, abs=1e-12)
    assert info_nce_scores(STUDENT).item() == pytest.approx(1.57071009e-4, abs=1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
def test_equals_the_loops(vectors, symmetric):
    for n, negatives, temperature in itertools.product([1, 2, 31], [None, 0, 1, "n"], [0.001, 0.05, 10.0]):
        a = vectors(n)
        p = vectors(n, seed=1)
        hard = None if negatives is None else vectors(n if negatives == "n" else negatives, seed=2)
        rows = [] if hard is None else hard.tolist()
        expected = reference(a.tolist(), p.tolist(), rows, temperature, symmetric=symmetric)
        value = info_nce(a, p, hard, temperature=temperature, symmetric=symmetric)
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_weight_of_the_own_hard_negative(vectors):
    for weight in [-2.0, 0.0, 1.5]:
        a = vectors(16)
        p = vectors(16, seed=1)
        n = vectors(16, seed=2)
        expected = reference(a.tolist(), p.tolist(), n.tolist(), own_negative_weight=weight)
        assert info_nce(a, p, n, own_negative_weight=weight).item() == pytest.approx(expected, rel=1e-12)


def test_scores_equal_the_loops(matrix):
    for (n, m), temperature in itertools.product([(1, 1), (2, 2), (31, 40), (128, 256)], [1e-4, 0.05, 100.0]):
        scores = matrix(n, m, rounded=True)
        for reduction in ("mean", "sum"):
            expected = reference_scores(scores.tolist(), temperature, reduction)
            value = info_nce_scores(scores, temperature=temperature, reduction=reduction)
            assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_zero_vectors_cost_a_finite_amount_with_a_finite_gradient():
    a = torch.zeros(4, 3, requires_grad=True)
    p = torch.zeros(4, 3, requires_grad=True)
    loss = info_nce(a, p)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(4))
    assert not a.grad.any()
    assert not p.grad.any()


X = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: info_nce(X, X[:2]),
            "info_nce takes 2 matrices of one shape (rows, dim); received (3, 2), (2, 2).",
        ),
        (lambda: info_nce(X, X, temperature=0), "temperature must be > 0; received 0."),
        (lambda: info_nce(X, X, temperature=math.nan), "temperature must be > 0; received nan."),
        (
            lambda: info_nce(X, X, X[:2], own_negative_weight=1.0),
            "own_negative_weight needs one negative for each of the 3 anchors; received 2.",
        ),
        (
            lambda: info_nce(X, X, own_negative_weight=1.0),
            "own_negative_weight needs one negative for each of the 3 anchors; received 0.",
        ),
        (
            lambda: info_nce_scores(torch.zeros(3, 2)),
            "info_nce_scores takes scores (anchors, candidates) with a candidate for each anchor at least; "
            "received (3, 2).",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
