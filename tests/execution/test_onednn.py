import numpy as np
import pytest
import torch
from torch.nn import functional as F

from samesense.encoder.encode import encode
from samesense.execution import onednn

CPU = torch.device("cpu")


@pytest.fixture
def taken(monkeypatch):
    """Switch oneDNN on without measuring, and return the shapes of the products that it computes."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(onednn, "_is_faster", lambda: True)
    shapes = []
    real = onednn._linear
    monkeypatch.setattr(onednn, "_linear", lambda *a: (shapes.append(tuple(a[0].shape)), real(*a))[1])
    return shapes


@pytest.mark.parametrize("shape", [(1, 7), (33, 7), (5, 11, 7), (2, 3, 4, 7)])
@pytest.mark.parametrize("biased", [True, False])
def test_products_are_those_of_float64(taken, shape, biased):
    rows = torch.randn(shape)
    layer = torch.nn.Linear(7, 13, bias=biased)
    with torch.inference_mode(), onednn.fast_linear(CPU):
        product = layer(rows)
        turned = layer(rows.transpose(0, -2))
    exact = rows.double() @ layer.weight.detach().double().T + (layer.bias.detach().double() if biased else 0)
    torch.testing.assert_close(product.double(), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(turned, product.transpose(0, -2), atol=1e-5, rtol=1e-5)
    assert taken == [shape, tuple(rows.transpose(0, -2).shape)]


def test_an_encoder_gives_the_same_vectors(taken, tiny, sentences, monkeypatch):
    fast = encode(tiny, sentences, precision="float32")
    assert len(taken) >= 3 * 6  # six products in each of three layers
    monkeypatch.setattr(onednn, "_is_faster", lambda: False)
    before = len(taken)
    np.testing.assert_allclose(fast, encode(tiny, sentences, precision="float32"), atol=1e-5)
    assert len(taken) == before


def test_leaves_alone_what_is_not_float32_inference(taken, tiny, sentences):
    layer = torch.nn.Linear(4, 3)
    with onednn.fast_linear(CPU):
        layer(torch.ones(2, 4)).sum().backward()
        assert layer.weight.grad is not None
        with torch.inference_mode():
            F.linear(torch.ones(2, 4).double(), torch.ones(3, 4).double())
            F.linear(torch.ones(4), torch.ones(3, 4))
            assert layer(torch.ones(0, 4)).shape == (0, 3)
            with torch.autocast("cpu", torch.bfloat16):
                assert layer(torch.ones(2, 4)).dtype == torch.bfloat16
    encode(tiny, sentences, precision="bfloat16")
    assert taken == []


def test_is_not_taken_without_a_gain_or_where_it_differs(monkeypatch):
    for seconds, gives, expected in (
        ((2.0, 1.0), F.linear, True),
        ((1.1, 1.0), F.linear, False),
        ((2.0, 1.0), lambda r, w, b: F.linear(r, w, b) + 1, False),
        ((2.0, 1.0), lambda r, w, b: torch.ops.mkldnn._linear_pointwise(r), False),
    ):
        onednn._is_available.cache_clear()
        onednn._is_faster.cache_clear()
        times = iter(seconds)
        monkeypatch.setattr(onednn, "_linear", gives)
        monkeypatch.setattr(onednn, "_seconds", lambda *_, times=times: next(times))
        assert onednn._is_faster() is (expected and torch.backends.mkldnn.is_available())
    onednn._is_available.cache_clear()
    onednn._is_faster.cache_clear()


def test_unmeasured_it_is_taken_wherever_it_is_there(taken, monkeypatch):
    monkeypatch.setattr(onednn, "_is_faster", lambda: False)
    layer = torch.nn.Linear(4, 3)
    with torch.inference_mode():
        with onednn.fast_linear(CPU):
            layer(torch.ones(2, 4))
        assert taken == []
        with onednn.fast_linear(CPU, measured=False):
            layer(torch.ones(2, 4))
    assert taken[-1] == (2, 4)


def test_an_accelerator_has_no_such_context():
    with onednn.fast_linear(torch.device("meta")) as context:
        assert context is None
