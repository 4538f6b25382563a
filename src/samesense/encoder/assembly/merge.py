"""Interpolation between a model's weights before and after training."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from samesense.errors import ConfigError


def copy_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of all weights, on the CPU."""
    # Where the weight is on the CPU already, `to` returns the same tensor, which training changes.
    return {name: weight.detach().to("cpu", copy=True) for name, weight in model.state_dict().items()}


def interpolate(model: nn.Module, start: Mapping[str, Tensor], end: Mapping[str, Tensor], fraction: float) -> None:
    """Give a model ``(1 - fraction) * start + fraction * end``, in place; integer buffers are those of the end.

    Source: Wortsman et al. (2022), "Robust fine-tuning of zero-shot models" (WiSE-FT), equation 1; Xiao et al. (2023),
        "LM-Cocktail", for one fine-tuned model and its base.

    Raises:
        ConfigError: if the weights differ in name or shape, as when training has added modules to the model.
    """
    shapes = [{name: weight.shape for name, weight in weights.items()} for weights in (start, end)]
    if shapes[0] != shapes[1]:
        raise ConfigError("`merge` needs the start to have the weights of the end, and training has changed them.")
    model.load_state_dict({name: _interpolate_weight(start[name], weight, fraction) for name, weight in end.items()})


def _interpolate_weight(start: Tensor, end: Tensor, fraction: float) -> Tensor:
    if fraction == 1 or not end.is_floating_point():
        return end
    # In float32, as half precision would round away the small differences of training.
    return torch.lerp(start.float(), end.float(), fraction).to(end.dtype)
