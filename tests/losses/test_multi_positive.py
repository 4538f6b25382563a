import itertools
import math

import pytest
import torch

from samesense.losses import info_nce, multi_positive
from tests.losses.peers import differences, ranking_loss
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


OPTIONS = [{}, {"symmetric": True}, {"hardness": 5.0}, {"symmetric": True, "hardness": 2.0}]


def ragged(vectors, n, most_negatives):
    g = torch.Generator().manual_seed(n)
    positive_owner = torch.cat([torch.arange(n), torch.randint(n, (2 * n,), generator=g)])
    positive_owner = positive_owner[torch.randperm(3 * n, generator=g)]
    return vectors(n), vectors(3 * n, seed=1), vectors(most_negatives, seed=2), positive_owner


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_loops(vectors, options):
    for n, negatives, temperature in itertools.product([1, 2, 31], [0, 1, 50], [0.001, 0.05, 10.0]):
        a, p, q, owner = ragged(vectors, n, negatives)
        expected = reference(a.tolist(), p.tolist(), q.tolist(), owner.tolist(), temperature, **options)
        loss = multi_positive(a, p, q, positive_owner=owner, temperature=temperature, **options)
        assert loss.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_own_other_positives_receive_no_push():
    """With one anchor only its own positives are there: nothing to tell apart, so no loss, and no gradient."""
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = multi_positive(x[:1], x[1:], x[:0], positive_owner=torch.zeros(3, dtype=torch.long))
    loss.backward()
    assert loss.item() == 0.0
    assert x.grad.tolist() == [[0.0] * 3] * 4


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_weights_of_hardness_receive_no_gradient_and_all_else_does(vectors, value_and_gradients, options):
    columns = [vectors(3), vectors(4, seed=1), vectors(2, seed=2)]
    owner = [0, 1, 2, 1]
    exclude = [[False] * 6, [False, False, True, False, True, False], [False] * 6]
    options = {**options, "temperature": 0.5, "exclude": exclude}
    weighed = [column.tolist() for column in columns]
    expected = differences(lambda *moved: reference(*moved, owner, **options, weighed=weighed), *columns)

    def loss(*tensors):
        masks = {"exclude": torch.tensor(exclude)}
        return multi_positive(*tensors, positive_owner=torch.tensor(owner), **{**options, **masks})

    _, *gradients = value_and_gradients(loss, *columns)
    for gradient, difference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_one_positive_each_is_info_nce_and_the_loss_of_sentence_transformers(vectors, value_and_gradients, options):
    for n, negatives in itertools.product([1, 31], [0, 2]):
        columns = [vectors(n + 5, seed=seed)[5:] for seed in range(2 + negatives)]

        def loss(anchors, positives, *hard, n=n):
            negatives = torch.cat(hard) if hard else anchors[:0]
            return multi_positive(anchors, positives, negatives, positive_owner=torch.arange(n), **options)

        value, *gradients = value_and_gradients(loss, *columns)
        peer = {"temperature": 0.05, "symmetric": False, "hardness": 0.0, **options}
        expected = value_and_gradients(lambda *tensors, peer=peer: ranking_loss(*tensors, **peer), *columns)
        torch.testing.assert_close([value, *gradients], expected, rtol=1e-9, atol=1e-10)
        hard = torch.cat(columns[2:]) if negatives else None
        assert info_nce(*columns[:2], hard, **options).item() == pytest.approx(value.item(), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("excluded", [0.1, 0.9, 1.0])
def test_excluded_candidates_are_in_no_sum(vectors, value_and_gradients, excluded, options):
    for n in [1, 2, 31]:
        a, p, q, owner = ragged(vectors, n, 50)
        draw = torch.Generator().manual_seed(n)
        masks = {"exclude": torch.rand(n, len(p) + len(q), generator=draw) < excluded}
        if "symmetric" in options:
            masks["exclude_anchors"] = torch.rand(n, n, generator=draw) < excluded
        lists = {name: mask.tolist() for name, mask in masks.items()}
        expected = reference(a.tolist(), p.tolist(), q.tolist(), owner.tolist(), 0.05, **lists, **options)

        def loss(*embeddings, owner=owner, masks=masks):
            return multi_positive(*embeddings, positive_owner=owner, **masks, **options)

        value, *gradients = value_and_gradients(loss, a, p, q)
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)
        assert all(gradient.isfinite().all() for gradient in gradients)
        if excluded == 1.0:
            assert value.item() == 0.0  # no candidate is left to contrast with


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_mask_of_blocks_of_rows_is_that_of_the_whole(vectors, monkeypatch, options):
    from samesense.losses import cosine

    a, p, q, owner = ragged(vectors, 31, 50)
    exclude = torch.rand(31, len(p) + 50, generator=torch.Generator().manual_seed(0)) < 0.3
    masks = {"exclude": exclude}
    if "symmetric" in options:
        masks["exclude_anchors"] = exclude[:, :31]
    whole = multi_positive(a, p, q, positive_owner=owner, **masks, **options)
    monkeypatch.setattr(cosine, "BLOCK", 300)
    blocks = multi_positive(a, p, q, positive_owner=owner, **masks, **options)
    assert blocks.item() == pytest.approx(whole.item())


@pytest.mark.parametrize("mask", [torch.zeros(3, 5, dtype=torch.bool), torch.zeros(3, 6)])
def test_a_wrong_mask_is_refused(mask):
    with pytest.raises(
        ValueError, match=r"^exclude must be bool of shape \(3, 6\); received torch\.(bool|float32) \(3, "
    ):
        multi_positive(X, X, X, positive_owner=torch.arange(3), exclude=mask)


def test_a_wrong_mask_of_anchors_is_refused():
    mask = torch.zeros(3, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"^exclude_anchors must be bool of shape \(3, 3\); received torch\.bool \(2"):
        multi_positive(X, X, X, positive_owner=torch.arange(3), symmetric=True, exclude_anchors=mask[:2])
    with pytest.raises(ValueError, match=r"^exclude_anchors belongs to symmetric, which is False\. Leave it out\."):
        multi_positive(X, X, X, positive_owner=torch.arange(3), exclude_anchors=mask)
    with pytest.raises(ValueError, match=r"^hardness must be >= 0; received -1\.0\."):
        multi_positive(X, X, X, positive_owner=torch.arange(3), hardness=-1.0)


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
