"""Train an encoder on ``SentenceTransformerTrainer``: dev selection, checkpoints, resume, and a safe stop."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.evaluation import BaseEvaluator
from torch import nn
from transformers import EarlyStoppingCallback, PrinterCallback, TrainerCallback, set_seed

from samesense.encoder.dropout import use_cheap_dropout
from samesense.encoder.precision import Choice, inference_precision, training_precision
from samesense.errors import ConfigError, DataError
from samesense.execution.ranks import is_main, world_size
from samesense.files import read_json
from samesense.training.batches import Batches, sampler_of
from samesense.training.callbacks import DEV_METRIC, History, Progress, StopOnInterrupt
from samesense.training.head import FILE, KeepHead, load_head, own_weights
from samesense.training.losses.check import check_dataset
from samesense.training.settings import TrainingSettings

if TYPE_CHECKING:
    from datasets import Dataset

Judge = Callable[[SentenceTransformer], float]
"""Gives a model's dev Spearman; how is not training's business."""


@dataclass(frozen=True)
class TrainOutput:
    """How a run ended: its best dev score and step, and whether it was interrupted before its end."""

    steps: int
    seconds: float
    precision: str
    best_dev_spearman: float | None
    best_step: int | None
    interrupted: bool


class _Dev(BaseEvaluator):  # type: ignore[misc]
    """Hands a :data:`Judge` to the trainer under the name that selection looks for."""

    def __init__(self, judge: Callable[[Any], float]) -> None:
        super().__init__()
        self.judge = judge
        self.primary_metric = DEV_METRIC

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        return {DEV_METRIC: float(self.judge(model))}


def fit(  # noqa: PLR0913 - what a run may be told
    model: SentenceTransformer,
    dataset: Dataset,
    objective: nn.Module,
    settings: TrainingSettings,
    folder: Path,
    *,
    judge: Judge | None = None,
    batches: Batches = "random",
    collator: Callable[..., Any] | None = None,
    resume: bool = False,
    callbacks: list[TrainerCallback] | None = None,
) -> TrainOutput:
    """Train ``model`` in place; with a judge, it ends as the best of the looked-at states.

    Args:
        model: the encoder.
        dataset: text columns, then ``label`` where the objective takes one.
        objective: module in sentence-transformers' form: ``forward(sentence_features, labels)`` gives a scalar.
        settings: see :class:`TrainingSettings`.
        folder: holds ``checkpoints/``, of no use once the model is saved, and ``history.jsonl``.
        judge: dev Spearman of a model, for selection and early stopping.
        batches: how examples are put into batches; see :mod:`samesense.training.batches`.
        collator: puts examples into a batch; ``None`` takes the trainer's own.
        resume: continue from the newest whole checkpoint in ``folder``.
        callbacks: further trainer callbacks.

    Returns:
        An :class:`TrainOutput`.

    Raises:
        ConfigError: if patience is asked for without a judge.
        DataError: if columns or labels do not fit the objective; see
            :func:`samesense.training.losses.check.check_dataset`.

    Differs: dropout masks of a CPU run come from :class:`~samesense.encoder.dropout.CheapDropout`, which has the
        same distribution and other random numbers.
    """
    check_dataset(objective, dataset)
    set_seed(settings.seed)
    resolved = settings.model_copy(update={"precision": pick_precision(model, dataset, settings).precision})
    return drive(
        SentenceTransformerTrainer, model, dataset, objective, resolved, folder,
        judge=judge, batches=batches, collator=collator, resume=resume, callbacks=callbacks,
    )  # fmt: skip


def drive(  # noqa: PLR0913 - those of fit, and the trainer
    trainer_class: type[Any],
    model: Any,
    dataset: Dataset,
    objective: nn.Module,
    settings: TrainingSettings,
    folder: Path,
    *,
    judge: Callable[[Any], float] | None,
    batches: Batches,
    collator: Callable[..., Any] | None,
    resume: bool,
    callbacks: list[TrainerCallback] | None,
) -> TrainOutput:
    """Train ``model``, of any kind that one of sentence-transformers' trainers takes; the rest is as in :func:`fit`.

    Args:
        trainer_class: ``SentenceTransformerTrainer`` or what has its arguments.
        model: to be trained, in place.
        dataset: what the objective takes; not checked.
        objective: module that gives the loss.
        settings: with ``precision`` resolved to ``"float32"`` or ``"bfloat16"``.
        folder: see :func:`fit`, as for the rest.
        judge: dev Spearman of a model.
        batches: how examples are put into batches.
        collator: puts examples into a batch.
        resume: continue from the newest whole checkpoint; from the start if there is none.
        callbacks: further trainer callbacks.
    """
    if settings.early_stopping_patience is not None and judge is None:
        raise ConfigError(
            "patience counts looks at a dev set, and there is none. Give --dev, or leave out --early-stopping-patience."
        )
    set_seed(settings.seed)
    if model.device.type == "cpu":
        use_cheap_dropout(model)
    checkpoints = folder / "checkpoints"
    newest = newest_checkpoint(checkpoints, also=[FILE] if own_weights(objective) else []) if resume else None
    if newest is not None:
        load_head(objective, newest)
    stop = StopOnInterrupt()
    wanted: list[TrainerCallback] = [Progress(), History(folder / "history.jsonl"), KeepHead(objective), stop]
    wanted += callbacks or []
    if settings.early_stopping_patience is not None:
        wanted.append(EarlyStoppingCallback(early_stopping_patience=settings.early_stopping_patience))
    trainer = trainer_class(
        model=model,
        args=_arguments(settings, len(dataset), checkpoints, model, settings.precision, batches, judge is not None),
        train_dataset=dataset,
        data_collator=collator,
        loss=objective,
        evaluator=None if judge is None else _Dev(judge),
        callbacks=wanted,
    )
    trainer.remove_callback(PrinterCallback)
    started = time.perf_counter()
    trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    interrupted = stop.interrupted and trainer.state.global_step < trainer.state.max_steps
    return TrainOutput(
        steps=trainer.state.global_step,
        seconds=time.perf_counter() - started,
        precision=settings.precision,
        best_dev_spearman=None if trainer.state.best_metric is None else float(trainer.state.best_metric),
        best_step=trainer.state.best_global_step,
        interrupted=interrupted,
    )


def _arguments(
    settings: TrainingSettings,
    examples: int,
    checkpoints: Path,
    model: Any,
    precision: str,
    batches: Batches,
    selecting: bool,
) -> SentenceTransformerTrainingArguments:
    every = settings.steps_between_looks(examples)
    return SentenceTransformerTrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch_size,
        batch_sampler=sampler_of(batches),
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=settings.warmup_ratio,  # a share of the steps when below 1
        lr_scheduler_type=settings.lr_scheduler_type,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch_fused",
        bf16=precision == "bfloat16",
        use_cpu=model.device.type == "cpu",
        seed=settings.seed,
        data_seed=settings.seed,
        eval_strategy="steps" if selecting else "no",
        eval_steps=every if selecting else None,
        save_strategy="steps",
        save_steps=every,
        save_total_limit=2,
        load_best_model_at_end=selecting,
        metric_for_best_model=f"eval_{DEV_METRIC}" if selecting else None,
        greater_is_better=True if selecting else None,
        logging_steps=max(1, every // 5),
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=model.device.type == "cuda",
    )


def pick_precision(model: SentenceTransformer, dataset: Dataset, settings: TrainingSettings) -> Choice:
    """Resolve the precision of a run: as asked for, or by timing steps of its first batch.

    Several processes must agree, so under ``torchrun`` it is not timed: bfloat16 where the device computes in it.
    """
    if settings.precision == "auto" and world_size() > 1:
        return Choice(inference_precision("auto", model.device), "not measured: several processes train together")
    columns = [values for name, values in dataset[: settings.batch_size].items() if name != "label"]
    return training_precision(model, [text for column in columns for text in column], settings.precision)


_WRITTEN = ("optimizer.pt", "scheduler.pt", "rng_state.pth")


def newest_checkpoint(checkpoints: Path, also: Sequence[str] = ()) -> Path | None:
    """Return the newest checkpoint to go on from; those that are of no use are removed.

    Such are half-written ones, which lack a file of the trainer's or one of ``also``, and that of the last step: the
    trainer would take one step more.
    """
    found = sorted(checkpoints.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1]), reverse=True)
    for path in found:
        try:
            state = read_json(path / "trainer_state.json")
            goes_on = state["global_step"] < state["max_steps"]
        except (DataError, KeyError):
            goes_on = False
        if goes_on and all(
            (path / name).is_file() for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", *also)
        ):
            return path
        if is_main():
            shutil.rmtree(path)
    return None
