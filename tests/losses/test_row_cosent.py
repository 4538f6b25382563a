import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.losses import cosent, row_cosent
from tests.references.row_cosent import row_cosent as reference

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.6], [0.2, 0.6, 1.0]], dtype=torch.float64)


def test_golden_values_of_cosent_row_by_row():
    student = torch.tensor([[0.9, 0.1, 0.5, 0.7], [0.9, 0.1, 0.5, 0.7]], dtype=torch.float64)
    teacher = torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    loss = row_cosent(student, teacher, include_diagonal=True, reduction="sum")
    assert loss.item() == pytest.approx(4.0184853363, abs=1e-9)
    loss = row_cosent(student[:1], teacher[:1], temperature=1.0, include_diagonal=True)
    assert loss.item() == pytest.approx(1.4254627944, abs=1e-9)


def test_two_candidates_a_row_are_those_of_listmle():
    """Off the diagonal each row of three has one comparison, whose cost is printed for ListMLE."""
    rows = [0.0181499279, 0.0181499279, 4.53988992e-5]
    assert row_cosent(STUDENT, TEACHER, reduction="sum").item() == pytest.approx(sum(rows), abs=1e-9)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (31, 31), (64, 64), (2, 500)])
@pytest.mark.parametrize("temperature", [0.001, 0.05, 10.0])
@pytest.mark.parametrize("rounded", [False, True])
def test_equals_the_double_sum(matrix, n, m, temperature, rounded):
    student, teacher = matrix(n, m, rounded=rounded), matrix(n, m, seed=1, rounded=rounded)
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


def test_the_diagonal_does_not_count(matrix):
    student, teacher = matrix(9), matrix(9, seed=1)
    loss = row_cosent(student, teacher)
    assert row_cosent(student.clone().fill_diagonal_(7), teacher.clone().fill_diagonal_(-7)) == loss


@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_teacher_scores_cost_nothing_and_move_nothing(n):
    student = torch.rand(n, n, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = row_cosent(student, torch.ones(n, n))
    loss.backward()
    assert loss.item() == 0.0
    assert not student.grad.any()


def test_the_teacher_receives_no_gradient(matrix):
    student, teacher = matrix(5).requires_grad_(), matrix(5, seed=1).requires_grad_()
    row_cosent(student, teacher).backward()
    assert teacher.grad is None


def test_messages():
    with pytest.raises(ValueError, match="row_cosent takes a list of scores a row"):
        row_cosent(torch.zeros(0, 0), torch.zeros(0, 0))
    with pytest.raises(ValueError) as error:
        row_cosent(torch.zeros(2, 2), torch.zeros(2, 2), temperature=0)
    assert str(error.value) == "temperature must be > 0; received 0."
