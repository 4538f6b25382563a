import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.losses import listmle
from tests.references.listmle import listmle as reference

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.6], [0.2, 0.6, 1.0]], dtype=torch.float64)


def test_golden_values():
    full = [0.0181561846, 0.0184914764, 1.68806691e-4]
    off = [0.0181499279, 0.0181499279, 4.53988992e-5]
    for i, row in enumerate(full):
        alone = listmle(STUDENT[i : i + 1], TEACHER[i : i + 1], student_temperature=0.05)
        assert alone.item() == pytest.approx(row, abs=1e-10)
    assert listmle(STUDENT, TEACHER, student_temperature=0.05).item() == pytest.approx(sum(full) / 3, abs=1e-10)
    loss = listmle(STUDENT, TEACHER, student_temperature=0.05, include_diagonal=False, reduction="sum")
    assert loss.item() == pytest.approx(sum(off), abs=1e-10)


@pytest.mark.parametrize("rounded", [False, True])
def test_equals_the_loops(matrix, rounded):
    for (n, m), temperature in itertools.product([(1, 1), (2, 2), (31, 31), (64, 64), (2, 500)], [0.001, 0.05, 10.0]):
        student = matrix(n, m)
        teacher = matrix(n, m, seed=1, rounded=rounded)
        for diagonal in (True, False) if n == m else (True,):
            expected = reference(student.tolist(), teacher.tolist(), temperature, diagonal, "sum")
            value = listmle(
                student, teacher, student_temperature=temperature, include_diagonal=diagonal, reduction="sum"
            )
            assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(st.lists(st.tuples(st.floats(-1, 1), st.integers(-3, 3)), min_size=1, max_size=12), st.floats(-5, 5))
@settings(deadline=None, max_examples=60)
def test_only_the_order_of_the_teacher_and_the_differences_of_the_student_count(rows, shift):
    student = torch.tensor([[s for s, _ in rows]], dtype=torch.float64)
    teacher = torch.tensor([[t for _, t in rows]], dtype=torch.float64)
    loss = listmle(student, teacher, student_temperature=0.1).item()
    again = listmle(student + shift, teacher.exp() - 2, student_temperature=0.1).item()
    assert again == pytest.approx(loss, rel=1e-9, abs=1e-9)
    assert loss >= 0


def test_a_single_sentence_has_no_list_off_the_diagonal():
    student = torch.ones(1, 1, requires_grad=True)
    loss = listmle(student, torch.ones(1, 1), student_temperature=0.05, include_diagonal=False)
    loss.backward()
    assert loss.item() == 0.0
    assert student.grad.item() == 0.0


def test_messages():
    square = torch.zeros(2, 2)
    with pytest.raises(ValueError) as error:
        listmle(square, square, student_temperature=0.0)
    assert str(error.value) == "student_temperature must be > 0; received 0.0."
    with pytest.raises(ValueError, match="listmle takes a list of scores a row"):
        listmle(torch.zeros(2), torch.zeros(2), student_temperature=1.0)
    with pytest.raises(ValueError, match="listmle can leave out the diagonal of square matrices only"):
        listmle(torch.zeros(2, 3), torch.zeros(2, 3), student_temperature=1.0, include_diagonal=False)
