"""What happens between steps: progress, times, history, and the loss's own weights in checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerState

from samesense.execution.progress import Laps, progress_bar
from samesense.files import read_json, replacing, write_json, write_json_lines

DEV_METRIC = "dev_spearman"

LATEST = 0.1
"""Share of the newest step in the loss that is shown."""

LOSS_WEIGHTS = "loss.pt"
"""File in a checkpoint with what the loss itself learns, such as the classifier of softmax; no part of the model."""


TIMES = "times.json"
"""File in a checkpoint with the seconds that the run had taken."""


def _checkpoint(args: Any, state: TrainerState) -> Path:
    """Return the checkpoint that was just saved."""
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"


class Progress(TrainerCallback):
    """Shows steps, the loss, and the last and best dev Spearman; and the batches of an evaluation by the trainer.

    The loss is the mean of the latest steps, as ``loss`` (or the model, where it gives its own) returns it.
    """

    def __init__(self, loss: nn.Module | None = None) -> None:
        self.loss = loss
        self.bar: Any = None
        self.evaluation: Any = None
        self.figures: dict[str, str] = {}
        self._hooks: list[Any] = []
        self._latest: Tensor | None = None

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Open the bar at the step from which the run goes on."""
        self.bar = progress_bar("train", "step", state.max_steps, initial=state.global_step)
        losses = self.loss.values() if isinstance(self.loss, nn.ModuleDict) else [self.loss or model]
        self._hooks = [loss.register_forward_hook(self._seen) for loss in losses]

    def _seen(self, module: nn.Module, arguments: Any, output: Any) -> None:
        """Keep the loss of a step in a running mean, still on its device."""
        if not module.training:
            return
        if isinstance(output, dict):  # a model of the trainer's own kind, or a loss of several terms
            output = output["loss"] if "loss" in output else torch.stack(list(output.values())).sum()
        value = output.detach().float().mean()
        self._latest = value if self._latest is None else self._latest.lerp(value, LATEST)

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Have the time of a step count from the first one on: the start was evaluated before."""
        if self.bar.n == self.bar.initial:
            self.bar.restart_clock()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Move the bar by a step."""
        if self.bar.is_visible and self._latest is not None:
            self.figures = {"loss": "", **self.figures} | {"loss": f"{float(self._latest):.3f}"}
            self.bar.set_postfix(self.figures)
        self.bar.update(state.global_step - self.bar.n)

    def on_prediction_step(
        self, args: Any, state: TrainerState, control: Any, eval_dataloader: Any = None, **kwargs: Any
    ) -> None:
        """Count a batch of an evaluation."""
        if self.evaluation is None:
            self.evaluation = progress_bar("evaluation", "batch", len(eval_dataloader), leave=False)
        self.evaluation.update()

    def on_evaluate(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Close the bar of an evaluation."""
        if self.evaluation is not None:
            self.evaluation.close()
            self.evaluation = None

    def on_log(
        self, args: Any, state: TrainerState, control: Any, logs: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        """Show the newest dev score."""
        logs = logs or {}
        score = logs.get(f"eval_{DEV_METRIC}")
        if score is not None:
            self.figures["dev"] = f"{100 * score:.2f}" if math.isfinite(score) else "none"
            # the start is never what is kept; the trainer chooses after it has logged
            if state.global_step and math.isfinite(score):
                self.figures["best"] = f"{100 * max(score, state.best_metric or score):.2f}"
        elif "eval_loss" in logs:
            self.figures["dev loss"] = f"{logs['eval_loss']:.3f}"
        if self.bar is not None:
            self.bar.set_postfix(self.figures)

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        self.on_evaluate(args, state, control)
        if self.bar is not None:
            for hook in self._hooks:
                hook.remove()
            self.bar.close()


def _counting(what: str) -> Callable[..., None]:
    def count(self: Times, *_: Any, **__: Any) -> None:
        self.laps.count(what)

    return count


class Times(TrainerCallback):
    """Adds up the seconds in which it steps, evaluates and saves: each from the event before it.

    They are kept in checkpoints; a run that goes on from ``checkpoint`` adds to those of it.
    """

    def __init__(self, checkpoint: Path | None = None) -> None:
        self.laps = Laps()
        if checkpoint is not None and (checkpoint / TIMES).exists():
            self.laps.add(read_json(checkpoint / TIMES))

    on_train_begin = _counting("loading")
    on_step_end = _counting("training")  # the making of the batch among it
    on_evaluate = _counting("evaluation")

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Count it, and keep all seconds in the checkpoint that was just saved."""
        self.laps.count("saving")
        if state.is_world_process_zero:
            write_json(_checkpoint(args, state) / TIMES, self.laps.seconds)

    on_train_end = _counting("loading")  # of the best checkpoint


class Patience(EarlyStoppingCallback):
    """Early stopping that goes on counting in a resumed run, where transformers' begins anew."""

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Count the evaluations since the best one in the history, of which the start is none."""
        super().on_train_begin(args, state, control, **kwargs)  # type: ignore[no-untyped-call]
        best = None
        for log in state.log_history:
            score = log.get(args.metric_for_best_model) if log["step"] else None
            if (
                score is not None
                and math.isfinite(score)
                and (best is None or (score > best if args.greater_is_better else score < best))
            ):
                best, self.early_stopping_patience_counter = score, 0
            elif score is not None:
                self.early_stopping_patience_counter += 1


class Gradients(TrainerCallback):
    """Watches the norms of gradients: ends a run that diverges, and one whose first epoch changes nothing.

    Attributes:
        broken: the step whose gradient was not finite, if any; it changed no weight.
        problem: what was wrong with it, in words.
        nothing: whether no step of the first epoch, or of a shorter run, had a gradient.
    """

    def __init__(self) -> None:
        self.broken: int | None = None
        self.problem = "The gradient is not finite."
        self.nothing = False
        self._bad = self._resumed = False
        self._steps = self._without = 0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Note whether earlier steps, which are not seen, may have changed weights."""
        self._resumed = state.global_step > 0

    def seen(self, norm: float) -> bool:
        """Count the gradient of a step; return whether it may change weights."""
        self._steps += 1
        self._without += norm == 0
        self._bad = not math.isfinite(norm)
        return not self._bad

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End the run behind a gradient that was not finite."""
        if self._bad:
            self.broken = state.global_step
            _end(control)

    def on_epoch_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End the run behind an epoch that changed nothing."""
        self.nothing = not self._resumed and 0 < self._steps == self._without
        if self.nothing:
            _end(control)

    def share_without(self) -> float:
        """Return the share of steps that had no gradient."""
        return self._without / max(1, self._steps)


def _end(control: Any) -> None:
    """End the run with this step, without an evaluation or a checkpoint of it."""
    control.should_training_stop = True
    control.should_evaluate = control.should_save = False


class History(TrainerCallback):
    """Keeps ``history.jsonl``: one line a log, of step, epoch, loss, learning rate or dev Spearman."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Write the whole history anew, so that a resumed run has neither gaps nor doubles."""
        if state.is_world_process_zero:
            write_json_lines(self.path, map(_with_null, state.log_history))


def _with_null(log: Mapping[str, float]) -> dict[str, float | None]:
    """Return what was logged with null for numbers that JSON has not."""
    return {name: value if math.isfinite(value) else None for name, value in log.items()}


class SaveLossWeights(TrainerCallback):
    """Writes the loss's own weights beside those of the model, which is all that the trainer saves."""

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Write them into the checkpoint that was just saved, whole or not at all."""
        own = loss_weights(self.loss)
        if own and state.is_world_process_zero:
            with replacing(_checkpoint(args, state) / LOSS_WEIGHTS) as beside:
                torch.save(own, beside)


def loss_weights(loss: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a loss, or of several by name, that are not those of the model, by name."""
    if isinstance(loss, nn.ModuleDict):
        return {f"{name}.{key}": own for name, one in loss.items() for key, own in loss_weights(one).items()}
    return {name: weights for name, weights in loss.state_dict().items() if not name.startswith("model.")}


def load_loss_weights(loss: nn.Module, checkpoint: Path) -> None:
    """Give a loss the weights of its own that a checkpoint holds; nothing for a loss without any."""
    if loss_weights(loss):
        loss.load_state_dict(torch.load(checkpoint / LOSS_WEIGHTS, weights_only=True), strict=False)
