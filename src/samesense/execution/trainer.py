"""Runs the trainer of transformers for all training methods: its arguments, checkpoints, and a clean stop on Ctrl-C."""

from __future__ import annotations

import logging
import math
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast

import numpy as np
import torch
from accelerate.state import AcceleratorState
from torch import nn
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.integrations.integration_utils import TensorBoardCallback

from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.execution.progress import without_bars
from samesense.execution.ranks import is_main, world_size
from samesense.execution.threads import serial_tokenizer
from samesense.execution.trainer_fields import trainer_fields
from samesense.failures import first_line, writing
from samesense.files import read_json

logger = logging.getLogger(__name__)

TENSORBOARD = "tensorboard"
"""Folder of TensorBoard's files, beside the checkpoints: their folder is removed when the run ends."""

CHECKPOINT_SECONDS = 60.0
"""A training from which no checkpoint is chosen writes one at most so often: they only serve to resume a killed run."""

Arguments = TypeVar("Arguments", bound=TrainingArguments)


def training_arguments(
    kind: type[Arguments],
    settings: Any,
    checkpoints: Path,
    *,
    eval_steps: int,
    metric: str | None,
    use_cpu: bool,
    greater_is_better: bool = False,
    **extra: Any,
) -> Arguments:
    """Return the arguments of a trainer: AdamW, a checkpoint at every evaluation, and the best one loaded at the end.

    ``settings`` has ``learning_rate``, ``warmup_ratio``, ``weight_decay``, ``seed`` and ``precision``, resolved to
    ``"float32"`` or ``"bfloat16"``; it may have ``report_to``, and in ``trainer`` further fields of ``kind``. The
    newest two checkpoints are kept. ``metric`` chooses the best one; ``None`` evaluates nothing and keeps the last
    state, see :data:`CHECKPOINT_SECONDS`. ConfigError if the further fields do not fit.
    """
    selecting = metric is not None
    user_fields = trainer_fields(kind, getattr(settings, "trainer", {}))
    arguments: dict[str, Any] = dict(
        output_dir=str(checkpoints),
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup_ratio,  # a share of the steps when below 1
        weight_decay=settings.weight_decay,
        optim="adamw_torch_fused",
        bf16=settings.precision == "bfloat16",
        use_cpu=use_cpu,
        seed=settings.seed,
        data_seed=settings.seed,
        eval_strategy="steps" if selecting else "no",
        eval_steps=eval_steps if selecting else None,
        save_strategy="steps",
        save_steps=eval_steps,
        save_total_limit=2,
        load_best_model_at_end=selecting,
        metric_for_best_model=metric,
        greater_is_better=greater_is_better if selecting else None,
        logging_steps=max(1, eval_steps // 5),
        report_to=list(getattr(settings, "report_to", ())) or "none",
        project="samesense",
        run_name=checkpoints.parent.name,
        disable_tqdm=True,
        **extra,
    )
    try:
        # The user's fields win; those that samesense sets were refused before.
        return kind(**arguments | user_fields)
    except (ValueError, ImportError) as error:
        raise ConfigError(f"The trainer refuses its arguments: {first_line(error)}") from error


def newest_checkpoint(checkpoints: Path, required_files: Sequence[str] = ()) -> Path | None:
    """Return the newest checkpoint that a run can resume from, and remove unusable ones.

    Unusable are half-written ones, which lack a file of the trainer's or one of ``required_files``, and the one of the
    last step or of the step at which early stopping ended the run: the trainer would take one step more.
    """
    # The trainer names these files by rank only where there are several processes.
    if world_size() > 1:
        states = [f"rng_state_{rank}.pth" for rank in range(world_size())]
    else:
        states = ["rng_state.pth"]
    needed = ["optimizer.pt", "scheduler.pt", *states, *required_files]
    # By number, since checkpoint-90 comes after checkpoint-1000 by name.
    paths = sorted(checkpoints.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1]), reverse=True)
    for path in paths:
        if _is_resumable(path) and all((path / name).is_file() for name in needed):
            return path
        if is_main():
            shutil.rmtree(path)
    return None


def _is_resumable(checkpoint: Path) -> bool:
    try:
        state = read_json(checkpoint / "trainer_state.json")
        return bool(state["global_step"] < state["max_steps"]) and not any(map(_is_out_of_patience, _callbacks(state)))
    except (DataError, LookupError, TypeError, AttributeError):  # a damaged checkpoint cannot be resumed
        return False


