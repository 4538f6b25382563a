import itertools

import pytest
import torch

from samesense.losses import sup_con
from tests.references.sup_con import sup_con as reference


def test_equals_the_loops(vectors):
    for n, classes, temperature in itertools.product([1, 2, 31], [1, 3, 1000], [0.001, 0.1, 10.0]):
        embeddings = vectors(n)
        labels = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(n))
        for reduction in ("mean", "sum"):
            expected = reference(embeddings.tolist(), labels.tolist(), temperature, reduction)
            value = sup_con(embeddings, labels, temperature=temperature, reduction=reduction)
            assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_anchors_without_a_positive_have_no_part_in_the_mean(vectors, reduction):
    embeddings = vectors(7)
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 3])  # the last two have no positive
    expected = reference(embeddings.tolist(), labels.tolist(), 0.1, reduction)
    assert sup_con(embeddings, labels, temperature=0.1, reduction=reduction).item() == pytest.approx(
        expected, rel=1e-11
    )


def test_no_positive_costs_nothing_and_moves_nothing():
    for labels in [[0], [0, 1, 2]]:
        embeddings = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        value = sup_con(embeddings, torch.tensor(labels))
        value.backward()
        assert value.item() == 0.0
        assert not embeddings.grad.any()


def test_messages():
    with pytest.raises(ValueError) as error:
        sup_con(torch.zeros(3, 2), torch.zeros(2))
    assert str(error.value) == ("sup_con takes rows (n, dim) and labels (n,); received rows (3, 2) and labels (2,).")
    with pytest.raises(ValueError) as error:
        sup_con(torch.zeros(3, 2), torch.zeros(3), temperature=-1)
    assert str(error.value) == "temperature must be > 0; received -1."
