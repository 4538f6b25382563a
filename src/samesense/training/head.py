"""What an objective itself learns, such as the classifier of softmax: kept in checkpoints, and not in the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from samesense.files import replacing

FILE = "objective.pt"


class KeepHead(TrainerCallback):
    """Writes the objective's own weights beside those of the model, which is all that the trainer saves."""

    def __init__(self, objective: nn.Module) -> None:
        self.objective = objective

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write them into the checkpoint that was just saved, whole or not at all."""
        own = own_weights(self.objective)
        if own and state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            with replacing(folder / FILE) as beside:
                torch.save(own, beside)


def own_weights(objective: nn.Module) -> dict[str, Tensor]:
    """Return the weights of an objective that are not those of its model, by name."""
    return {name: weights for name, weights in objective.state_dict().items() if not name.startswith("model.")}


def load_head(objective: nn.Module, checkpoint: Path) -> None:
    """Give an objective the weights of its own that a checkpoint holds; nothing for an objective without any."""
    if own_weights(objective):
        objective.load_state_dict(torch.load(checkpoint / FILE, weights_only=True), strict=False)
