import itertools
import math

import pytest
import torch

from samesense.losses import angle_scores
from samesense.losses.angle import AnglE
from samesense.recipes.cosent.settings import CosentSettings
from tests.data.made import DATA
from tests.references.angle import angle_loss
from tests.references.angle import angle_score as reference


def test_equals_complex_numbers(vectors):
    for n, dim in itertools.product([1, 2, 31, 1024], [2, 6]):
        u = vectors(n, dim)
        v = vectors(n, dim, seed=1)
        expected = [reference(a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        assert angle_scores(u, v).tolist() == pytest.approx(expected, abs=1e-13)


def test_range():
    u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    v = torch.tensor([[1.0, 0.0], [1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    assert angle_scores(u, v).tolist() == pytest.approx([1.0, math.sqrt(2), 0.0])


def test_messages():
    with pytest.raises(ValueError) as error:
        angle_scores(torch.zeros(2, 3), torch.zeros(2, 3))
    assert str(error.value) == "angle_scores halves the embedding, so its dimension must be even; received 3."
    with pytest.raises(ValueError) as error:
        angle_scores(torch.zeros(2, 4), torch.zeros(1, 4))
    assert str(error.value) == "angle_scores takes 2 matrices of one shape (rows, dim); received (2, 4), (1, 4)."


@pytest.mark.parametrize("threshold", [-1, 1.5, 9])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.5, 0.0, 2.0), (0.0, 3.0, 0.0)])
def test_the_whole_loss_is_the_sum_of_its_terms(vectors, threshold, weights):
    u = vectors(31)
    v = vectors(31, seed=1)
    labels = torch.arange(31) % 4
    named_weights = dict(zip(("cosine_weight", "in_batch_weight", "angle_weight"), weights, strict=True))
    module = AnglE(
        torch.nn.Identity(), positive_above=threshold, temperature=0.1, angle_temperature=0.7, **named_weights
    )
    expected = angle_loss(u.tolist(), v.tolist(), labels.tolist(), threshold, weights, 0.1, 0.7)
    loss = module.compute_loss_from_embeddings([u.requires_grad_(), v], labels)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    loss.backward()
    assert u.grad.isfinite().all()


def test_which_pairs_are_positive_is_read_from_the_labels():
    cuts = {kind: CosentSettings(loss="angle").targets(data).settings["positive_above"] for kind, data in DATA.items()}
    assert cuts == {"scored": 2.5, "binary": 0.5, "nli": 1.5, "triplet": 0.5}
    assert CosentSettings(loss="angle", positive_above=4).targets(DATA["scored"]).settings == {"positive_above": 4}


def test_a_weight_is_needed():
    with pytest.raises(ValueError, match=r"one of them above 0; received \(0, 0, 0\)"):
        AnglE(torch.nn.Identity(), positive_above=0, cosine_weight=0, in_batch_weight=0, angle_weight=0)
