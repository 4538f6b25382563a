import itertools
import math

import pytest
import torch

from samesense.losses import info_nce, info_nce_scores
from tests.losses.peers import differences, ranking_loss
from tests.references.info_nce import info_nce as reference
from tests.references.info_nce import info_nce_scores as reference_scores

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)


def test_golden_values():
    assert info_nce_scores(STUDENT, reduction="sum").item() == pytest.approx(4.71213026e-4, abs=1e-12)
    assert info_nce_scores(STUDENT).item() == pytest.approx(1.57071009e-4, abs=1e-12)


@pytest.mark.parametrize("hardness", [0.0, 5.0])
@pytest.mark.parametrize("symmetric", [False, True])
def test_equals_the_loops(vectors, symmetric, hardness):
    for n, negatives, temperature in itertools.product([1, 2, 31], [None, 0, 1, "n"], [0.001, 0.05, 10.0]):
        a = vectors(n)
        p = vectors(n, seed=1)
        hard = None if negatives is None else vectors(n if negatives == "n" else negatives, seed=2)
        rows = [] if hard is None else hard.tolist()
        options = {"temperature": temperature, "symmetric": symmetric, "hardness": hardness}
        expected = reference(a.tolist(), p.tolist(), rows, **options)
        value = info_nce(a, p, hard, **options)
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("symmetric", [False, True])
def test_weights_of_hardness_receive_no_gradient(vectors, value_and_gradients, symmetric):
    columns = [vectors(4), vectors(4, seed=1), vectors(3, seed=2)]
    options = {"temperature": 0.5, "symmetric": symmetric, "hardness": 3.0}
    weighed = [column.tolist() for column in columns]
    expected = differences(lambda *moved: reference(*moved, **options, weighed=weighed), *columns)
    with_weights = differences(lambda *moved: reference(*moved, **options), *columns)
    _, *gradients = value_and_gradients(lambda *tensors: info_nce(*tensors, **options), *columns)
    for gradient, difference, other in zip(gradients, expected, with_weights, strict=True):
        torch.testing.assert_close(gradient, difference, rtol=1e-6, atol=1e-8)
        assert not torch.allclose(gradient, other, rtol=1e-2)


@pytest.mark.parametrize("hardness", [0.0, 9.0])
@pytest.mark.parametrize("symmetric", [False, True])
def test_value_and_gradient_are_those_of_sentence_transformers(vectors, value_and_gradients, symmetric, hardness):
    options = {"temperature": 0.1, "symmetric": symmetric, "hardness": hardness}
    for n, negatives in itertools.product([1, 4, 31], [0, 1, 2]):
        # its cosine has no value for zeros, so that these rows are made of others
        columns = [vectors(n + 5, seed=seed)[5:] for seed in range(2 + negatives)]

        def loss(anchors, positives, *hard):
            return info_nce(anchors, positives, torch.cat(hard) if hard else None, **options)

        expected = value_and_gradients(lambda *tensors: ranking_loss(*tensors, **options), *columns)
        torch.testing.assert_close(value_and_gradients(loss, *columns), expected, rtol=1e-9, atol=1e-11)
        if not negatives:
            modes = {"in_batch_negatives": True, "hard_negatives": not hardness or n == 1}
            for mode, equal in modes.items():
                value = ranking_loss(*columns, **options, mode=mode)
                assert torch.isclose(value, expected[0]) == equal


def test_weight_of_the_own_hard_negative(vectors):
    for weight, hardness in [(-2.0, 0.0), (0.0, 0.0), (1.5, 0.0), (1.5, 4.0)]:
        a = vectors(16)
        p = vectors(16, seed=1)
        n = vectors(16, seed=2)
        options = {"own_negative_weight": weight, "hardness": hardness, "symmetric": True}
        expected = reference(a.tolist(), p.tolist(), n.tolist(), **options)
        assert info_nce(a, p, n, **options).item() == pytest.approx(expected, rel=1e-12)


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
        (lambda: info_nce(X, X, hardness=-1.0), "hardness must be >= 0; received -1.0."),
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
