import itertools

import pytest
import torch

from samesense.losses import contrastive
from tests.references.contrastive import contrastive as reference

SCORES = torch.tensor([0.9, 0.3, -0.2], dtype=torch.float64)
LABELS = torch.tensor([1, 0, 0])


def test_golden_values():
    for threshold, literal, value in [
        (0.0, False, 0.0166666667),
        (0.0, True, 0.0166666667),
        (0.5, True, 0.085),
        (0.5, False, 0.0016666667),
        (-0.5, True, 0.0233333333),
        (-0.5, False, 0.1233333333),
    ]:
        loss = contrastive(SCORES, LABELS, threshold=threshold, literal=literal)
        assert loss.item() == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("literal", [False, True])
def test_equals_the_loop(matrix, literal):
    for n, threshold in itertools.product([1, 2, 31, 1024], [-1.0, -0.5, 0.0, 0.5, 0.9]):
        scores = matrix(n, 1, rounded=True).view(-1)
        labels = torch.randint(2, (n,), generator=torch.Generator().manual_seed(n))
        expected = reference(scores.tolist(), labels.tolist(), threshold, literal)
        loss = contrastive(scores, labels, threshold=threshold, literal=literal)
        assert loss.item() == pytest.approx(expected, abs=1e-14)


def test_a_negative_below_the_threshold_costs_nothing_and_does_not_move():
    scores = torch.tensor([0.3, 0.5], requires_grad=True)
    loss = contrastive(scores, torch.zeros(2), threshold=0.5)
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad.tolist() == [0.0, 0.0]


def test_labels_of_any_type():
    for labels in [torch.tensor([True, False, False]), torch.tensor([1.0, 0.0, 0.0])]:
        assert contrastive(SCORES, labels) == contrastive(SCORES, LABELS)


def test_no_pair_costs_nothing():
    assert contrastive(torch.zeros(0), torch.zeros(0)).item() == 0.0


def test_messages():
    with pytest.raises(ValueError) as error:
        contrastive(torch.zeros(2), torch.tensor([0.0, 2.5]))
    assert str(error.value) == "contrastive takes labels 0 and 1; received 2.5. Cut graded labels at a score first."
    with pytest.raises(ValueError) as error:
        contrastive(torch.zeros(2), torch.zeros(3))
    assert str(error.value) == (
        "contrastive takes one score and one label a pair, both of shape (pairs,); "
        "received scores (2,) and labels (3,)."
    )
