"""Low-rank adapters: a few new weights learn beside those of the transformer, into which they are merged at the end.

They may be kept instead: then the model's folder holds them and names the model that they stand beside.

Source: Hu et al. 2022 (LoRA); Dettmers et al. 2023 (QLoRA) for adapters beside every linear layer.
Differs: α is twice the rank, and adapters have no dropout.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import nn
from transformers import AutoConfig

from samesense.errors import ConfigError, MissingExtraError, ModelError
from samesense.hub import hub_access

WEIGHTS = "trained.pt"
"""File in a checkpoint with what is trained; the rest is as the start was."""


SHAPE = ("num_hidden_layers", "hidden_size", "vocab_size", "output_hidden_states")
"""What of a transformer's configuration a run may have changed, and a folder of adapters would take from the base."""

NAME = "default"
"""What peft calls the adapters of a model, of which there is one set."""


def check_lora() -> None:
    """Raise MissingExtraError if the package is not installed that adapters need."""
    MissingExtraError.check("lora", "peft")


def add_adapters(model: SentenceTransformer | CrossEncoder, rank: int) -> Any:
    """Freeze the transformer of a model and put adapters beside its linear layers, in place.

    At the end, :func:`merge` or :func:`keep` them.
    What lies outside the transformer, such as a cross-encoder's head or a dense layer, is trained as before. The new
    weights are drawn here, so the seed must be set. ConfigError if the model begins with something else.
    """
    check_lora()
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    if not isinstance(model[0], Transformer):
        raise ConfigError(f"`lora` adapts a transformer, and this model begins with {type(model[0]).__name__}.")
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear")
    return LoraModel(model[0].model.base_model, {NAME: config}, NAME)


def merge(adapters: Any) -> None:
    """Add what adapters have learnt to the weights that they stand beside, and take them out of the model."""
    adapters.merge_and_unload(safe_merge=True)


def check_kept(model: SentenceTransformer | CrossEncoder) -> None:
    """Raise ConfigError unless adapters of a model can be saved without it: its transformer must be one on disk.

    A folder with adapters has no configuration of its own, so the start's must be what training goes on with.
    """
    trunk: Any = getattr(model[0], "model", None)
    place = getattr(trunk, "name_or_path", "")
    with suppress(OSError, ValueError, ModelError), hub_access(place):
        base = AutoConfig.from_pretrained(place) if place else None
        if base is not None and all(getattr(trunk.config, name, 0) == getattr(base, name, 0) for name in SHAPE):
            return
    raise ConfigError(
        "`keep_lora` saves adapters with the name of the start, which must be a transformer as it stands in a folder "
        "or on the hub: no cut student, no adapters, no pooling over layers. Take another, or leave it out."
    )


def keep(adapters: Any, model: SentenceTransformer) -> None:
    """Have a trained model saved as its adapters and the name of its start, and not as whole weights."""
    trunk = model[0].model
    place = Path(trunk.name_or_path)
    adapters.peft_config[NAME].base_model_name_or_path = str(place.resolve() if place.exists() else trunk.name_or_path)
    trunk._hf_peft_config_loaded = True  # what transformers goes by when it saves a model


def of_adapters(trainer: Any) -> Any:
    """Return a trainer whose checkpoints hold what is trained."""
    return type(trainer.__name__, (TrainedWeights, trainer), {})


class TrainedWeights:
    """Mixed into a trainer: checkpoints hold the weights that are trained, where adapters keep the others as they were.

    A checkpoint of a model with adapters is no folder that sentence-transformers opens: its weights have other names.
    """

    model: nn.Module

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save({name: weight.detach().cpu() for name, weight in self._trained().items()}, folder / WEIGHTS)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        found = torch.load(Path(checkpoint_path) / WEIGHTS, weights_only=True)
        with torch.no_grad():
            for name, weight in self._trained().items():
                weight.copy_(found[name])

    def _trained(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
