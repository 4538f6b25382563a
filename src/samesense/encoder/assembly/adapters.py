"""Low-rank adapters in a model folder: they name their base model, and are merged after loading."""

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
    # A relative name may be one of the hub.
    if Path(base).is_absolute() and not Path(base).exists():
        raise ModelError(
            f"{source} holds adapters for the model in {base}, which is not there. Put it there, or write where it is "
            f"into {ADAPTERS} as base_model_name_or_path."
        )


def merge_adapters(model: nn.Module) -> None:
    """Merge the adapters of a loaded model into its weights, in place."""
    for module in model.modules():
        if getattr(module, "_hf_peft_config_loaded", False):
            _merge(module)


def _merge(trunk: Any) -> None:
    # Of an extra: only models with adapters need peft.
    from peft.tuners.lora import LoraLayer

    lora_layers = [(name, layer) for name, layer in trunk.named_modules() if isinstance(layer, LoraLayer)]
    for name, layer in lora_layers:
        # The safe merge checks for NaN before it touches the weights.
        layer.merge(safe_merge=True)
        trunk.set_submodule(name, layer.get_base_layer())
    if lora_layers:
        del trunk.peft_config
        trunk._hf_peft_config_loaded = False
        trunk._weight_conversions = None  # or the weights would be saved under the adapters' names
        trunk.requires_grad_(True)  # peft has frozen the weights
        trunk.name_or_path = ""  # its weights are no longer those of the base model
