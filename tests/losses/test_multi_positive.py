import itertools
import math

import pytest
import torch

from samesense.losses import multi_positive
from tests.references.multi_positive import multi_positive as reference

OWNERS = torch.tensor([0, 0, 1, 1])


def golden_vectors():
    """Anchors e1 and e2, and unit vectors with the cosines of the printed example to them."""
    cosines = [(0.8, 0.3), (0.6, 0.0), (0.1, 0.7), (0.2, 0.9), (0.4, 0.2), (0.1, 0.5)]
    rows = [[x, y, math.sqrt(1 - x * x - y * y)] for x, y in cosines]
    rows = torch.tensor(rows, dtype=torch.float64)
    return torch.eye(3, dtype=torch.float64)[:2], rows[:4], rows[4:]


def test_golden_value_and_not_that_of_a_logit_of_zero():
    anchors, positives, negatives = golden_vectors()
    loss = multi_positive(anchors, positives, negatives, positive_owner=OWNERS).item()
    assert loss == pytest.approx(0.0094446821, abs=1e-10)
    assert loss != pytest.approx(0.0094464259, abs=1e-7)  # the value with the other positives left in as exp(0)


def ragged(vectors, n, most_negatives):
    g = torch.Generator().manual_seed(n)
    positive_owner = torch.cat([torch.arange(n), torch.randint(n, (2 * n,), generator=g)])
    positive_owner = positive_owner[torch.randperm(3 * n, generator=g)]
    return vectors(n), vectors(3 * n, seed=1), vectors(most_negatives, seed=2), positive_owner


def test_equals_the_loops(vectors):
    for n, negatives, temperature in itertools.product([1, 2, 31], [0, 1, 50], [0.001, 0.05, 10.0]):
        a, p, q, owner = ragged(vectors, n, negatives)
        expected = reference(a.tolist(), p.tolist(), q.tolist(), owner.tolist(), temperature)
        loss = multi_positive(a, p, q, positive_owner=owner, temperature=temperature)
        assert loss.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_own_other_positives_receive_no_push():
    """With one anchor only its own positives are there: nothing to tell apart, so no loss, and no gradient."""
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = multi_positive(x[:1], x[1:], x[:0], positive_owner=torch.zeros(3, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad.tolist() == [[0.0] * 3] * 4


@pytest.mark.parametrize("excluded", [0.1, 0.9, 1.0])
def test_excluded_candidates_are_in_no_sum(vectors, value_and_gradients, excluded):
    for n in [1, 2, 31]:
        a, p, q, owner = ragged(vectors, n, 50)
        exclude = torch.rand(n, len(p) + len(q), generator=torch.Generator().manual_seed(n)) < excluded
        expected = reference(a.tolist(), p.tolist(), q.tolist(), owner.tolist(), 0.05, exclude.tolist())

        def loss(*embeddings, owner=owner, exclude=exclude):
            return multi_positive(*embeddings, positive_owner=owner, exclude=exclude)

        value, *gradients = value_and_gradients(loss, a, p, q)
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)
        assert all(gradient.isfinite().all() for gradient in gradients)
        if excluded == 1.0:
            assert value.item() == 0.0  # no candidate is left to contrast with


def test_a_mask_of_blocks_of_rows_is_that_of_the_whole(vectors, monkeypatch):
    from samesense.losses import cosine

    a, p, q, owner = ragged(vectors, 31, 50)
    exclude = torch.rand(31, len(p) + 50, generator=torch.Generator().manual_seed(0)) < 0.3
    whole = multi_positive(a, p, q, positive_owner=owner, exclude=exclude)
    monkeypatch.setattr(cosine, "BLOCK", 300)
    assert multi_positive(a, p, q, positive_owner=owner, exclude=exclude).item() == pytest.approx(whole.item())


@pytest.mark.parametrize("mask", [torch.zeros(3, 5, dtype=torch.bool), torch.zeros(3, 6)])
def test_a_wrong_mask_is_refused(mask):
    with pytest.raises(
        ValueError, match=r"^exclude must be bool of shape \(3, 6\); received torch\.(bool|float32) \(3, "
    ):
        multi_positive(X, X, X, positive_owner=torch.arange(3), exclude=mask)


X = torch.ones(3, 2)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        ([0, 0, 2], "multi_positive needs a positive for every anchor; anchor 1 has none."),
        ([0, 1, 3], "positive_owner must be 0 to 2 for 3 anchors; received 3."),
        ([0, 1, -1], "positive_owner must be 0 to 2 for 3 anchors; received -1."),
        (
            [0, 1],
            "positive_owner must name the anchor of each of the 3 positives by whole number; "
            "received torch.int64 of shape (2,).",
        ),
        (
            [0.0, 1.0, 2.0],
            "positive_owner must name the anchor of each of the 3 positives by whole number; "
            "received torch.float32 of shape (3,).",
        ),
    ],
)
def test_messages(owner, message):
    with pytest.raises(ValueError) as error:
        multi_positive(X, X, X, positive_owner=torch.tensor(owner))
    assert str(error.value) == message
