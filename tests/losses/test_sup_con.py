import pytest
import torch

from samesense.losses import info_nce, sup_con
from tests.references.sup_con import sup_con as reference


@pytest.mark.parametrize("n", [1, 2, 31, 96])
@pytest.mark.parametrize("classes", [1, 3, 1000])
@pytest.mark.parametrize("temperature", [0.001, 0.1, 10.0])
def test_equals_the_loops(vectors, n, classes, temperature):
    embeddings = vectors(n)
    labels = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(n))
    for reduction in ("mean", "sum"):
        expected = reference(embeddings.tolist(), labels.tolist(), temperature, reduction)
        value = sup_con(embeddings, labels, temperature=temperature, reduction=reduction)
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_an_example_alone_in_its_class_is_no_anchor_but_a_rival(vectors):
    embeddings, labels = vectors(9), torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 3])
    paired = torch.arange(9) < 8
    per_anchor = sup_con(embeddings, labels, reduction="sum") / paired.sum()
    assert sup_con(embeddings, labels).item() == pytest.approx(per_anchor.item())
    assert sup_con(embeddings, labels, reduction="sum") > sup_con(embeddings[paired], labels[paired], reduction="sum")


@pytest.mark.parametrize("labels", [[0], [0, 1, 2]])
def test_no_positive_costs_nothing_and_moves_nothing(labels):
    embeddings = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    value = sup_con(embeddings, torch.tensor(labels))
    value.backward()
    assert value.item() == 0.0
    assert not embeddings.grad.any()


def test_two_of_a_class_are_info_nce_over_all_others():
    g = torch.Generator().manual_seed(0)
    a, p = torch.randn(1, 5, generator=g), torch.randn(1, 5, generator=g)
    rest = torch.randn(6, 5, generator=g)
    loss = sup_con(torch.cat([a, p, rest]), torch.tensor([0, 0, 1, 2, 3, 4, 5, 6]))
    both = info_nce(a, p, rest, temperature=0.1) + info_nce(p, a, rest, temperature=0.1)
    assert loss.item() == pytest.approx(both.item() / 2, rel=1e-5)


def test_messages():
    with pytest.raises(ValueError) as error:
        sup_con(torch.zeros(3, 2), torch.zeros(2))
    assert str(error.value) == ("sup_con takes rows (n, dim) and labels (n,); received rows (3, 2) and labels (2,).")
    with pytest.raises(ValueError) as error:
        sup_con(torch.zeros(3, 2), torch.zeros(3), temperature=-1)
    assert str(error.value) == "temperature must be > 0; received -1."
