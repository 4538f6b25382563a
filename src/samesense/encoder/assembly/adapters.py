"""Low-rank adapters in a model folder: they stand beside the name of their base model, and are merged once opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from samesense.encoder.model_files import ADAPTERS
from samesense.encoder.names import base_of
from samesense.errors import MissingExtraError, ModelError


def check_adapters(source: str) -> None:
    """Raise where a folder holds adapters that cannot be opened.

    MissingExtraError if their package is not installed; ModelError if their base model was a folder that is gone.
    """
    base = base_of(Path(source))
    if base is None:
        return
    MissingExtraError.check("lora", "peft")
    if Path(base).is_absolute() and not Path(base).exists():
        raise ModelError(
            f"{source} holds adapters for the model in {base}, which is not there. Put it there, or write where it is "
            f"into {ADAPTERS} as base_model_name_or_path."
        )


def merge_adapters(model: nn.Module) -> None:
    """Add the adapters of a model that was opened to its weights, in place, so that it is like any other model."""
    for module in model.modules():
        if getattr(module, "_hf_peft_config_loaded", False):
            _merge(module)


def _merge(trunk: Any) -> None:
    from peft.tuners.lora import LoraLayer

    found = [(name, layer) for name, layer in trunk.named_modules() if isinstance(layer, LoraLayer)]
    for name, layer in found:
        layer.merge(safe_merge=True)
        trunk.set_submodule(name, layer.get_base_layer())
    if found:
        del trunk.peft_config
        trunk._hf_peft_config_loaded = False
        trunk._weight_conversions = None  # those of adapters would give its weights their names when it is saved
        trunk.requires_grad_(True)  # adapters had them frozen
        trunk.name_or_path = ""  # its weights are no longer those of the base
