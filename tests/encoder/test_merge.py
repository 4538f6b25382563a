"""Weights are interpolated between two models."""

import pytest
import torch

from samesense.encoder.assembly.merge import copy_weights, interpolate
from samesense.errors import ConfigError


def test_weights_between_are_between(tiny):
    start = copy_weights(tiny)
    with torch.no_grad():
        for weight in tiny.parameters():
            weight.add_(1.0)
    end = copy_weights(tiny)
    interpolate(tiny, start, end, 0.25)
    for name, weight in tiny.state_dict().items():
        expected = 0.75 * start[name] + 0.25 * end[name] if weight.is_floating_point() else end[name]
        assert torch.allclose(weight, expected), name
    interpolate(tiny, start, end, 1.0)
    assert all(torch.equal(weight, end[name]) for name, weight in tiny.state_dict().items())
    with pytest.raises(ConfigError, match="training has changed them"):
        interpolate(tiny, {}, end, 0.5)
