"""MarginMSE equals its twin and sentence-transformers' module, in value and gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from samesense.losses import margin_mse
from tests.references.margin_mse import margin_mse as reference


@given(st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 5), st.integers(-1, 3)), min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_equals_the_mean_over_couples(rows):
    scores, labels = (torch.tensor([row[column] for row in rows], dtype=torch.float64) for column in (0, 1))
    groups = torch.tensor([g for _, _, g in rows])
    expected = reference(scores.tolist(), labels.tolist(), groups.tolist())
    assert margin_mse(scores, labels, groups=groups).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_equals_sentence_transformers_for_groups_of_two():
    from sentence_transformers.cross_encoder.losses import MarginMSELoss

    g = torch.Generator().manual_seed(0)
    positive, negative = (torch.randn(9, generator=g, requires_grad=True) for _ in range(2))
    labels = torch.rand(2, 9, generator=g) * 5
    theirs = MarginMSELoss.__new__(MarginMSELoss)
    nn.Module.__init__(theirs)
    theirs.loss_fct = nn.MSELoss()
    logits = iter([positive, negative])
    # Without a model, which gives the logits of the positive pairs first.
    theirs.logits_from_pairs = lambda pairs, **_: next(logits)
    expected = theirs([["q"] * 9, ["p"] * 9, ["n"] * 9], [*labels.T])
    scores = torch.cat([positive, negative])
    loss = margin_mse(scores, labels.flatten(), groups=torch.arange(9).repeat(2))
    torch.testing.assert_close(loss, expected)
    slopes = torch.autograd.grad(loss, [positive, negative], retain_graph=True)
    for slope, expected_slope in zip(slopes, torch.autograd.grad(expected, [positive, negative]), strict=True):
        torch.testing.assert_close(slope, expected_slope)


def test_a_constant_in_a_group_costs_nothing_and_groups_of_one_neither():
    labels = torch.tensor([0.0, 1.0, 2.0, 5.0])
    groups = torch.tensor([0, 0, 1, 2])
    scores = (labels + torch.tensor([7.0, 7.0, -3.0, 4.0])).requires_grad_()
    loss = margin_mse(scores, labels, groups=groups)
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.tolist() == [0.0] * 4
    assert margin_mse(scores[:0], labels[:0], groups=groups[:0]).item() == 0
