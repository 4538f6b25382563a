import itertools

import pytest
import torch

from samesense.losses import softmax, softmax_features
from tests.references.softmax import softmax as reference
from tests.references.softmax import softmax_features as reference_features


@pytest.mark.parametrize("product", [False, True])
def test_features_equal_the_loop(vectors, product):
    for n in [1, 2, 31]:
        u = vectors(n)
        v = vectors(n, seed=1)
        features = softmax_features(u, v, product=product)
        assert features.shape == (n, 24 if product else 18)
        assert features.tolist() == reference_features(u.tolist(), v.tolist(), product)


def test_features_keep_the_type_of_the_head():
    u = torch.ones(2, 3, dtype=torch.bfloat16)
    assert softmax_features(u, u, product=True).dtype == torch.bfloat16


def test_equals_the_loop(matrix):
    for n, classes, size in itertools.product([1, 2, 31, 1024], [1, 2, 3], [1.0, 1e3]):
        logits = matrix(n, classes, rounded=True) * size
        labels = torch.randint(classes, (n,), generator=torch.Generator().manual_seed(n))
        expected = reference(logits.tolist(), labels.tolist())
        assert softmax(logits, labels).item() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_labels_of_any_whole_type():
    for dtype in [torch.bool, torch.uint8, torch.int32, torch.int64]:
        logits = torch.tensor([[0.0, 1.0], [3.0, 1.0]])
        assert softmax(logits, torch.tensor([0, 1], dtype=dtype)) == softmax(logits, torch.tensor([0, 1]))


def test_no_pair_costs_nothing():
    assert softmax(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)).item() == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: softmax(torch.zeros(3, 3), torch.tensor([0, 2, 3])),
            "softmax takes labels 0 to 2 for 3 classes; received 3.",
        ),
        (
            lambda: softmax(torch.zeros(1, 3), torch.tensor([-100])),
            "softmax takes labels 0 to 2 for 3 classes; received -100.",
        ),
        (
            lambda: softmax(torch.zeros(1, 3), torch.tensor([1.5])),
            "softmax takes whole-number labels; received torch.float32.",
        ),
        (
            lambda: softmax(torch.zeros(2, 3), torch.zeros(3, dtype=torch.long)),
            "softmax takes rows (n, dim) and labels (n,); received rows (2, 3) and labels (3,).",
        ),
        (
            lambda: softmax_features(torch.zeros(2, 3), torch.zeros(2, 4)),
            "softmax_features takes 2 matrices of one shape (rows, dim); received (2, 3), (2, 4).",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
