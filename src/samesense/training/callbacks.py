"""What happens between steps: progress bar, history, the loss's own weights in checkpoints, and a safe stop."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from samesense.execution.progress import progress_bar
from samesense.files import replacing, write_json_lines

DEV_METRIC = "dev_spearman"

LOSS_WEIGHTS = "loss.pt"
"""File in a checkpoint with what the loss itself learns, such as the classifier of softmax; no part of the model."""


class Progress(TrainerCallback):
    """A bar on standard error, on a terminal only, with the loss and the last and best dev Spearman."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.shown: dict[str, str] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Open the bar at the step from which the run goes on."""
        self.bar = progress_bar("train", "step", state.max_steps, initial=state.global_step, smoothing=0.3)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Move the bar by a step."""
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Show the newest loss and dev score."""
        logs = logs or {}
        if "loss" in logs:
            self.shown["loss"] = f"{logs['loss']:.3f}"
        if f"eval_{DEV_METRIC}" in logs:
            self.shown["dev"] = f"{100 * logs[f'eval_{DEV_METRIC}']:.2f}"
        if state.best_metric is not None:
            self.shown["best"] = f"{100 * state.best_metric:.2f}"
        if self.bar is not None:
            self.bar.set_postfix(self.shown)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()


class History(TrainerCallback):
    """Keeps ``history.jsonl``: one line a log, of step, epoch, loss, learning rate or dev Spearman."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write the whole history anew, so that a resumed run has neither gaps nor doubles."""
        if state.is_world_process_zero:
            write_json_lines(self.path, state.log_history)


class ClipGradients(TrainerCallback):
    """Scales the gradients of the model and of what the loss itself learns, such as a head, down to one norm."""

    def __init__(self, loss: nn.Module, max_norm: float) -> None:
        self.loss, self.max_norm = loss, max_norm

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Clip them; a parameter without a gradient is left alone."""
        nn.utils.clip_grad_norm_(self.loss.parameters(), self.max_norm)


class SaveLossWeights(TrainerCallback):
    """Writes the loss's own weights beside those of the model, which is all that the trainer saves."""

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Write them into the checkpoint that was just saved, whole or not at all."""
        own = loss_weights(self.loss)
        if own and state.is_world_process_zero:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            with replacing(folder / LOSS_WEIGHTS) as beside:
                torch.save(own, beside)


def loss_weights(loss: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a loss that are not those of its model, by name."""
    return {name: weights for name, weights in loss.state_dict().items() if not name.startswith("model.")}


def load_loss_weights(loss: nn.Module, checkpoint: Path) -> None:
    """Give a loss the weights of its own that a checkpoint holds; nothing for a loss without any."""
    if loss_weights(loss):
        loss.load_state_dict(torch.load(checkpoint / LOSS_WEIGHTS, weights_only=True), strict=False)


class StopOnInterrupt(TrainerCallback):
    """Turns the first Ctrl-C into a checkpoint and an orderly stop; a second one stops at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self._before: Any = None

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, self._before)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Listen for Ctrl-C; outside the main thread, where that is impossible, leave it as it is."""
        try:
            self._before = signal.signal(signal.SIGINT, self._handle)
        except ValueError:
            self._before = None

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Ask for a checkpoint and the end of the run."""
        if self.interrupted and state.global_step < state.max_steps:
            control.should_save = True
            control.should_training_stop = True

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Give Ctrl-C back its usual meaning."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
