"""Trainer callbacks: progress, times, history, checks of gradients, and the loss's own weights in checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, TrainerCallback, TrainerState

from samesense.execution.progress import progress_bar
from samesense.execution.timing import Laps
from samesense.files import read_json, replacing, write_json, write_json_lines

DEV_METRIC = "dev_spearman"

LOSS_SMOOTHING = 0.1
"""Weight of the newest step in the running mean of the loss."""

LOSS_WEIGHTS = "loss.pt"
"""File in a checkpoint with the loss's own weights, such as the classifier of softmax."""


TIMES = "times.json"
"""File in a checkpoint with the seconds that the run has taken."""


def _checkpoint(args: Any, state: TrainerState) -> Path:
    """Return the checkpoint that was just saved."""
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"


class Progress(TrainerCallback):
    """Shows progress bars of steps, with the loss and the last and best dev Spearman, and of evaluation batches.

    The loss is a running mean of what ``loss`` returns, or of the model's own loss if there is none.
    """

    def __init__(self, loss: nn.Module | None = None) -> None:
        self.loss = loss
        self.bar: Any = None
        self.evaluation: Any = None
        self.figures: dict[str, str] = {}
        self._hooks: list[Any] = []
        self._latest: Tensor | None = None

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Open the bar, at the step from which the run resumes."""
        self.bar = progress_bar("train", "step", state.max_steps, initial=state.global_step)
        losses = [self.loss or model]
        if isinstance(self.loss, nn.ModuleDict):
            losses = list(self.loss.values())
        self._hooks = [loss.register_forward_hook(self._update_loss) for loss in losses]

    def _update_loss(self, module: nn.Module, arguments: Any, output: Any) -> None:
        """Add the loss of a step to the running mean, which stays on its device."""
        if not module.training:
            return
        if isinstance(output, dict):  # a model that returns its loss, or a loss of several terms
            if "loss" in output:
                output = output["loss"]
            else:
                output = torch.stack(list(output.values())).sum()
        value = output.detach().float().mean()
        # not moved to the CPU here, which would wait for the device in every step
        if self._latest is None:
            self._latest = value
        else:
            self._latest = self._latest.lerp(value, LOSS_SMOOTHING)

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Restart the bar's clock at the first step, so that the evaluation of the start does not count."""
        if self.bar.n == self.bar.initial:
            self.bar.restart_clock()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Move the bar by a step."""
        if self.bar.is_visible and self._latest is not None:
            # A key that is set again keeps its place, so that the loss stays in front.
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
            # the start is never kept; the trainer updates best_metric after this log
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


def _count_as(kind: str) -> Callable[..., None]:
    def count(self: Times, *_: Any, **__: Any) -> None:
        self.laps.count(kind)

    return count


class Times(TrainerCallback):
    """Measures the seconds of loading, training, evaluation and saving, each since the event before.

    They are saved in checkpoints; a run that resumes from ``checkpoint`` adds to its seconds.
    """

    def __init__(self, checkpoint: Path | None = None) -> None:
        self.laps = Laps()
        if checkpoint is not None and (checkpoint / TIMES).exists():
            self.laps.add(read_json(checkpoint / TIMES))

    on_train_begin = _count_as("loading")
    on_step_end = _count_as("training")  # including the collation of the batch
    on_evaluate = _count_as("evaluation")

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Count the saving, and write all seconds into the checkpoint that was just saved."""
        self.laps.count("saving")
        if state.is_world_process_zero:
            write_json(_checkpoint(args, state) / TIMES, self.laps.seconds)

    on_train_end = _count_as("loading")  # of the best checkpoint


class Patience(EarlyStoppingCallback):
    """Early stopping that continues its count in a resumed run, unlike that of transformers."""

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Count the evaluations since the best one in the history, without that of the start."""
        super().on_train_begin(args, state, control, **kwargs)  # type: ignore[no-untyped-call]
        best = None
        for log in state.log_history:
            score = log.get(args.metric_for_best_model) if log["step"] else None
            if score is None:
                continue
            sign = 1 if args.greater_is_better else -1
            if math.isfinite(score) and (best is None or sign * score > sign * best):
                best = score
                self.early_stopping_patience_counter = 0
            else:
                self.early_stopping_patience_counter += 1


class Gradients(TrainerCallback):
    """Checks gradient norms: ends a run that diverges, and a run whose first epoch changes nothing.

    Attributes:
        broken: step whose gradient was not finite, if any; it changed no weight.
        problem: what was wrong with it, in words.
        nothing: whether no step of the first epoch, or of a shorter run, had a non-zero gradient.
    """

    def __init__(self) -> None:
        self.broken: int | None = None
        self.problem = "The gradient is not finite."
        self.nothing = False
        self._not_finite = False
        self._resumed = False
        self._steps = 0
        self._zero_gradients = 0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Note whether earlier steps, which are not counted here, may have changed weights."""
        self._resumed = state.global_step > 0

    def check_norm(self, norm: float) -> bool:
        """Count the gradient norm of a step; return whether the step may change weights."""
        self._steps += 1
        self._zero_gradients += norm == 0
        self._not_finite = not math.isfinite(norm)
        return not self._not_finite

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End the run after a gradient that was not finite."""
        if self._not_finite:
            self.broken = state.global_step
            _end(control)

    def on_epoch_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """End the run after an epoch that changed nothing."""
        self.nothing = not self._resumed and 0 < self._steps == self._zero_gradients
        if self.nothing:
            _end(control)

    def fraction_without_gradient(self) -> float:
        """Return the fraction of steps whose gradient was zero."""
        return self._zero_gradients / max(1, self._steps)


def _end(control: Any) -> None:
    """End the run after this step, without an evaluation or a checkpoint."""
    control.should_training_stop = True
    control.should_evaluate = False
    control.should_save = False


class History(TrainerCallback):
    """Writes ``history.jsonl``: one line per log, with step, epoch, loss, learning rate or dev Spearman."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Rewrite the whole history, so that a resumed run has neither gaps nor duplicates."""
        if state.is_world_process_zero:
            write_json_lines(self.path, map(_with_null, state.log_history))


def _with_null(log: Mapping[str, float]) -> dict[str, float | None]:
    """Return a log with null for NaN and infinity, which JSON does not have."""
    return {name: value if math.isfinite(value) else None for name, value in log.items()}


class SaveLossWeights(TrainerCallback):
    """Saves the loss's own weights in checkpoints, as the trainer saves only those of the model."""

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Write the weights atomically into the checkpoint that was just saved."""
        weights = loss_weights(self.loss)
        if weights and state.is_world_process_zero:
            with replacing(_checkpoint(args, state) / LOSS_WEIGHTS) as temporary:
                torch.save(weights, temporary)


def loss_weights(loss: nn.Module) -> dict[str, Tensor]:
    """Return the loss's own weights by name, without those of the model; for several losses with their names."""
    if isinstance(loss, nn.ModuleDict):
        return {
            f"{name}.{key}": weight
            for name, objective in loss.items()
            for key, weight in loss_weights(objective).items()
        }
    return {name: weights for name, weights in loss.state_dict().items() if not name.startswith("model.")}


def load_loss_weights(loss: nn.Module, checkpoint: Path) -> None:
    """Load the loss's own weights from a checkpoint, if the loss has any."""
    if loss_weights(loss):
        # Not strict: the weights of the model are missing here, and the trainer loads them.
        loss.load_state_dict(torch.load(checkpoint / LOSS_WEIGHTS, weights_only=True), strict=False)
