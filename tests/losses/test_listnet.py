import itertools

import pytest
import torch

from samesense.losses import listnet
from tests.references.listnet import listnet as reference

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.6], [0.2, 0.6, 1.0]], dtype=torch.float64)
PAPER = {"student_temperature": 0.05, "teacher_temperature": 0.025}


def test_golden_values():
    rows = [0.0181745046, 0.0900947678, 4.65242508e-5]
    assert listnet(STUDENT, TEACHER, **PAPER).item() == pytest.approx(0.0361052655, abs=1e-10)
    assert listnet(STUDENT, TEACHER, **PAPER, reduction="sum").item() == pytest.approx(sum(rows), abs=1e-9)
    without = torch.eye(3) == 0
    for i, row in enumerate(rows):
        alone = (STUDENT[i][without[i]][None], TEACHER[i][without[i]][None])
        assert listnet(*alone, **PAPER, include_diagonal=True).item() == pytest.approx(row, abs=1e-10)


def test_equals_the_loops(matrix):
    for (n, m), temperatures in itertools.product(
        [(1, 1), (2, 2), (31, 31), (128, 128), (5, 40)], [(0.05, 0.025), (0.001, 0.001), (10.0, 0.5)]
    ):
        student = matrix(n, m)
        teacher = matrix(n, m, seed=1, rounded=True)
        for diagonal in (True, False) if n == m else (True,):
            for reduction in ("mean", "sum"):
                expected = reference(student.tolist(), teacher.tolist(), *temperatures, diagonal, reduction)
                value = listnet(
                    student,
                    teacher,
                    student_temperature=temperatures[0],
                    teacher_temperature=temperatures[1],
                    include_diagonal=diagonal,
                    reduction=reduction,
                )
                assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_a_wide_teacher_does_not_widen_the_loss(matrix):
    assert listnet(matrix(5).float(), matrix(5, seed=1), **PAPER).dtype == torch.float32


@pytest.mark.parametrize(
    ("shapes", "arguments", "message"),
    [
        (
            [(2, 3), (3, 2)],
            {},
            "listnet takes a list of scores a row, student and teacher of one shape (rows, candidates); "
            "received (2, 3) and (3, 2).",
        ),
        (
            [(2, 3), (2, 3)],
            {},
            "listnet can leave out the diagonal of square matrices only; received (2, 3). "
            "Pass include_diagonal=True for lists of other candidates.",
        ),
        ([(3, 3), (3, 3)], {"student_temperature": 0}, "student_temperature must be > 0; received 0."),
        ([(3, 3), (3, 3)], {"teacher_temperature": -1}, "teacher_temperature must be > 0; received -1."),
        ([(3, 3), (3, 3)], {"reduction": "max"}, "reduction must be 'mean' or 'sum'; received 'max'."),
    ],
)
def test_messages(shapes, arguments, message):
    with pytest.raises(ValueError) as error:
        listnet(*(torch.zeros(shape) for shape in shapes), **{**PAPER, **arguments})
    assert str(error.value) == message
