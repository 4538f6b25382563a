import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.losses import cosent, row_cosent
from tests.references.row_cosent import row_cosent as reference

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.6], [0.2, 0.6, 1.0]], dtype=torch.float64)


def test_equals_the_double_sum(matrix):
    for (n, m), temperature, rounded in itertools.product(
        [(1, 1), (2, 2), (31, 31), (64, 64), (2, 500)], [0.001, 0.05, 10.0], [False, True]
    ):
        student = matrix(n, m, rounded=rounded)
        teacher = matrix(n, m, seed=1, rounded=rounded)
        for diagonal in (n != m,) if n == 64 else (True, False) if n == m else (True,):
            expected = reference(student.tolist(), teacher.tolist(), temperature, diagonal, "mean")
            value = row_cosent(student, teacher, temperature=temperature, include_diagonal=diagonal)
            assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 1000))
@settings(deadline=None, max_examples=40)
def test_each_row_is_cosent(n, m, seed):
    g = torch.Generator().manual_seed(seed)
    student = torch.rand(n, m, generator=g, dtype=torch.float64)
    teacher = torch.randint(4, (n, m), generator=g)
    expected = sum(cosent(s, t).item() for s, t in zip(student, teacher, strict=True))
    loss = row_cosent(student, teacher, include_diagonal=True, reduction="sum").item()
    assert loss == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_equal_teacher_scores_cost_nothing_and_move_nothing():
    for n in [1, 2, 5]:
        student = torch.rand(n, n, generator=torch.Generator().manual_seed(0)).requires_grad_()
        loss = row_cosent(student, torch.ones(n, n))
        loss.backward()
        assert loss.item() == 0.0
        assert not student.grad.any()


def test_messages():
    with pytest.raises(ValueError, match="row_cosent takes a list of scores a row"):
        row_cosent(torch.zeros(0, 0), torch.zeros(0, 0))
    with pytest.raises(ValueError) as error:
        row_cosent(torch.zeros(2, 2), torch.zeros(2, 2), temperature=0)
    assert str(error.value) == "temperature must be > 0; received 0."
