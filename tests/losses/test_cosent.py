import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.losses import cosent
from tests.references.cosent import cosent as reference


@pytest.mark.parametrize(
    ("scores", "labels", "temperature", "value"),
    [
        ([0.9, 0.1, 0.5, 0.7], [1, 0, 1, 0], 1 / 20, 4.0184853363),
        ([0.9, 0.1, 0.5, 0.7], [1, 0, 1, 0], 1.0, 1.4254627944),
        ([0.2, 0.6, 0.4], [0, 1, 2], 1 / 20, 4.0184853343),
        ([0.2, 0.6, 0.4], [1, 1, 1], 1 / 20, 0.0),
    ],
)
def test_golden_values(scores, labels, temperature, value):
    loss = cosent(torch.tensor(scores, dtype=torch.float64), torch.tensor(labels), temperature=temperature)
    assert loss.item() == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("levels", [1, 2, 3, 50, None])
def test_equals_the_double_sum(levels):
    for n, temperature in itertools.product([1, 2, 31, 1024], [0.05, 1.0]):
        g = torch.Generator().manual_seed(n)
        scores = torch.rand(n, generator=g, dtype=torch.float64) * 2 - 1
        scores[: n // 3] = scores[0]  # ties among the scores too
        labels = torch.rand(n, generator=g) if levels is None else torch.randint(levels, (n,), generator=g)
        expected = reference(scores.tolist(), labels.double().tolist(), temperature)
        assert cosent(scores, labels, temperature=temperature).item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 4)), min_size=1, max_size=20),
    st.sampled_from([0.0, 0.5, 1.0, 2.5]),
)
@settings(deadline=None, max_examples=60)
def test_equals_the_double_sum_with_margin_and_in_any_order(rows, margin):
    scores = torch.tensor([s for s, _ in rows], dtype=torch.float64)
    labels = torch.tensor([y for _, y in rows])
    loss = cosent(scores, labels, margin=margin).item()
    assert loss == pytest.approx(reference(scores.tolist(), labels.tolist(), margin=margin), rel=1e-10, abs=1e-10)
    assert cosent(scores.flip(0), labels.flip(0), margin=margin).item() == pytest.approx(loss, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("top", [1, 5, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_that_differ_by_the_margin_are_not_compared_in_any_precision(top, dtype):
    labels = torch.tensor([step / 5 for step in range(5 * top + 1)], dtype=dtype)
    scores = torch.zeros(2, dtype=torch.float64)
    for low, high in itertools.pairwise(labels):
        assert cosent(scores, torch.stack([low, high]), margin=0.2).item() == 0.0
        assert cosent(scores, torch.stack([low, high]), margin=0.199).item() == pytest.approx(math.log(2))
    everything = torch.linspace(-1, 1, len(labels), dtype=torch.float64)
    value = reference(everything.tolist(), [step / 5 for step in range(5 * top + 1)], margin=0.2)
    assert cosent(everything, labels, margin=0.2).item() == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("labels", [[1.0], [2.0, 2.0, 2.0]])
def test_no_comparison_costs_nothing_and_moves_nothing(labels):
    scores = torch.linspace(-1, 1, len(labels)).requires_grad_()
    loss = cosent(scores, torch.tensor(labels))
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad.tolist() == [0.0] * len(labels)


def test_bool_labels():
    scores = torch.tensor([0.9, 0.1, 0.5, 0.7])
    assert cosent(scores, torch.tensor([True, False, True, False])).item() == pytest.approx(4.0184853363, abs=1e-5)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError) as error:
        cosent(torch.zeros(4, 2), torch.zeros(4))
    assert str(error.value) == (
        "cosent takes one score and one label a pair, both of shape (pairs,); received scores (4, 2) and labels (4,)."
    )
    with pytest.raises(ValueError) as error:
        cosent(torch.zeros(4), torch.zeros(4), temperature=0)
    assert str(error.value) == "temperature must be > 0; received 0."