def _callbacks(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the saved state of each callback."""
    callbacks: list[dict[str, Any]] = []
    for saved in state.get("stateful_callbacks", {}).values():
        if isinstance(saved, list):  # several callbacks of one class
            callbacks += saved
        else:
            callbacks.append(saved)
    return callbacks


def _is_out_of_patience(callback: dict[str, Any]) -> bool:
    """Return whether a callback is early stopping without patience left."""
    patience = callback["args"].get("early_stopping_patience")
    return patience is not None and callback["attributes"]["early_stopping_patience_counter"] >= patience


@without_bars(reports=False)
def run_trainer(
    trainer: Trainer,
    resume_from: Path | None,
    stop: StopOnInterrupt | None = None,
    why: Callable[[], str] = lambda: "it is not a number",
) -> bool:
    """Train, from a checkpoint if there is one, and return whether it was stopped before its last step.

    The trainer's own printing is removed. Ctrl-C leaves a checkpoint; see :class:`StopOnInterrupt`. A run that early
    stopping ended counts as stopped too; ``stop.interrupted`` tells the two apart.

    An evaluation whose metric is NaN counts as the worst, and the first one is warned of; ``why`` explains the last.

    Raises:
        ModelError: if every evaluation was NaN, so that there is no best checkpoint; all checkpoints are removed.
    """
    if stop is None:
        stop = StopOnInterrupt()
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(stop)
    trainer.add_callback(_WithoutFigure(trainer, why))
    if trainer.args.metric_for_best_model is None and world_size() == 1:
        trainer.add_callback(_SeldomSaves(stop))
    for callback in trainer.callback_handler.callbacks:
        if isinstance(callback, TensorBoardCallback) and callback.logging_dir is None:
            callback.logging_dir = str(Path(str(trainer.args.output_dir)).parent / TENSORBOARD)
    if resume_from is not None and _evaluation_is_due(trainer, resume_from):
        trainer.args.eval_on_start = True
        trainer.add_callback(_DueEvaluation(trainer))
    _name_unwritten_checkpoints(trainer)
    try:
        with serial_tokenizer(trainer.args.device.type == "cpu"):
            trainer.train(resume_from_checkpoint=None if resume_from is None else str(resume_from))
    except BaseException as error:
        # the trainer skips this after an error, and it restores the handler of Ctrl-C
        trainer.callback_handler.on_train_end(trainer.args, trainer.state, trainer.control)
        if not isinstance(error, _Stopped):
            raise
        stop.save(trainer)
        return True
    finally:
        _forget_precision(trainer)
    if not stop.interrupted:
        _check_selected(trainer, why)
    return bool(trainer.state.global_step < trainer.state.max_steps)


def _name_unwritten_checkpoints(trainer: Trainer) -> None:
    """Make a checkpoint that cannot be written an OutputError that names it, and remove what was written of it."""
    save = trainer._save_checkpoint

    def save_or_name(*arguments: Any) -> None:
        checkpoint = Path(str(trainer.args.output_dir)) / f"checkpoint-{trainer.state.global_step}"
        try:
            with writing(checkpoint):
                save(*arguments)
        except OutputError:
            # The space that it takes may be what the next one needs.
            shutil.rmtree(checkpoint, ignore_errors=True)
            raise

    trainer.__dict__["_save_checkpoint"] = save_or_name


def _forget_precision(trainer: Trainer) -> None:
    """Let later trainers of the process have another precision; this one keeps its own state, to evaluate with."""
    state = trainer.accelerator.state
    state.__dict__ = dict(state.__dict__)  # all states of a process share one dictionary
    AcceleratorState._reset_state()


class _WithoutFigure(TrainerCallback):
    """Warns once that an evaluation has no figure, and says which checkpoint is kept."""

    def __init__(self, trainer: Trainer, why: Callable[[], str]) -> None:
        self._trainer = trainer
        self._why = why
        self._over = False

    def on_evaluate(
        self, args: Any, state: TrainerState, control: Any, metrics: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        """Warn of the first evaluation whose figure is not a number."""
        metric = args.metric_for_best_model
        if metric is None or self._over or not math.isnan((metrics or {}).get(metric, 0.0)):
            return
        if not state.global_step:
            logger.warning(f"the evaluation of the start has no figure: {self._why()}")
            return
        self._over = True
        rate = _learning_rate(self._trainer)
        logger.warning(
            f"the evaluation at step {state.global_step}, learning rate {rate:.2g}, has no figure: {self._why()} It "
            "counts as the worst, as do others like it; the best checkpoint is kept. A lower `learning_rate` may help"
        )


def _learning_rate(trainer: Trainer) -> float:
    """Return the learning rate of the last step."""
    if not trainer.lr_scheduler:
        return trainer.args.learning_rate
    return float(trainer.lr_scheduler.get_last_lr()[0])


def _check_selected(trainer: Trainer, why: Callable[[], str]) -> None:
    """Raise ModelError and remove the checkpoints if all evaluations that select one were NaN."""
    metric = trainer.args.metric_for_best_model
    # Step 0 is the start, which has no checkpoint.
    figures = [log[metric] for log in trainer.state.log_history if metric in log and log["step"]]
    if not figures or any(map(math.isfinite, figures)):
        return
    if is_main():
        shutil.rmtree(str(trainer.args.output_dir), ignore_errors=True)
    raise ModelError(
        f"No evaluation of the training had a figure, of {len(figures)} in {trainer.state.global_step} steps: {why()} "
        f"No model is kept. Lower `learning_rate`, which is {trainer.args.learning_rate:g}, or take another start "
        "model or loss."
    )


class _Stopped(KeyboardInterrupt):
    """Ctrl-C while the state of the last step is complete and nothing is being written."""


class StopOnInterrupt(TrainerCallback):
    """Turns the first Ctrl-C into a checkpoint of the last finished step and an orderly stop; a second stops at once.

    A step is aborted before it changes a weight, and so is an evaluation, which the resumed run repeats. An update or
    a save that is under way is finished first. A step is not aborted where several processes train, which must end
    together: after each step they agree whether one of them was interrupted. Nor is it aborted on an accelerator, where
    steps are short and random states are costly to keep.

    An evaluation restores the random states, which the trainer's own loader does not: training continues the same
    whether the evaluation ran at once or in the resumed run.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._at_once = False  # whether to abort immediately
        self._random: Any = None  # random states after the last step, before any evaluation
        self._before: Any = None

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        self.interrupted = True
        signal.signal(signal.SIGINT, self._before)  # a second Ctrl-C stops at once
        if self._at_once and world_size() == 1:
            raise _Stopped

    def save(self, trainer: Trainer) -> None:
        """Write a checkpoint of the last finished step, unless it exists or a run could not resume from it."""
        state = trainer.state
        checkpoint = Path(str(trainer.args.output_dir)) / f"checkpoint-{state.global_step}"
        if not 0 < state.global_step < state.max_steps or (checkpoint / "trainer_state.json").is_file():
            return
        _set_random_states(self._random)  # those after the last step: the checkpoint stores them
        # A private method, as the trainer cannot otherwise be told to save outside its loop.
        trainer._save_checkpoint(cast(nn.Module, trainer.model), None)
        trainer.callback_handler.on_save(trainer.args, state, trainer.control)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Listen for Ctrl-C; outside the main thread, where that is impossible, leave it as it is."""
        self._random = _random_states()
        self._at_once = bool(args.eval_on_start)
        try:
            self._before = signal.signal(signal.SIGINT, self._handle)
        except ValueError:
            self._before = None

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """From here to the change of weights, only random numbers change."""
        self._at_once = args.device.type == "cpu"

    def on_pre_optimizer_step(self, *_: Any, **kwargs: Any) -> None:
        """Weights are changed from here on."""
        self._at_once = False

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Ask for a checkpoint and the end of the run, and leave an evaluation to the resumed one."""
        self._random = _random_states()
        if world_size() > 1:
            self.interrupted = _any_process(self.interrupted, args.device)
        if self.interrupted:
            control.should_evaluate = False
            control.should_save = control.should_training_stop = True
            if state.global_step == state.max_steps:
                raise _Stopped  # a run cannot resume from its last step, only from the checkpoint before
        self._at_once = control.should_evaluate

    def on_evaluate(self, *_: Any, **kwargs: Any) -> None:
        """A checkpoint is written after this."""
        self._at_once = False
        _set_random_states(self._random)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """End a run that was interrupted while it saved, without another step; several processes end after one."""
        if self.interrupted and world_size() == 1:
            control.should_training_stop = True

    def on_train_end(self, *_: Any, **kwargs: Any) -> None:
        """Restore the handler of Ctrl-C."""
        self._at_once = False
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class _SeldomSaves(TrainerCallback):
    """Asks for a checkpoint where the last is a minute old, but not at the last step, which nothing resumes from.

    Several processes save together, and their clocks differ, so there all checkpoints are written.
    """

    def __init__(self, stop: StopOnInterrupt) -> None:
        self._stop = stop
        self._last = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Ask for a checkpoint by time in place of steps; what Ctrl-C asks for stays."""
        if self._stop.interrupted:
            return
        is_last = state.global_step >= state.max_steps
        control.should_save = not is_last and time.monotonic() - self._last >= CHECKPOINT_SECONDS

    def on_save(self, *_: Any, **kwargs: Any) -> None:
        """Count from the checkpoint that was written."""
        self._last = time.monotonic()


def _any_process(flag: bool, device: torch.device) -> bool:
    """Return whether ``flag`` holds in any of the processes that train together."""
    flags = torch.tensor([int(flag)], device=device)
    torch.distributed.all_reduce(flags, torch.distributed.ReduceOp.MAX)
    return bool(flags.item())


def _random_states() -> Any:
    return torch.get_rng_state(), np.random.get_state(), random.getstate()


def _set_random_states(states: Any) -> None:
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])


def _evaluation_is_due(trainer: Trainer, checkpoint: Path) -> bool:
    """Return whether the run was stopped after a step whose evaluation was due and before that evaluation ended."""
    state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    evaluated = {log["step"] for log in state.log_history if any(name.startswith("eval_") for name in log)}
    due = trainer.args.eval_strategy == "steps" and state.global_step % trainer.args.eval_steps == 0
    return bool(due and state.global_step not in evaluated)


class _DueEvaluation(TrainerCallback):
    """Makes the evaluation at the start of a resumed run count for the best checkpoint."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._over = False

    def on_evaluate(self, *_: Any, metrics: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Update the best metric, as the trainer does after every other evaluation."""
        if not self._over and metrics is not None:
            self._trainer._determine_best_metric(metrics, None)
        self._over = True
