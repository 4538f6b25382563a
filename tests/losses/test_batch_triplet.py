import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.losses import batch_all, batch_hard
from tests.references import batch_triplet as references

LOSSES = [(batch_all, references.batch_all), (batch_hard, references.batch_hard)]


@pytest.mark.parametrize(("loss", "reference"), LOSSES)
@pytest.mark.parametrize(("distance", "margin"), [("cosine", 0.5), ("euclidean", 1.0), ("cosine", 0.0)])
def test_equals_the_list_of_triplets(vectors, loss, reference, distance, margin):
    for n, classes in [(1, 1), (2, 1000), (31, 1), (31, 2), (31, 7), (96, 7)]:
        embeddings = vectors(n, 3)
        labels = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(n))
        expected = reference(embeddings.tolist(), labels.tolist(), distance, margin)
        value = loss(embeddings, labels, distance=distance, margin=margin).item()
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 2)), min_size=2, max_size=10))
@settings(deadline=None, max_examples=60)
def test_equals_the_list_of_triplets_on_a_grid_full_of_ties(rows):
    embeddings = torch.tensor([row[:2] for row in rows], dtype=torch.float64)
    labels = torch.tensor([row[2] for row in rows])
    for loss, reference in LOSSES:
        expected = reference(embeddings.tolist(), labels.tolist(), "euclidean", 0.75)
        value = loss(embeddings, labels, distance="euclidean", margin=0.75).item()
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("loss", [batch_all, batch_hard])
def test_no_triplet_costs_nothing_and_moves_nothing(loss):
    for distance, labels in itertools.product(["cosine", "euclidean"], [[0], [0, 0, 0], [0, 1, 2]]):
        embeddings = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        value = loss(embeddings, torch.tensor(labels), distance=distance)
        value.backward()
        assert value.item() == 0.0
        assert not embeddings.grad.any()


def test_small_euclidean_distances_are_not_cancelled():
    small = 2.0**-10
    embeddings = torch.tensor([[1000.0, 0.0], [1000.0 + small, 0.0], [1000.0, 2 * small]])
    # only the first positive is further away than the nearest negative, by `small`; the last anchor adds nothing
    loss = batch_hard(embeddings, torch.tensor([0, 1, 0]), distance="euclidean", margin=0.0)
    assert loss.item() == pytest.approx(small / 2)


@pytest.mark.parametrize("loss", [batch_all, batch_hard])
def test_messages(loss):
    with pytest.raises(ValueError) as error:
        loss(torch.zeros(3, 2), torch.zeros(2))
    assert str(error.value) == (
        f"{loss.__name__} takes rows (n, dim) and labels (n,); received rows (3, 2) and labels (2,)."
    )
    with pytest.raises(ValueError) as error:
        loss(torch.zeros(2, 2), torch.zeros(2), distance="dot")
    assert str(error.value) == "distance must be 'cosine' or 'euclidean'; received 'dot'."
