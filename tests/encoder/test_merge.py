"""Weights between two models, and their mean."""

import pytest
import torch
from sentence_transformers import SentenceTransformer

from samesense.encoder.assembly.merge import average_saved, copy_weights, interpolate
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


def test_the_mean_of_two_saved_models_is_a_model(tiny, tmp_path):
    start = copy_weights(tiny)
    tiny.save(str(tmp_path / "first"))
    with torch.no_grad():
        for weight in tiny.parameters():
            weight.add_(1.0)
    tiny.save(str(tmp_path / "second"))
    for _ in range(2):  # the second time over the first
        average_saved(tmp_path / "first", tmp_path / "second", tmp_path / "mean")
    mean = SentenceTransformer(str(tmp_path / "mean"), device="cpu").state_dict()
    end = tiny.state_dict()
    for name, weight in mean.items():
        expected = (start[name] + end[name]) / 2 if weight.is_floating_point() else end[name]
        assert torch.allclose(weight, expected), name
    with pytest.raises(ConfigError, match=r"same files of weights in both; .*model\.safetensors is missing"):
        average_saved(tmp_path, tmp_path / "second", tmp_path / "mean")
