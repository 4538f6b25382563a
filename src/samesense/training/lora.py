"""Low-rank adapters: a few new weights learn beside those of the transformer, and are merged into them at the end.

Source: Hu et al. 2022 (LoRA); Dettmers et al. 2023 (QLoRA) for adapters beside every linear layer.
Differs: α is twice the rank, and adapters have no dropout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import nn

from samesense.errors import ConfigError, MissingExtraError

WEIGHTS = "trained.pt"
"""File in a checkpoint with what is trained; the rest is as the start was."""


def check_lora() -> None:
    """Raise MissingExtraError if the package is not installed that adapters need."""
    MissingExtraError.check("lora", "peft")


def add_adapters(model: SentenceTransformer | CrossEncoder, rank: int) -> Any:
    """Freeze the transformer of a model and put adapters beside its linear layers, in place; see :func:`merge`.

    What lies outside the transformer, such as a cross-encoder's head or a dense layer, is trained as before. The new
    weights are drawn here, so the seed must be set. ConfigError if the model begins with something else.
    """
    check_lora()
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    if not isinstance(model[0], Transformer):
        raise ConfigError(f"`lora` adapts a transformer, and this model begins with {type(model[0]).__name__}.")
    config = LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear")
    return LoraModel(model[0].model.base_model, {"default": config}, "default")


def merge(adapters: Any) -> None:
    """Add what adapters have learnt to the weights that they stand beside, and take them out of the model."""
    adapters.merge_and_unload(safe_merge=True)


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
