"""The layers of a transformer, wherever its class keeps them."""

from __future__ import annotations

from torch import nn

from samesense.errors import ModelError


def layer_stack(trunk: nn.Module, depth: int) -> nn.ModuleList:
    """Return the outermost ``ModuleList`` of ``depth`` modules; ModelError unless there is exactly one."""
    candidates = [
        (name.count("."), module)
        for name, module in trunk.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
    ]
    nearest = [module for level, module in candidates if level == min(level for level, _ in candidates)]
    if len(nearest) != 1:
        raise ModelError(
            f"{type(trunk).__name__} has {len(nearest) or 'no'} lists of its {depth} layers, and one is needed. Name "
            "another model, or cut this one with its own tools and give the folder."
        )
    return nearest[0]
