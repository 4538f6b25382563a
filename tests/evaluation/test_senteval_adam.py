import numpy as np
import pytest
import torch

from samesense.evaluation import classifier as senteval_adam
from samesense.evaluation.classifier import _accuracies, _gradient, _Layers, predict, train_layers


def drawn(n, dim, problems, logits, seed=0):
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, dim)).astype(np.float32)
    weights = source.normal(size=(dim, problems, logits)).astype(np.float32)
    return x, source.integers(0, max(2, logits), n), source.random((n, problems)) < 0.6, weights


@pytest.mark.parametrize("logits", [1, 3, 6])
def test_the_gradient_is_that_of_cross_entropy_over_a_problems_own_rows(logits):
    x, y, mine, weights = drawn(64, 9, 5, logits)
    gradient = _gradient(x, y, mine.astype(np.float32), weights)
    for problem in range(5):
        layer = torch.tensor(weights[:, problem], requires_grad=True)
        rows = mine[:, problem]
        margins = torch.tensor(x[rows]) @ layer
        both = torch.cat([-margins.detach(), margins], dim=1) if logits == 1 else margins
        torch.nn.functional.cross_entropy(both, torch.tensor(y[rows])).backward()
        assert gradient[:, problem] == pytest.approx(layer.grad.numpy(), abs=1e-6)


def test_a_problem_without_rows_in_a_batch_has_no_gradient():
    x, y, mine, weights = drawn(8, 4, 2, 1)
    mine[:, 1] = False
    assert not _gradient(x, y, mine.astype(np.float32), weights)[:, 1].any()


def test_steps_are_those_of_adam_with_coupled_weight_decay_also_after_problems_have_ended():
    source = np.random.default_rng(0)
    start = source.normal(size=(6, 4, 2)).astype(np.float32)
    decay = np.array([0, 1e-5, 1e-2, 1], dtype=np.float32)
    layers = _Layers(start.copy(), decay)
    theirs = [torch.nn.Parameter(torch.tensor(start[:, problem])) for problem in range(4)]
    adam = torch.optim.Adam([{"params": [p], "weight_decay": float(d)} for p, d in zip(theirs, decay, strict=True)])
    left = np.arange(4)
    for step in range(200):
        gradient = (source.normal(size=start.shape) * 10.0 ** source.integers(-4, 2)).astype(np.float32)
        for problem, parameter in enumerate(theirs):
            parameter.grad = torch.tensor(gradient[:, problem])
        layers.step(gradient[:, left].copy())
        adam.step()
        if step == 100:
            layers.keep(np.array([True, False, True, True]))
            left = np.array([0, 2, 3])
    expected = np.stack([theirs[problem].detach().numpy() for problem in left], axis=1)
    assert layers.weights == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("logits", [1, 4])
def test_accuracies_are_those_of_the_held_out_rows(logits, monkeypatch):
    x, y, held, weights = drawn(50, 3, 4, logits)
    monkeypatch.setattr(senteval_adam, "BLOCK_ROWS", 7)
    x[:, -1] = 1
    expected = []
    for problem in range(4):
        rows = held[:, problem]
        expected.append(np.mean(predict(x[rows, :-1], weights[:, problem]) == y[rows]))
    assert _accuracies(x, y, held, weights) == pytest.approx(expected, abs=1e-12)


def test_the_best_state_is_kept_and_the_sixth_miss_in_total_ends_a_run(monkeypatch):
    looks = {0: [0.5, 0.4, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.9], 1: [0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9]}
    calls = []
    states = []

    def accuracies(x, classes, watched, weights):
        problems = [0, 1] if weights.shape[1] == 2 else [1]
        values = np.array([looks[problem][len(calls)] for problem in problems])
        calls.append(problems)
        states.append(weights.copy())
        return values

    monkeypatch.setattr(senteval_adam, "_accuracies", accuracies)
    x, y, training, _ = drawn(40, 3, 2, 1)
    weights = train_layers(x, y, training.T, ~training.T, [1e-3])
    assert calls == [[0, 1]] * 8 + [[1]]
    assert (weights[0, 0] == states[2][:, 0]).all()
    assert (weights[0, 1] == states[2][:, 1]).all()


def test_no_run_goes_on_for_ever(monkeypatch):
    looks = []

    def better_and_better(x, classes, watched, weights):
        looks.append(len(looks) / 100)
        return np.full(weights.shape[1], looks[-1])

    monkeypatch.setattr(senteval_adam, "_accuracies", better_and_better)
    x, y, training, _ = drawn(20, 2, 1, 1)
    train_layers(x, y, training.T, ~training.T, [1e-3])
    assert len(looks) == 51  # 204 passes: the first count above 200


@pytest.mark.parametrize("classes", [2, 5])
def test_learns_what_can_be_learnt_with_every_weight_decay(classes):
    source = np.random.default_rng(0)
    x = source.normal(size=(600, 12)).astype(np.float32)
    y = x[:, :classes].argmax(axis=1)
    training = np.arange(600) < np.array([[300], [400]])
    weights = train_layers(x, y, training, ~training, [1e-5, 1e-2])
    assert weights.shape == (2, 2, 13, 1 if classes == 2 else 5)
    for penalty in weights:
        for rows, solved in zip(training, penalty, strict=True):
            assert np.mean(predict(x[~rows], solved) == y[~rows]) > 0.8


def test_of_equally_probable_classes_the_first():
    x = np.zeros((2, 3), dtype=np.float32)
    assert predict(x, np.zeros((4, 1))).tolist() == predict(x, np.zeros((4, 5))).tolist() == [0, 0]
