import itertools
import sys

import pytest
import torch

from samesense.losses import (
    RankDistillation,
    cosine_matrix,
    info_nce_scores,
    js_consistency,
    listmle,
    listnet,
    rank_cse,
    row_cosent,
    teacher_scores,
)
from tests.references.rank_distillation import rank_cse as reference
from tests.references.rank_distillation import teacher_scores as reference_teacher

STUDENT = torch.tensor([[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.0, 0.5, 0.95]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.5, 0.2], [0.5, 1.0, 0.6], [0.2, 0.6, 1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("rank", "ranking"),
    [
        ("listnet", 0.0361052655 * 3),
        ("listmle", 0.0181561846 + 0.0184914764 + 1.68806691e-4),
        ("cosent", 2 * 0.0181499279 + 4.53988992e-5),
    ],
)
def test_golden_values(rank, ranking):
    loss = rank_cse(STUDENT, TEACHER, rank=rank, beta=2.0, gamma=0.5, reduction="sum")
    assert isinstance(loss, RankDistillation)
    assert loss.info_nce.item() == pytest.approx(4.71213026e-4, abs=1e-10)
    assert loss.consistency.item() == pytest.approx(4.92729140e-4, abs=1e-10)
    assert loss.rank.item() == pytest.approx(ranking, abs=1e-9)
    expected = 4.71213026e-4 + 2 * 4.92729140e-4 + 0.5 * ranking
    assert loss.total.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rank", ["listnet", "listmle", "cosent"])
def test_equals_the_loops(matrix, rank):
    for n, reduction in itertools.product([1, 2, 31], ["mean", "sum"]):
        student = matrix(n)
        teacher = matrix(n, seed=1, rounded=True)
        settings = {"contrast": 0.4, "beta": 0.7, "gamma": 0.3, "tau1": 0.07, "tau2": 0.1, "tau3": 0.02}
        expected = reference(student.tolist(), teacher.tolist(), rank, **settings, reduction=reduction)
        loss = rank_cse(student, teacher, rank=rank, **settings, reduction=reduction)
        assert loss.total.item() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("n", [2, 31])
def test_the_community_term_in_its_place(matrix, n):
    student = matrix(n)
    teacher = matrix(n, seed=1)
    settings = {"beta": 0.7, "gamma": 0.3, "tau1": 0.07, "tau2": 0.1, "tau3": 0.02, "consistency": "community"}
    expected = reference(student.tolist(), teacher.tolist(), "listnet", **settings)
    assert rank_cse(student, teacher, rank="listnet", **settings).total.item() == pytest.approx(expected, rel=1e-11)


TERMS = {"contrast": "info_nce", "beta": "consistency", "gamma": "rank"}
FORMULAS = {"contrast": "info_nce_scores", "beta": "js_consistency", "gamma": "listmle"}


@pytest.mark.parametrize("off", [("contrast",), ("beta",), ("gamma",), ("contrast", "beta"), ("contrast", "gamma")])
def test_a_term_of_weight_0_is_not_computed(matrix, monkeypatch, off):
    """All ablations of Table 4."""
    student = matrix(9)
    teacher = matrix(9, seed=1)
    full = rank_cse(student, teacher, rank="listmle")
    module = sys.modules[RankDistillation.__module__]  # its name in samesense.losses is that of the function
    for name in off:
        monkeypatch.setattr(module, FORMULAS[name], lambda *_, **__: pytest.fail("computed"))
    loss = rank_cse(student, None if "gamma" in off else teacher, rank="listmle", **dict.fromkeys(off, 0.0))
    left = [getattr(full, field) for name, field in TERMS.items() if name not in off]
    assert loss.total.item() == pytest.approx(sum(left).item())
    assert [getattr(loss, field) is None for field in TERMS.values()] == [name in off for name in TERMS]


@pytest.mark.parametrize("rank", ["listnet", "listmle", "cosent"])
def test_each_setting_reaches_its_term(matrix, rank):
    """A weight or a temperature that is stored and never read is what public code gets wrong here."""
    student = matrix(9)
    teacher = matrix(9, seed=1)
    first = rank_cse(student, teacher, rank=rank)
    changed = {
        "contrast": ("total",),
        "beta": ("total",),
        "gamma": ("total",),
        "tau1": ("total", "info_nce", "consistency"),
        "tau2": ("total", "rank"),
        "tau3": ("total", "rank") if rank == "listnet" else (),
        "include_diagonal": ("total", "rank"),
    }
    for name, fields in changed.items():
        value = rank != "listmle" if name == "include_diagonal" else 0.3
        changed_loss = rank_cse(student, teacher, rank=rank, **{name: value})
        assert {field for field in first._fields if getattr(first, field) != getattr(changed_loss, field)} == set(
            fields
        ), name


def test_the_diagonal_is_in_or_out_by_formula(matrix):
    student = matrix(9)
    teacher = matrix(9, seed=1)
    net = {"student_temperature": 0.05, "teacher_temperature": 0.025}
    for diagonal in (None, True, False):
        out = bool(diagonal)
        full = diagonal is None or diagonal
        loss = rank_cse(student, teacher, rank="listnet", include_diagonal=diagonal)
        assert loss.rank == listnet(student, teacher, **net, include_diagonal=out)
        loss = rank_cse(student, teacher, rank="cosent", include_diagonal=diagonal)
        assert loss.rank == row_cosent(student, teacher, include_diagonal=out)
        loss = rank_cse(student, teacher, rank="listmle", include_diagonal=diagonal)
        assert loss.rank == listmle(student, teacher, student_temperature=0.05, include_diagonal=full)
        assert loss.info_nce == info_nce_scores(student)
        assert loss.consistency == js_consistency(student, reduction="mean")


@pytest.mark.parametrize("weights", [[1.0], [1, 2], [0.2, 0.0, 0.6]])
@pytest.mark.parametrize("n", [1, 2, 31])
def test_teachers_equal_the_loops(vectors, n, weights):
    teachers = [vectors(n, 4 + k, seed=k) for k in range(len(weights))]
    expected = torch.tensor(reference_teacher([t.tolist() for t in teachers], weights), dtype=torch.float64)
    torch.testing.assert_close(teacher_scores(teachers, weights), expected, rtol=0, atol=1e-14)


def test_teachers_have_no_gradient(vectors):
    x = vectors(4).requires_grad_()
    scores = teacher_scores([x, x], [1, 1])
    assert not scores.requires_grad
    torch.testing.assert_close(scores, cosine_matrix(x, x).detach())


X = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rank_cse(STUDENT, TEACHER, rank="ndcg"),
            "rank must be 'listnet', 'listmle' or 'cosent'; received 'ndcg'.",
        ),
        (
            lambda: rank_cse(STUDENT, TEACHER[:2], rank="listnet"),
            "rank_cse takes square matrices of student and teacher scores; received (3, 3) and (2, 3).",
        ),
        (
            lambda: rank_cse(STUDENT, None, rank="listnet"),
            "rank_cse takes square matrices of student and teacher scores; received (3, 3) and no teacher.",
        ),
        (
            lambda: rank_cse(STUDENT, TEACHER, rank="listnet", consistency="kl"),
            "consistency must be 'js' or 'community'; received 'kl'.",
        ),
        (
            lambda: rank_cse(STUDENT, TEACHER, rank="listnet", contrast=0, beta=0, gamma=0),
            "contrast, beta and gamma must be >= 0 and one of them above 0; received 0, 0, 0.",
        ),
        (
            lambda: rank_cse(STUDENT, TEACHER, rank="listnet", beta=-1.0),
            "contrast, beta and gamma must be >= 0 and one of them above 0; received 1.0, -1.0, 1.0.",
        ),
        (
            lambda: teacher_scores([X], [1, 2]),
            "teacher_scores takes one weight a teacher; received 1 teachers and 2 weights.",
        ),
        (
            lambda: teacher_scores([], []),
            "teacher_scores takes one weight a teacher; received 0 teachers and 0 weights.",
        ),
        (lambda: teacher_scores([X, X], [1, -1]), "weights must be >= 0 with a sum above 0; received [1, -1]."),
        (lambda: teacher_scores([X], [0]), "weights must be >= 0 with a sum above 0; received [0]."),
        (
            lambda: teacher_scores([X, X[:2]], [1, 1]),
            "teacher_scores takes the same sentences of every teacher; received [3, 2].",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
