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


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3), st.integers(-2, 3)), min_size=1, max_size=25),
    st.sampled_from([0.0, 1.0]),
)
@settings(deadline=None, max_examples=60)
def test_groups_restrict_the_double_sum_in_any_order(rows, margin):
    scores = torch.tensor([s for s, _, _ in rows], dtype=torch.float64, requires_grad=True)
    labels, groups = (torch.tensor([row[column] for row in rows]) for column in (1, 2))
    loss = cosent(scores, labels, groups=groups, margin=margin)
    expected = reference(scores.tolist(), labels.tolist(), margin=margin, groups=groups.tolist())
    assert loss.item() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    backwards = cosent(scores.flip(0), labels.flip(0), groups=groups.flip(0), margin=margin)
    assert backwards.item() == pytest.approx(loss.item(), rel=1e-10, abs=1e-10)
    loss.backward()
    # The gradient of the twin, by central differences.
    for row in range(len(rows)):
        step = torch.zeros(len(rows), dtype=torch.float64)
        step[row] = 1e-6
        above, below = (
            reference((scores + sign * step).tolist(), labels.tolist(), margin=margin, groups=groups.tolist())
            for sign in (1, -1)
        )
        assert scores.grad[row].item() == pytest.approx((above - below) / 2e-6, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_groups_at_a_large_size(dtype):
    g = torch.Generator().manual_seed(0)
    scores = (torch.rand(1500, generator=g, dtype=torch.float64) * 2 - 1).to(dtype)
    labels = torch.randint(4, (1500,), generator=g)
    groups = torch.randint(200, (1500,), generator=g) ** 2 // 200  # from one pair a group to dozens
    expected = reference(scores.tolist(), labels.tolist(), groups=groups.tolist())
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    assert cosent(scores, labels, groups=groups).item() == pytest.approx(expected, rel=tolerance)


def test_one_group_is_none_and_pairs_alone_cost_nothing():
    g = torch.Generator().manual_seed(0)
    scores = (torch.rand(64, generator=g, dtype=torch.float64) * 2 - 1).requires_grad_()
    labels = torch.randint(4, (64,), generator=g)
    whole = cosent(scores, labels)
    (gradient,) = torch.autograd.grad(whole, scores)
    one_group = cosent(scores, labels, groups=torch.full((64,), 7))
    torch.testing.assert_close(one_group, whole, rtol=1e-12, atol=0)
    torch.testing.assert_close(torch.autograd.grad(one_group, scores)[0], gradient, rtol=1e-10, atol=1e-14)
    alone = cosent(scores, labels, groups=torch.arange(64))
    assert alone.item() == 0
    assert torch.autograd.grad(alone, scores)[0].tolist() == [0.0] * 64
    assert cosent(scores[:0], labels[:0], groups=torch.arange(0)).item() == 0


def test_a_group_far_from_all_others_keeps_its_own_sum():
    # Sums over all pairs would lose the second group, whose terms are e^800 times smaller.
    scores = torch.tensor([-20.0, -19.9, 20.0, 19.9], dtype=torch.float64)
    labels, groups = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    expected = reference(scores.tolist(), labels.tolist(), groups=groups.tolist())
    assert cosent(scores, labels, groups=groups).item() == pytest.approx(expected, rel=1e-12)


def test_memory_does_not_grow_with_the_largest_group():
    scores = torch.zeros(40_000, requires_grad=True)
    labels = torch.arange(40_000) % 3
    groups = torch.cat([torch.zeros(20_000, dtype=torch.long), torch.arange(20_000)])
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: (saved.append(tensor.numel()), tensor)[1], lambda x: x
    ):
        cosent(scores, labels, groups=groups).backward()
    assert sum(saved) < 200 * len(scores)


@pytest.mark.parametrize("groups", [torch.zeros(3), torch.zeros(2, dtype=torch.long), torch.zeros(3, dtype=torch.bool)])
def test_groups_that_do_not_fit(groups):
    with pytest.raises(ValueError, match=r"^cosent takes an integer group for each pair, of shape \(3,\); received"):
        cosent(torch.zeros(3), torch.zeros(3), groups=groups)


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
