"""LambdaLoss equals its twin and sentence-transformers' module, in value and gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.cross_encoder.losses import LambdaLoss as Theirs

from samesense.losses import lambda_loss
from samesense.losses.lambda_loss import LambdaLoss
from tests.references.lambda_loss import lambda_loss as reference


@given(
    st.lists(
        st.tuples(st.floats(-4, 4), st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.integers(-1, 3)), min_size=1, max_size=20
    ),
    st.sampled_from([0.5, 1.0]),
    st.sampled_from([0.0, 10.0]),
)
@settings(deadline=None, max_examples=60)
def test_equals_the_double_sum(rows, temperature, mu):
    scores = torch.tensor([s for s, _, _ in rows], dtype=torch.float64)
    labels = torch.tensor([y for _, y, _ in rows])
    groups = torch.tensor([g for _, _, g in rows])
    loss = lambda_loss(scores, labels, groups=groups, temperature=temperature, mu=mu)
    expected = reference(scores.tolist(), labels.tolist(), groups.tolist(), temperature, mu)
    assert loss.item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


class Table(torch.nn.Module):
    """A cross-encoder whose logit of a pair is read from a table, so that two losses see the same."""

    num_labels = 1
    device = torch.device("cpu")

    def __init__(self, logits):
        super().__init__()
        self.logits = torch.nn.Parameter(logits)

    def preprocess(self, pairs, prompt=None, task=None):
        return {"rows": torch.tensor([int(text) for _, text in pairs])}

    def forward(self, features):
        return {"scores": self.logits[features["rows"]]}


@pytest.mark.parametrize("sizes", [[4], [3, 1, 7, 2], [10] * 6])
def test_equals_sentence_transformers(sizes):
    g = torch.Generator().manual_seed(len(sizes))
    groups = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    logits = torch.randn(len(groups), generator=g) * 3
    labels = torch.randint(4, (len(groups),), generator=g).float()
    model = Table(logits.clone())
    texts = [str(row) for row in range(len(groups))]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    lists = [texts[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    theirs = Theirs(model)([["query"] * len(sizes), lists], list(labels.split(sizes)))
    (gradient,) = torch.autograd.grad(theirs, model.logits)
    scores = logits.clone().requires_grad_()
    order = torch.randperm(len(groups), generator=g)
    loss = lambda_loss(scores[order], labels[order], groups=groups[order])
    torch.testing.assert_close(loss, theirs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.autograd.grad(loss, scores)[0], gradient, rtol=1e-4, atol=1e-6)


def test_lists_of_one_or_of_one_label_cost_nothing():
    scores = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([1.0, 1.0, 0.0]), groups=torch.tensor([0, 0, 1]))
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.tolist() == [0, 0, 0]
    assert lambda_loss(scores[:0], scores[:0].detach(), groups=torch.arange(0)).item() == 0


@pytest.mark.parametrize("label", [-1.0, 31.0])
def test_labels_without_a_gain_are_refused(label):
    with pytest.raises(ValueError, match=rf"^lambda_loss takes labels from 0 to 30; received {label:g}\. Rescale"):
        lambda_loss(torch.zeros(2), torch.tensor([0.0, label]), groups=torch.zeros(2, dtype=torch.long))


def test_the_module_takes_labels_with_groups():
    assert LambdaLoss(Table(torch.zeros(2))).get_config_dict() == {
        "temperature": 1.0,
        "mu": 10.0,
        "mini_batch_num_tokens": None,
    }
    with pytest.raises(ValueError, match=r"^LambdaLoss needs one label and one group for each of 2 pairs; received la"):
        LambdaLoss(Table(torch.zeros(2)))([["a", "a"], ["0", "1"]], torch.zeros(2))
