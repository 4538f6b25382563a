import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from samesense.losses import js_consistency, js_divergence, minus_entropy
from tests.references.js_consistency import js
from tests.references.js_consistency import js_consistency as reference
from tests.references.js_consistency import minus_entropy as entropy_reference

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)


def test_golden_values():
    logits = STUDENT / 0.05
    rows = js_divergence(logits.log_softmax(1), logits.T.log_softmax(1))
    assert rows.tolist() == pytest.approx([1.16430509e-6, 4.68594611e-4, 2.29702246e-5], abs=1e-12)
    assert js_consistency(STUDENT).item() == pytest.approx(4.92729140e-4, abs=1e-12)


def test_equals_the_definition(matrix):
    for n, temperature in itertools.product([1, 2, 31, 128], [0.001, 0.05, 10.0]):
        scores = matrix(n, rounded=True)
        for reduction in ("mean", "sum"):
            expected = reference(scores.tolist(), temperature, reduction)
            value = js_consistency(scores, temperature=temperature, reduction=reduction).item()
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_rows_that_equal_their_columns_cost_nothing(matrix):
    for dtype, temperature in itertools.product([torch.float64, torch.float32], [1e-4, 0.05, 1.0]):
        scores = matrix(64).to(dtype)
        assert js_consistency(scores + scores.T, temperature=temperature).item() == 0.0


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=12),
    st.sampled_from([0.01, 0.05, 1.0]),
)
@settings(deadline=None, max_examples=80)
def test_lies_between_zero_and_log_two_and_is_symmetric(rows, temperature):
    p, q = (torch.tensor(side, dtype=torch.float64).div(temperature).log_softmax(0) for side in zip(*rows, strict=True))
    value = js_divergence(p, q).item()
    assert -1e-14 <= value <= math.log(2) + 1e-14
    assert js_divergence(q, p).item() == value
    assert js_divergence(p, p).item() == 0.0
    assert value == pytest.approx(js(p.exp().tolist(), q.exp().tolist()), abs=1e-12)


def test_impossible_outcomes():
    p = torch.tensor([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    q = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    value = js_divergence(p.log(), q.log())
    assert value.tolist() == pytest.approx([math.log(2) / 2, math.log(2)])


def test_impossible_outcomes_have_a_finite_gradient():
    scores = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    left = torch.tensor([True, False, False, True])
    p = F.log_softmax(scores.masked_fill(left, -torch.inf), dim=1)
    q = F.log_softmax((scores * 2).masked_fill(left.flip(0).roll(1), -torch.inf), dim=1)
    js_divergence(p, q).sum().backward()
    assert scores.grad.isfinite().all()


def test_minus_entropy_equals_the_definition(matrix):
    for n, temperature in itertools.product([1, 2, 31, 128], [0.001, 0.05, 10.0]):
        scores = matrix(n, rounded=True)
        for reduction in ("mean", "sum"):
            expected = entropy_reference(scores.tolist(), temperature, reduction)
            value = minus_entropy(scores, temperature=temperature, reduction=reduction).item()
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_minus_entropy_is_what_the_clamped_divergence_leaves(matrix):
    """The community code forms log M, clamps it from below by 1e-7, and so compares P and Q with a constant."""
    scores = matrix(16) * 0.3
    rows, columns = (F.log_softmax(log_probabilities / 0.05, dim=1) for log_probabilities in (scores, scores.T))
    middle = (0.5 * (rows.exp() + columns.exp())).log().clamp(min=1e-7)
    clamped = 0.5 * sum(
        F.kl_div(middle, log_probabilities, reduction="batchmean", log_target=True)
        for log_probabilities in (rows, columns)
    )
    value = minus_entropy(scores, reduction="mean")
    assert clamped.item() == pytest.approx(value.item() - 1e-7, abs=1e-12)
    assert -math.log(16) <= value.item() < 0


def test_messages():
    with pytest.raises(ValueError) as error:
        js_consistency(torch.zeros(2, 3))
    assert str(error.value) == "js_consistency takes a square matrix of scores; received (2, 3)."
    with pytest.raises(ValueError) as error:
        minus_entropy(torch.zeros(2, 3))
    assert str(error.value) == "minus_entropy takes a square matrix of scores; received (2, 3)."
    with pytest.raises(ValueError) as error:
        js_divergence(torch.zeros(3), torch.zeros(2))
    assert str(error.value) == "js_divergence takes one shape; received (3,) and (2,)."
