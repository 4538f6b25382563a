"""Train an encoder with the trainers of sentence-transformers: dev selection, checkpoints, resume, safe stop."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import (
    CrossEncoder,
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from torch import nn
from transformers import TrainerCallback, set_seed

from samesense.encoder.forward.dropout import use_cheap_dropout
from samesense.encoder.forward.packing import packing
from samesense.encoder.forward.precision import PrecisionChoice, inference_precision, training_precision
from samesense.errors import DataError, ModelError
from samesense.execution.progress import stage
from samesense.execution.ranks import is_main, world_size
from samesense.execution.trainer import StopOnInterrupt, newest_checkpoint, run_trainer, training_arguments
from samesense.execution.trainer_fields import check_trainer
from samesense.losses.base import EmbeddingLoss, check_widths, nest
from samesense.losses.check import check_dataset
from samesense.losses.cosine import NotFiniteError
from samesense.losses.cross_encoder import CrossEncoderLoss
from samesense.training.batches import Batches, BatchSampler, batch_sampler_of, check_fills_step, examples_of_epoch
from samesense.training.callbacks import (
    DEV_METRIC,
    LOSS_WEIGHTS,
    Gradients,
    History,
    Patience,
    Progress,
    SaveLossWeights,
    Times,
    load_loss_weights,
    loss_weights,
)
from samesense.training.freezing import check_freezable, frozen_layers
from samesense.training.lora import (
    WEIGHTS,
    add_adapters,
    check_adaptable,
    check_keepable,
    check_lora,
    keep,
    merge,
    saving_trained_weights,
)
from samesense.training.mixing import Mix, MixedTrainer
from samesense.training.optimizer import RowAdamW, clip_all, sparse_embeddings
from samesense.training.settings import TrainingSettings, check_stopping
from samesense.training.texts import LogCut, TrainingTexts

if TYPE_CHECKING:
    from datasets import Dataset


logger = logging.getLogger(__name__)

WARN_FROM = 0.5
"""Fraction of steps with zero gradient from which on a warning is given."""


@dataclass(frozen=True)
class TrainOutput:
    """Result of a run: its dev scores, and whether it was interrupted."""

    steps: int
    seconds: float  # in total
    precision: str
    start_dev_spearman: float | None = None  # of the start model
    best_dev_spearman: float | None = None  # of the checkpoint that the dev set selected
    best_step: int | None = None
    interrupted: bool = False
    # seconds by kind: loading of checkpoints, training, evaluation on dev, saving of checkpoints
    spent: dict[str, float] = field(default_factory=dict)


class _DevEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Returns the dev score under the name by which the trainer chooses the best checkpoint."""

    def __init__(self, score: Callable[[Any], float]) -> None:
        super().__init__()
        self.score = score
        self.primary_metric = DEV_METRIC
        self.problem = ""  # why the last evaluation without a score failed

    def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
        """Return the dev score; NaN, which is never the best, if it cannot be computed."""
        with stage("evaluation on dev"):
            try:
                return {DEV_METRIC: float(self.score(model))}
            except (DataError, ModelError) as error:
                self.problem = str(error)
                return {DEV_METRIC: math.nan}


class _PairTrainer(CrossEncoderTrainer):  # type: ignore[misc]
    """The cross-encoder trainer with the arguments of bi-encoders, which are the same."""

    training_args_class = SentenceTransformerTrainingArguments


