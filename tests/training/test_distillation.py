"""The objective of distillation against plain loops."""

import numpy as np
import pytest
import torch

from samesense.losses import cosine_matrix, rank_cse, teacher_scores
from samesense.losses.distillation import Distillation


def made(teachers, **options):
    widths = [teacher.shape[1] for teacher in teachers]
    lookups = [lambda rows, vectors_of_teacher=teacher: vectors_of_teacher[rows] for teacher in teachers]
    return Distillation(torch.nn.Identity(), teachers=lookups, widths=widths, dim=6, **options)


def value(objective, views, rows):
    """What one process alone makes of the views and the row numbers."""
    return objective.loss(*objective.before_gather(views, rows))


@pytest.fixture
def vectors():
    torch.manual_seed(0)
    return torch.randn(20, 6), [torch.randn(20, 6), torch.randn(20, 4)]


def test_distance_is_half_the_squared_distance_of_unit_vectors(vectors):
    student, teachers = vectors
    objective = made(teachers, weights=[1.0, 3.0], gamma=0.0, contrast=0.0, beta=0.0, regress=2.0)
    rows = torch.randperm(20)
    distance = value(objective, [student], rows).item()

    matrix = objective.maps[1].weight.detach().numpy()
    apart = []
    for index, row in enumerate(rows.tolist()):
        vector = student[index].numpy()
        mapped = [vector, matrix @ vector]  # the first teacher is as wide as the student, and needs no map
        halves = [
            0.5 * np.sum((m / np.linalg.norm(m) - t[row].numpy() / np.linalg.norm(t[row].numpy())) ** 2)
            for m, t in zip(mapped, teachers, strict=True)
        ]
        apart.append(0.25 * halves[0] + 0.75 * halves[1])
    assert distance == pytest.approx(2.0 * np.mean(apart), abs=1e-5)


def test_every_view_is_at_its_distance_from_the_teachers(vectors):
    student, teachers = vectors
    objective = made(teachers, weights=[1.0, 3.0])
    views = [student, student.flip(0)]
    apart = torch.stack([objective.distance([view], teachers) for view in views])
    torch.testing.assert_close(objective.distance(views, teachers), apart.mean())
    assert apart[0] != apart[1]


def test_ranking_and_distance_are_added(vectors):
    student, teachers = vectors
    rows = torch.arange(20)
    options = {"rank": "listnet", "contrast": 0.0, "beta": 0.0, "two_views": False}
    objective = made(teachers, regress=0.5, **options)
    both = value(objective, [student], rows)
    scores = teacher_scores(teachers, [1.0, 1.0])
    rank = rank_cse(cosine_matrix(student, student), scores, rank="listnet", contrast=0.0, beta=0.0).total
    torch.testing.assert_close(both, rank + 0.5 * objective.distance([student], teachers))
    alone = made(teachers, regress=0.0, **options)
    torch.testing.assert_close(value(alone, [student], rows), rank)


def test_a_student_that_is_its_teacher_is_at_no_distance_and_a_map_is_learnt(vectors):
    student, _ = vectors
    same = made([student * 3.0], gamma=0.0, contrast=0.0, beta=0.0)
    assert value(same, [student], torch.arange(20)).item() == pytest.approx(0.0, abs=1e-6)
    assert not list(same.parameters())
    turned = made([student @ torch.randn(6, 9)], gamma=0.0, contrast=0.0, beta=0.0)
    torch.nn.init.zeros_(turned.maps[0].weight)
    assert value(turned, [student], torch.arange(20)).item() == pytest.approx(1.0)
    torch.nn.init.normal_(turned.maps[0].weight)
    optimiser = torch.optim.Adam(turned.parameters(), lr=0.05)
    for _ in range(300):
        optimiser.zero_grad()
        loss = value(turned, [student], torch.arange(20))
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.01


def test_one_width_and_weight_a_teacher(vectors):
    student, teachers = vectors
    for options in ({"weights": [1.0]}, {"weights": [1.0, 2.0, 3.0]}):
        with pytest.raises(ValueError, match="received 2 teachers and 2 widths and"):
            made(teachers, **options)
    with pytest.raises(ValueError, match="received 0 teachers and 0 widths"):
        made([])
    with pytest.raises(ValueError, match="Distillation takes as labels the row number of each of 20 sentences"):
        value(made(teachers), [student], torch.zeros(20))
