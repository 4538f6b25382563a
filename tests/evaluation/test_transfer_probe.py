import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from samesense.errors import ModelError
from samesense.evaluation import probe
from samesense.evaluation.probe import fit_probes, predict

GRID = [1e-5, 1e-3, 1e-4, 1e-2]


def problem(n=600, dim=20, classes=2, seed=0, noise=1.0):
    """Overlapping classes, with equal rows of equal and of different classes."""
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, dim)).astype(np.float32)
    y = (x[:, :classes] + noise * source.normal(size=(n, classes))).argmax(axis=1)
    x[: n // 10] = x[n // 10 : 2 * (n // 10)]
    return x, y


def halves(n, count, seed=1):
    return np.random.default_rng(seed).random((count, n)) < 0.7


def library(x, y, l2):
    """Weights ``(dim + 1, logits)`` by scikit-learn, the bias penalised as one more weight."""
    strength = (1 if y.max() > 1 else 2) / (l2 * len(y))
    model = LogisticRegression(C=strength, fit_intercept=False, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
    return model.fit(np.hstack([x.astype(np.float64), np.ones((len(x), 1))]), y).coef_.T


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("scale", [0.05, 1, 30])
def test_equals_the_library_at_every_fold_and_penalty(classes, scale):
    x, y = problem(classes=classes)
    x = x * np.float32(scale)
    training = halves(len(x), 5)
    found = fit_probes(x, y, training, GRID, tolerance=1e-7)
    assert found.shape == (4, 5, 21, 1 if classes == 2 else classes)
    for at, l2 in enumerate(GRID):
        for part, rows in enumerate(training):
            wanted = library(x[rows], y[rows], l2)
            assert np.abs(found[at, part] - wanted).max() < 1e-4
            assert (predict(x, found[at, part]) == predict(x, wanted)).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_is_the_minimum_of_a_linear_layer_under_weight_decay(classes):
    x, y = problem(classes=classes)
    training = halves(len(x), 2)
    for l2 in (1e-5, 1e-2):
        for rows, solved in zip(training, fit_probes(x, y, training, [l2], tolerance=1e-7)[0], strict=True):
            both = solved if classes > 2 else np.hstack([-solved / 2, solved / 2])
            weights = torch.tensor(both, requires_grad=True)
            inputs = torch.tensor(np.hstack([x[rows], np.ones((rows.sum(), 1))]))
            loss = torch.nn.functional.cross_entropy(inputs @ weights, torch.tensor(y[rows]))
            (loss + l2 / 2 * weights.square().sum()).backward()
            assert weights.grad.abs().max() < 1e-7


@pytest.mark.parametrize("classes", [2, 3])
def test_a_problem_does_not_feel_the_others(classes, monkeypatch):
    x, y = problem(classes=classes)
    training = halves(len(x), 7)
    together = fit_probes(x, y, training, GRID)
    monkeypatch.setattr(probe, "BLOCK_CELLS", 3 * len(x) * classes)
    in_blocks = fit_probes(x, y, training, GRID)
    alone = fit_probes(x, y, training[3:4], GRID[2:3])
    inputs = np.hstack([x, np.ones((len(x), 1))])
    assert np.abs(inputs @ (together - in_blocks)).max() < 1e-3
    assert np.abs(inputs @ (together[2, 3] - alone[0, 0])).max() < 1e-3


@pytest.mark.parametrize("classes", [2, 3])
def test_constant_features_give_the_larger_class(classes):
    y = np.repeat(np.arange(classes), [5, 9, 7][:classes])
    for value in (0.0, 3.0):
        x = np.full((len(y), 4), value, dtype=np.float32)
        weights = fit_probes(x, y, np.ones((1, len(y)), dtype=bool), GRID)
        assert all((predict(x, one[0]) == 1).all() for one in weights)


def test_separable_classes_more_columns_than_rows_and_wild_scales():
    source = np.random.default_rng(0)
    y = np.arange(40) % 2
    for x in (
        source.normal(size=(40, 100)),
        (2.0 * y - 1)[:, None] * 1e4,
        source.normal(size=(40, 3)) * [1e-6, 1, 1e5],
    ):
        found = fit_probes(x, y, np.ones((1, 40), dtype=bool), GRID, tolerance=1e-7)
        for at, l2 in enumerate(GRID):
            wanted = library(x, y, l2)
            error = np.abs(x @ (found[at, 0][:-1] - wanted[:-1])).max()
            assert error < 2e-3 * np.abs(x @ wanted[:-1]).max()


def test_a_class_absent_from_the_training_rows_is_never_predicted():
    x, y = problem(classes=3)
    weights = fit_probes(x, y, (y != 1)[None], [1e-4])
    assert set(predict(x, weights[0, 0])) == {0, 2}


def test_of_equally_probable_classes_the_first():
    x = np.zeros((2, 3), dtype=np.float32)
    assert predict(x, np.zeros((4, 1))).tolist() == predict(x, np.zeros((4, 5))).tolist() == [0, 0]


def test_says_so_when_it_does_not_get_there(monkeypatch):
    monkeypatch.setattr(probe, "SHARED_STEPS", 1)
    monkeypatch.setattr(probe, "MOST_STEPS", 1)
    x, y = problem()
    with pytest.raises(ModelError, match=r"within 1 steps, and one with L2 0\.005 is not"):
        fit_probes(x, y, halves(len(x), 2), GRID)


@pytest.mark.parametrize("classes", [2, 3])
def test_problems_that_have_nothing_in_common_are_solved_each_alone(classes, monkeypatch):
    x, y = problem(classes=classes)
    training = np.stack([np.arange(len(x)) < 12, np.arange(len(x)) >= 0, np.arange(len(x)) >= 560])
    monkeypatch.setattr(probe, "SHARED_STEPS", 2)
    found = fit_probes(x, y, training, GRID, tolerance=1e-7)
    for at, l2 in enumerate(GRID):
        for part, rows in enumerate(training):
            assert np.abs(found[at, part] - library(x[rows], y[rows], l2)).max() < 1e-3