def fit(  # noqa: PLR0913 - the arguments of a run
    model: SentenceTransformer | CrossEncoder,
    dataset: Dataset,
    loss: nn.Module,
    settings: TrainingSettings,
    folder: Path,
    *,
    dev_score: Callable[[Any], float] | None = None,
    batches: Batches | BatchSampler | Mix = "random",
    collator: Callable[..., Any] | None = None,
    max_length: int | None = None,
    resume: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainOutput:
    """Train a bi-encoder or a cross-encoder in place; with a dev score, load its best checkpoint at the end.

    The start model is scored too, at step 0 of the history, but is never the best checkpoint.

    Args:
        model: the encoder.
        dataset: text columns, then ``label`` if the loss takes one; a ``DatasetDict`` for several objectives.
        loss: loss module of sentence-transformers for this kind of model; for several objectives, an ``nn.ModuleDict``
            with one loss for each data set.
        settings: see :class:`TrainingSettings`.
        folder: folder for ``checkpoints/``, which are not needed once the model is saved, and ``history.jsonl``.
        dev_score: returns the dev Spearman of a model, for the best checkpoint and early stopping.
        batches: how examples are put into batches, see :mod:`samesense.training.batches`; for several objectives, the
            order of their batches.
        collator: data collator; ``None`` takes that of sentence-transformers, with the model's default prompt as in
            ``encode``.
        max_length: maximum input length in training, in tokens, for ``collator`` ``None``; ``None`` for the model's
            own, which the model itself keeps.
        resume: continue from the newest complete checkpoint in ``folder``; from the start if there is none.
        callbacks: additional trainer callbacks.

    Raises:
        ConfigError: if early stopping has no dev score, or settings do not fit the model or the number of processes.
        DataError: if columns or labels do not fit the loss; see :func:`samesense.losses.check.check_dataset`.

    Differs: on a CPU, dropout masks come from :class:`~samesense.encoder.forward.dropout.CheapDropout`, with the same
        distribution but other random numbers. Cross-encoders are selected by Spearman; the code of CoSENT's author
        selects by accuracy at a threshold of 0.5.
    """
    check_stopping(settings, has_dev=dev_score is not None)
    check_trainable(model, settings)
    _prepare_losses(loss, dataset, settings, model, batches)
    with (
        packing(model),
        _without_cards(model),
        frozen_layers(model, settings.freeze_layers),
        sparse_embeddings(loss, allowed="optim" not in settings.trainer) as sparse,
    ):
        precision = pick_precision(model, dataset, settings, max_length).precision
        settings = settings.model_copy(update={"precision": precision})
        set_seed(settings.seed)  # after the timing of precisions, which draws random numbers

        adapters = None if settings.lora is None else add_adapters(model, settings.lora)
        if model.device.type == "cpu":
            use_cheap_dropout(model)
        checkpoints = folder / "checkpoints"
        resume_from: Path | None = None
        if resume:
            resume_from = _resume_point(loss, checkpoints, [] if adapters is None else [WEIGHTS])
        times = Times(resume_from)
        gradients = Gradients()
        evaluator = None if dev_score is None else _DevEvaluator(dev_score)
        arguments = _arguments(
            settings,
            _examples_of_epoch(loss, dataset, settings, batches),
            checkpoints,
            model,
            batches,
            selecting=dev_score is not None,
            starting=resume_from is None,
        )
        collator, text_callbacks = _tokenise(model, loss, collator, max_length)
        trainer = _trainer_class(model, batches, adapted=adapters is not None)(
            model=model,
            args=arguments,
            train_dataset=dataset,
            data_collator=collator,
            # For several losses, sentence-transformers takes a plain dictionary.
            loss=dict(loss.items()) if isinstance(loss, nn.ModuleDict) else loss,
            evaluator=evaluator,
            callbacks=[*_run_callbacks(loss, settings, folder), times, gradients, *text_callbacks, *callbacks],
        )
        if isinstance(batches, Mix):
            # In time, as the trainer makes its batch samplers only when it trains.
            trainer.mix = batches
        if sparse:
            # torch's own AdamW refuses sparse gradients.
            trainer.optimizer_cls_and_kwargs = (RowAdamW, trainer.get_optimizer_cls_and_kwargs(trainer.args, model)[1])
        clip_all(trainer, loss, gradients.check_norm)

        stop = StopOnInterrupt()
        stopped = _run(trainer, resume_from, stop, gradients, evaluator)
        _finish_adapters(adapters, model, keeps=settings.keep_lora)
        if not stop.interrupted:
            _check_learnt(gradients, trainer)
        # Ctrl-C during the last step stops nothing, and early stopping interrupts nothing.
        return _output_of(trainer, times, settings, interrupted=stop.interrupted and stopped)


def _run_callbacks(loss: nn.Module, settings: TrainingSettings, folder: Path) -> list[TrainerCallback]:
    """Return the callbacks of every training."""
    callbacks: list[TrainerCallback] = [Progress(loss), History(folder / "history.jsonl"), SaveLossWeights(loss)]
    if settings.early_stopping_patience is not None:
        callbacks.append(Patience(settings.early_stopping_patience))
    return callbacks


def _output_of(trainer: Any, times: Times, settings: TrainingSettings, *, interrupted: bool) -> TrainOutput:
    """Return the result of a training that has ended."""
    state = trainer.state
    return TrainOutput(
        steps=state.global_step,
        seconds=sum(times.laps.seconds.values()),
        precision=settings.precision,
        start_dev_spearman=_start_score(state.log_history),
        best_dev_spearman=_best_score(state.best_metric),
        best_step=state.best_global_step,
        interrupted=interrupted,
        spent=times.laps.seconds,
    )


def check_trainable(model: SentenceTransformer | CrossEncoder, settings: TrainingSettings) -> None:
    """Raise ConfigError if a model cannot be trained by these settings: its kind, its layers or its width forbid it."""
    check_freezable(model, settings.freeze_layers)
    if settings.lora is not None:
        check_adaptable(model)
    if settings.keep_lora:
        check_keepable(model)
    if settings.matryoshka:
        check_widths(settings.matryoshka, model.get_embedding_dimension())


@contextmanager
def _without_cards(model: SentenceTransformer | CrossEncoder) -> Iterator[None]:
    """Write no model card into checkpoints: rendering one takes a third of the time of a checkpoint."""
    # sentence-transformers would count the tokens of training sentences for a model card, and copy some into it
    model.model_card_data.extract_dataset_metadata = lambda dataset, **_: []
    model.model_card_data.set_widget_examples = lambda dataset: None
    # A private method, as the trainer gives its saves no argument.
    model.__dict__["_create_model_card"] = lambda *_, **__: None
    try:
        yield
    finally:
        del model.__dict__["_create_model_card"]


def _tokenise(
    model: SentenceTransformer | CrossEncoder, loss: nn.Module, collator: Any, max_length: int | None
) -> tuple[Any, list[TrainerCallback]]:
    """Return the collator, and the callbacks that report truncated texts; a cross-encoder's loss tokenises itself."""
    texts = TrainingTexts(model, max_length)
    callbacks: list[TrainerCallback] = []
    # another collator comes with callbacks that count its texts
    if collator is None:
        callbacks.append(LogCut(texts))
    if isinstance(loss, CrossEncoderLoss):
        loss.tokenise = texts
    elif collator is None:
        collator = SentenceTransformerDataCollator(preprocess_fn=texts)
    return collator, callbacks


def _run(
    trainer: Any, resume_from: Path | None, stop: StopOnInterrupt, gradients: Gradients, evaluator: _DevEvaluator | None
) -> bool:
    """Train; return whether training stopped early, as it does when a loss gets embeddings that are not finite."""
    try:
        return run_trainer(trainer, resume_from, stop, lambda: evaluator.problem if evaluator else "")
    except NotFiniteError as error:  # raised by the loss, before there was a gradient
        gradients.broken = trainer.state.global_step + 1
        gradients.problem = str(error)
        if trainer.state.best_model_checkpoint is not None:
            # The trainer does this at a regular end alone, which the exception skipped.
            trainer._load_best_model()
        return True


def _finish_adapters(adapters: Any, model: SentenceTransformer | CrossEncoder, *, keeps: bool) -> None:
    """Leave LoRA's adapters beside the model, or add them to its weights; nothing if there are none."""
    if adapters is None:
        return
    if keeps:
        keep(adapters, model)
    else:
        merge(adapters)


def _check_learnt(gradients: Gradients, trainer: Any) -> None:
    """Raise if a run learnt nothing, or diverged before it had a best checkpoint; warn if it has one.

    DataError if no step had a gradient, ModelError if a gradient was not finite; checkpoints are removed.
    """
    state = trainer.state
    rate = trainer.args.learning_rate
    has_best = state.best_metric is not None and math.isfinite(state.best_metric)
    if gradients.nothing:
        _remove_checkpoints(trainer)
        raise DataError(
            f"No step of {state.global_step} changed the model: the loss had no gradient in any batch, as there was "
            "nothing to compare, or all of it was learnt before. No model is kept. Give other data, larger batches "
            "(`batch_size`) or another loss."
        )
    if gradients.broken is not None and not has_best:
        _remove_checkpoints(trainer)
        raise ModelError(
            f"The training diverged at step {gradients.broken}, learning rate {rate:g}: {gradients.problem} No model "
            "is kept. Lower `learning_rate`, or take `precision` float32."
        )
    if gradients.broken is not None:
        logger.warning(
            f"step {gradients.broken}, at learning rate {rate:g}: {gradients.problem} The training ends there, and "
            f"the checkpoint of step {state.best_global_step} is kept. A lower `learning_rate` may help"
        )
        return
    fraction = gradients.fraction_without_gradient()
    if fraction >= WARN_FROM:
        logger.warning(
            f"{fraction:.0%} of the steps changed nothing: their loss had no gradient, as the batches had "
            "nothing to compare, or all of it was learnt"
        )


def _remove_checkpoints(trainer: Any) -> None:
    if is_main():
        shutil.rmtree(trainer.args.output_dir, ignore_errors=True)


def _trainer_class(
    model: SentenceTransformer | CrossEncoder, batches: Batches | BatchSampler | Mix, *, adapted: bool
) -> Any:
    """Return the class of the trainer; ``adapted`` tells whether only adapters are trained."""
    trainer_class: Any = SentenceTransformerTrainer
    if isinstance(batches, Mix):
        trainer_class = MixedTrainer
    elif isinstance(model, CrossEncoder):
        trainer_class = _PairTrainer
    if not adapted:
        return trainer_class
    return saving_trained_weights(trainer_class)


def _objectives(loss: nn.Module, dataset: Any) -> list[tuple[nn.Module, Dataset]]:
    """Return every loss with its data set."""
    if isinstance(loss, nn.ModuleDict):
        return [(objective, dataset[name]) for name, objective in loss.items()]
    return [(loss, dataset)]


def _examples_of_epoch(
    loss: nn.Module, dataset: Any, settings: TrainingSettings, batches: Batches | BatchSampler | Mix
) -> int:
    """Return the number of examples of an epoch, over all objectives."""
    return sum(examples_of_epoch(split, batches, settings.batch_size) for _, split in _objectives(loss, dataset))


def _prepare_losses(loss: nn.Module, dataset: Any, settings: TrainingSettings, model: Any, batches: object) -> None:
    """Check the data of every loss, and set its Matryoshka widths."""
    for objective, split in _objectives(loss, dataset):
        check_dataset(objective, split)
        check_fills_step(split, batches, settings.batch_size)
        if isinstance(objective, EmbeddingLoss) and settings.matryoshka:
            nest(objective, settings.matryoshka, model.get_embedding_dimension())


def _best_score(best: float | None) -> float | None:
    """Return the dev score of the best checkpoint; ``None`` if no checkpoint had one."""
    if best is None or not math.isfinite(best):
        return None
    return float(best)


def _start_score(history: Sequence[Mapping[str, float]]) -> float | None:
    """Return the dev score at step 0; a resumed run reads it from its checkpoint."""
    scores = (log.get(f"eval_{DEV_METRIC}") for log in history if log["step"] == 0)
    return next((score for score in scores if score is not None and math.isfinite(score)), None)


def _arguments(
    settings: TrainingSettings,
    examples: int,
    checkpoints: Path,
    model: Any,
    batches: Batches | BatchSampler | Mix,
    *,
    selecting: bool,
    starting: bool,
) -> SentenceTransformerTrainingArguments:
    return training_arguments(
        SentenceTransformerTrainingArguments,
        settings,
        checkpoints,
        eval_steps=settings.steps_between_evaluations(examples),
        metric=f"eval_{DEV_METRIC}" if selecting else None,
        greater_is_better=True,
        # A resumed run has the score of its start in the history.
        eval_on_start=selecting and starting,
        use_cpu=model.device.type == "cpu",
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch_size,
        # For several objectives, MixedTrainer replaces it by that of each data set.
        batch_sampler=batch_sampler_of("random" if isinstance(batches, Mix) else batches),
        lr_scheduler_type=settings.lr_scheduler_type,
        max_grad_norm=settings.max_grad_norm,
        # Pinned memory speeds up copies to a GPU only; without one torch warns.
        dataloader_pin_memory=model.device.type == "cuda",
    )


def check_settings(settings: TrainingSettings) -> None:
    """Raise ConfigError or MissingExtraError if a run with these settings could not start."""
    check_trainer(SentenceTransformerTrainingArguments, settings)
    if settings.lora is not None:
        check_lora()


def pick_precision(
    model: SentenceTransformer | CrossEncoder,
    dataset: Dataset,
    settings: TrainingSettings,
    max_length: int | None = None,
) -> PrecisionChoice:
    """Resolve the precision of a run: as set, or by timing steps of its first batch.

    Several processes must agree, so under ``torchrun`` nothing is timed: bfloat16 is used if the device computes in it.
    """
    if settings.precision == "auto" and settings.trainer.get("fp16"):
        return PrecisionChoice("float32", "the trainer computes in float16, as asked for")
    if settings.precision == "auto" and world_size() > 1:
        return PrecisionChoice(
            inference_precision("auto", model.device), "not measured: several processes train together"
        )
    if isinstance(dataset, dict):  # several objectives: take the first
        dataset = next(iter(dataset.values()))
    columns = [values for name, values in dataset[: settings.batch_size].items() if name != "label"]
    texts: Any = [text for column in columns for text in column]
    if isinstance(model, CrossEncoder):
        texts = list(zip(*columns, strict=True))  # a cross-encoder reads pairs
    with packing(model):  # as in training
        return training_precision(model, texts, settings.precision, max_length)


def _resume_point(loss: nn.Module, checkpoints: Path, required_files: list[str]) -> Path | None:
    """Return the newest complete checkpoint, after loading the loss's own weights from it."""
    own_files = [LOSS_WEIGHTS] if loss_weights(loss) else []
    newest = newest_checkpoint(checkpoints, required_files=[*required_files, *own_files])
    if newest is not None:
        load_loss_weights(loss, newest)
    return newest
