"""Low-rank adapters: small new weights beside those of the transformer are trained, and merged into them at the end.

They may also be kept separate: then the model's folder contains them and names the base model.

Source: Hu et al. 2022 (LoRA); Dettmers et al. 2023 (QLoRA) for adapters of every linear layer.
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
"""File in a checkpoint with the trained weights; all others are those of the start."""


SHAPE = ("num_hidden_layers", "hidden_size", "vocab_size", "output_hidden_states")
"""Keys of a transformer's configuration that a run may change; a folder of adapters takes them from the base."""

NAME = "default"
"""Name of the one set of adapters in peft."""


def check_lora() -> None:
    """Raise MissingExtraError if peft, which adapters need, is not installed."""
    MissingExtraError.check("lora", "peft")


def add_adapters(model: SentenceTransformer | CrossEncoder, rank: int) -> Any:
    """Freeze the transformer of a model, add adapters to its linear layers, in place, and return them.

    Call :func:`merge` or :func:`keep` at the end. Modules outside the transformer, such as a cross-encoder's head or a
    dense layer, are trained as before. The new weights are drawn here, so the seed must be set. ConfigError as by
    :func:`check_adaptable`.
    """
    check_lora()
    # Of an extra: only runs with `lora` need peft.
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    check_adaptable(model)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear")
    # the base model only: a head is trained as a whole
    return LoraModel(model[0].model.base_model, {NAME: config}, NAME)


def check_adaptable(model: SentenceTransformer | CrossEncoder) -> None:
    """Raise ConfigError unless a model begins with a transformer, to which adapters can be added."""
    if not isinstance(model[0], Transformer):
        raise ConfigError(f"`lora` adapts a transformer, and this model begins with {type(model[0]).__name__}.")


def merge(adapters: Any) -> None:
    """Merge adapters into the weights of their layers, and remove them from the model."""
    # safe_merge raises if a merged weight is NaN, and leaves the layer as it was.
    adapters.merge_and_unload(safe_merge=True)


def check_keepable(model: SentenceTransformer | CrossEncoder) -> None:
    """Raise ConfigError unless a model's adapters can be saved without its weights.

    A folder with adapters names a base model on disk or on the hub and uses its configuration, so the transformer must
    be that base model, unchanged.
    """
    trunk: Any = getattr(model[0], "model", None)
    source = getattr(trunk, "name_or_path", "")
    with suppress(OSError, ValueError, ModelError), hub_access(source):
        base = AutoConfig.from_pretrained(source) if source else None
        if base is not None and all(getattr(trunk.config, name, 0) == getattr(base, name, 0) for name in SHAPE):
            return
    raise ConfigError(
        "`keep_lora` saves adapters with the name of the start, which must be a transformer as it stands in a folder "
        "or on the hub: no cut student, no adapters, no pooling over layers. Take another, or leave it out."
    )


def keep(adapters: Any, model: SentenceTransformer) -> None:
    """Prepare a trained model to be saved as adapters with the name of its base model, without whole weights."""
    trunk = model[0].model
    source = Path(trunk.name_or_path)
    # A relative path would mean another folder to whoever opens the model from elsewhere.
    adapters.peft_config[NAME].base_model_name_or_path = str(
        source.resolve() if source.exists() else trunk.name_or_path
    )
    trunk._hf_peft_config_loaded = True  # by which transformers decides what to save


def saving_trained_weights(trainer: Any) -> Any:
    """Return a subclass of a trainer whose checkpoints contain only the trained weights."""
    return type(trainer.__name__, (TrainedWeights, trainer), {})


class TrainedWeights:
    """Mixin for a trainer: checkpoints contain only the trained weights, as adapters leave the others unchanged.

    sentence-transformers cannot open a checkpoint of a model with adapters, whose weights have other names.
    """

    model: nn.Module

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save({name: weight.detach().cpu() for name, weight in self._trained().items()}, folder / WEIGHTS)

    def _load_from_checkpoint(self, checkpoint_path: str) -> None:
        saved = torch.load(Path(checkpoint_path) / WEIGHTS, weights_only=True)
        with torch.no_grad():
            for name, weight in self._trained().items():
                weight.copy_(saved[name])

    def _trained(self) -> dict[str, nn.Parameter]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}
