import pytest
import torch
from torch import nn

from samesense.encoder.forward.dropout import CheapDropout, factors, use_cheap_dropout, without_dropout


def test_each_module_is_in_training_again_that_was(tiny):
    tiny.eval()
    tiny.training = True  # like a loaded model: training at the top, eval below
    inside = next(module for module in tiny.modules() if isinstance(module, nn.LayerNorm)).train()
    before = [module.training for module in tiny.modules()]
    with without_dropout(tiny):
        assert not any(module.training for module in tiny.modules())
    assert [module.training for module in tiny.modules()] == before and inside.training


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_share_scale_and_independence(p):
    torch.manual_seed(0)
    out = CheapDropout(p)(torch.ones(400, 1000))
    n = out.numel()
    assert (out == 0).float().mean().item() == pytest.approx(p, abs=5 * (p * (1 - p) / n) ** 0.5 + 1e-4)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)
    assert len(out.unique()) == 2
    retained = (out.flatten() > 0).double()
    for lag in (1, 2, 3, 4, 1000):  # four neighbours share one draw: they must not agree more than chance
        agreement = torch.corrcoef(torch.stack([retained[:-lag], retained[lag:]]))[0, 1].item()
        assert abs(agreement) < 5 / n**0.5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_factors_are_the_value_or_zero(dtype):
    mask = torch.rand(6, 5) < 0.5
    value = 10 / 9
    values = factors(mask, dtype, value)
    assert values.dtype == dtype and torch.equal(values, mask.to(dtype) * torch.tensor(value, dtype=dtype))
    assert torch.equal(factors(mask, dtype), mask.to(dtype))


def test_gradient_passes_where_values_pass():
    torch.manual_seed(0)
    x = torch.randn(7, 5, requires_grad=True)
    out = CheapDropout(0.3)(x)
    out.sum().backward()
    assert torch.equal(x.grad == 0, out == 0)


def test_same_seed_same_mask_and_none_in_eval():
    x = torch.ones(50, 3, dtype=torch.bfloat16)
    layer = CheapDropout(0.2)
    torch.manual_seed(3)
    output = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), output)
    assert output.dtype == torch.bfloat16
    assert torch.equal(layer.eval()(x), x)


def test_replaces_every_dropout_once(tiny):
    before = [m.p for m in tiny.modules() if type(m) is nn.Dropout]
    assert use_cheap_dropout(tiny) == len(before) > 0
    assert [m.p for m in tiny.modules() if type(m) is CheapDropout] == before
    assert use_cheap_dropout(tiny) == 0
