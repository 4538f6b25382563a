"""Train an encoder on sentence-transformers' trainers: dev selection, checkpoints, resume, and a safe stop."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
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
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import stage
from samesense.execution.ranks import is_main, world_size
from samesense.execution.trainer import StopOnInterrupt, newest_checkpoint, run_trainer, training_arguments
from samesense.execution.trainer_fields import check_trainer
from samesense.losses.cosine import NotFiniteError
from samesense.training.batches import Batches, check_fills_step, examples_of_epoch, sampler_of
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
from samesense.training.lora import WEIGHTS, add_adapters, check_kept, check_lora, keep, merge, of_adapters
from samesense.training.losses.base import EmbeddingLoss, nest
from samesense.training.losses.check import check_dataset
from samesense.training.losses.cross import CrossEncoderLoss
from samesense.training.mixing import Mix, MixedTrainer
from samesense.training.optimizer import RowAdamW, clip_all, sparse_embeddings
from samesense.training.settings import TrainingSettings
from samesense.training.texts import LogCut, TrainingTexts

if TYPE_CHECKING:
    from datasets import Dataset


logger = logging.getLogger(__name__)

SAID_FROM = 0.5
"""Share of steps without a gradient from which on it is said."""


@dataclass(frozen=True)
class TrainOutput:
    """How a run ended: its dev scores, and whether it was interrupted before its end."""

    steps: int
    seconds: float  # of it all
    precision: str
    start_dev_spearman: float | None = None  # of the untouched start
    best_dev_spearman: float | None = None  # of the state that was kept, which the dev set selected
    best_step: int | None = None
    interrupted: bool = False
    # seconds of its parts: loading of what was kept, training, evaluation on dev, saving of checkpoints
    spent: dict[str, float] = field(default_factory=dict)


class _DevEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Gives the trainer the dev score under the name by which the best checkpoint is chosen."""

    def __init__(self, score: Callable[[Any], float]) -> None:
        super().__init__()
        self.score = score
        self.primary_metric = DEV_METRIC
        self.problem = ""  # why the last one without a figure has none

    def __call__(self, model: Any, *_: Any, **__: Any) -> dict[str, float]:
        """Return the dev score; NaN, which is never the best, where the scores of the model give none."""
        with stage("evaluation on dev"):
            try:
                return {DEV_METRIC: float(self.score(model))}
            except (DataError, ModelError) as error:
                self.problem = str(error)
                return {DEV_METRIC: math.nan}


class _PairTrainer(CrossEncoderTrainer):  # type: ignore[misc]
    """sentence-transformers' own, taking the arguments of bi-encoders: both kinds have the same."""

    training_args_class = SentenceTransformerTrainingArguments


def fit(  # noqa: PLR0913 - what a run may be told
    model: SentenceTransformer | CrossEncoder,
    dataset: Dataset,
    loss: nn.Module,
    settings: TrainingSettings,
    folder: Path,
    *,
    dev_score: Callable[[Any], float] | None = None,
    batches: Batches | Mix = "random",
    collator: Callable[..., Any] | None = None,
    max_length: int | None = None,
    resume: bool = False,
    callbacks: Sequence[TrainerCallback] = (),
) -> TrainOutput:
    """Train a bi-encoder or a cross-encoder in place; with a dev score, it ends as its best checkpoint.

    The untouched start is scored too, at step 0 of the history, and is never what is kept.

    Args:
        model: the encoder.
        dataset: text columns, then ``label`` where the loss takes one; of several objectives, a ``DatasetDict``.
        loss: module in the form of sentence-transformers' losses for this kind of model; of several objectives, an
            ``nn.ModuleDict`` with one for each data set.
        settings: see :class:`TrainingSettings`.
        folder: holds ``checkpoints/``, of no use once the model is saved, and ``history.jsonl``.
        dev_score: dev Spearman of a model, for the best checkpoint and early stopping.
        batches: how examples are put into batches; see :mod:`samesense.training.batches`. Of several objectives, how
            their batches follow each other.
        collator: puts examples into a batch; ``None`` takes sentence-transformers' own, whose texts are those that
            ``encode`` sees: behind the model's default prompt.
        max_length: longest input in training, in tokens, for ``collator`` ``None``; ``None`` for the model's own. The
            model itself goes on reading its own.
        resume: continue from the newest whole checkpoint in ``folder``; from the start if there is none.
        callbacks: further trainer callbacks.

    Raises:
        ConfigError: if early stopping is asked for without a dev score, or what is asked for does not fit the model or
            the number of processes.
        DataError: if columns or labels do not fit the loss; see :func:`samesense.training.losses.check.check_dataset`.

    Differs: dropout masks of a CPU run come from :class:`~samesense.encoder.forward.dropout.CheapDropout`, which has
        the same distribution and other random numbers. Cross-encoders are selected by Spearman, where the code of
        CoSENT's author selects by accuracy at a threshold of 0.5.
    """
    patience = settings.early_stopping_patience
    if patience is not None and dev_score is None:
        raise ConfigError(
            "early_stopping_patience counts evaluations on a dev set, and there is none. Give dev, or leave it out."
        )
    _check_losses(loss, dataset, settings, model, batches)
    if settings.keep_lora:
        check_kept(model)
    with packing(model), sparse_embeddings(loss, allowed="optim" not in settings.trainer) as sparse:
        precision = pick_precision(model, dataset, settings, max_length).precision
        settings = settings.model_copy(update={"precision": precision})
        set_seed(settings.seed)  # after the measurement of the precision, which draws numbers
        adapters = None if settings.lora is None else add_adapters(model, settings.lora)
        if model.device.type == "cpu":
            use_cheap_dropout(model)
        # sentence-transformers would copy training sentences into the card of the model, which is made to be shared
        model.model_card_data.set_widget_examples = lambda dataset: None
        checkpoints, stop = folder / "checkpoints", StopOnInterrupt()
        resume_from = _resumed(loss, checkpoints, [] if adapters is None else [WEIGHTS]) if resume else None
        times = Times(resume_from)
        texts = TrainingTexts(model, max_length)
        counts = collator is None  # another one has callbacks that count its texts
        if isinstance(loss, CrossEncoderLoss):
            loss.tokenise = texts
        elif collator is None:
            collator = SentenceTransformerDataCollator(preprocess_fn=texts)
        evaluator, gradients = None if dev_score is None else _DevEvaluator(dev_score), Gradients()
        kind = _trainer_of(model, batches)
        trainer = (kind if adapters is None else of_adapters(kind))(
            model=model,
            args=_arguments(
                settings,
                sum(examples_of_epoch(own, batches, settings.batch_size) for _, own in _each(loss, dataset)),
                checkpoints,
                model,
                batches,
                selecting=dev_score is not None,
                starting=resume_from is None,
            ),
            train_dataset=dataset,
            data_collator=collator,
            loss=dict(loss.items()) if isinstance(loss, nn.ModuleDict) else loss,
            evaluator=evaluator,
            callbacks=[
                Progress(loss),
                History(folder / "history.jsonl"),
                SaveLossWeights(loss),
                *([] if patience is None else [Patience(patience)]),
                times,
                gradients,
                *([LogCut(texts)] if counts else []),
                *callbacks,
            ],
        )
        if sparse:
            arguments = trainer.get_optimizer_cls_and_kwargs(trainer.args, model)[1]
            trainer.optimizer_cls_and_kwargs = (RowAdamW, arguments)
        clip_all(trainer, loss, gradients.seen)
        if isinstance(batches, Mix):
            trainer.mix = batches
        stopped = _run(trainer, resume_from, stop, evaluator, gradients)
        if adapters is not None:
            keep(adapters, model) if settings.keep_lora else merge(adapters)
        if not stop.interrupted:
            _check_learnt(gradients, trainer)
        best = trainer.state.best_metric
        return TrainOutput(
            steps=trainer.state.global_step,
            seconds=sum(times.laps.seconds.values()),
            precision=settings.precision,
            start_dev_spearman=_start_score(trainer.state.log_history),
            best_dev_spearman=float(best) if best is not None and math.isfinite(best) else None,
            best_step=trainer.state.best_global_step,
            interrupted=stop.interrupted and stopped,
            spent=times.laps.seconds,
        )


def _run(
    trainer: Any, resume_from: Path | None, stop: StopOnInterrupt, evaluator: _DevEvaluator | None, gradients: Gradients
) -> bool:
    """Train; return whether it was stopped before its end, as it is where a loss is given what is not finite."""
    try:
        return run_trainer(trainer, resume_from, stop, lambda: evaluator.problem if evaluator else "")
    except NotFiniteError as error:  # of the loss, before there was a gradient
        gradients.broken, gradients.problem = trainer.state.global_step + 1, str(error)
        if trainer.state.best_model_checkpoint is not None:
            trainer._load_best_model()
        return True


def _check_learnt(gradients: Gradients, trainer: Any) -> None:
    """Raise if a run learnt nothing, or broke off before there was a best checkpoint; warn if one is kept.

    DataError if no step had a gradient, ModelError if one was not finite; checkpoints are removed.
    """
    state, rate = trainer.state, trainer.args.learning_rate
    kept = state.best_metric is not None and math.isfinite(state.best_metric)
    if not gradients.nothing and (gradients.broken is None or kept):
        if gradients.broken is not None:
            logger.warning(
                f"step {gradients.broken}, at learning rate {rate:g}: {gradients.problem} The training ends there, and "
                f"the checkpoint of step {state.best_global_step} is kept. A lower `learning_rate` may help"
            )
        elif gradients.share_without() >= SAID_FROM:
            logger.warning(
                f"{gradients.share_without():.0%} of the steps changed nothing: their loss had no gradient, as the "
                "batches had nothing to compare, or all of it was learnt"
            )
        return
    if is_main():
        shutil.rmtree(trainer.args.output_dir, ignore_errors=True)
    if gradients.nothing:
        raise DataError(
            f"No step of {state.global_step} changed the model: the loss had no gradient in any batch, as there was "
            "nothing to compare, or all of it was learnt before. No model is kept. Give other data, larger batches "
            "(`batch_size`) or another loss."
        )
    raise ModelError(
        f"The training diverged at step {gradients.broken}, learning rate {rate:g}: {gradients.problem} No model is "
        "kept. Lower `learning_rate`, or take `precision` float32."
    )


def _trainer_of(model: SentenceTransformer | CrossEncoder, batches: Batches | Mix) -> Any:
    if isinstance(batches, Mix):
        return MixedTrainer
    return _PairTrainer if isinstance(model, CrossEncoder) else SentenceTransformerTrainer


def _each(loss: nn.Module, dataset: Any) -> list[tuple[nn.Module, Dataset]]:
    """Return every objective with its data."""
    if isinstance(loss, nn.ModuleDict):
        return [(one, dataset[name]) for name, one in loss.items()]
    return [(loss, dataset)]


def _check_losses(loss: nn.Module, dataset: Any, settings: TrainingSettings, model: Any, batches: object) -> None:
    """Check the data of every objective, and have it formed at every width that is asked for."""
    for one, own in _each(loss, dataset):
        check_dataset(one, own)
        check_fills_step(own, batches, settings.batch_size)
        if isinstance(one, EmbeddingLoss) and settings.matryoshka:
            nest(one, settings.matryoshka, model.get_embedding_dimension())


def _start_score(history: Sequence[Mapping[str, float]]) -> float | None:
    """Return the dev score at step 0, which a resumed run finds in its checkpoint."""
    scores = (log.get(f"eval_{DEV_METRIC}") for log in history if log["step"] == 0)
    return next((score for score in scores if score is not None and math.isfinite(score)), None)


def _arguments(
    settings: TrainingSettings,
    examples: int,
    checkpoints: Path,
    model: Any,
    batches: Batches | Mix,
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
        eval_on_start=selecting and starting,
        use_cpu=model.device.type == "cpu",
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps or -1,
        per_device_train_batch_size=settings.batch_size,
        batch_sampler=sampler_of("random" if isinstance(batches, Mix) else batches),
        lr_scheduler_type=settings.lr_scheduler_type,
        max_grad_norm=settings.max_grad_norm,
        dataloader_pin_memory=model.device.type == "cuda",
    )


def check_settings(settings: TrainingSettings) -> None:
    """Raise ConfigError or MissingExtraError if a run with them could not start, before anything is computed."""
    check_trainer(SentenceTransformerTrainingArguments, settings)
    if settings.lora is not None:
        check_lora()


def pick_precision(
    model: SentenceTransformer | CrossEncoder,
    dataset: Dataset,
    settings: TrainingSettings,
    max_length: int | None = None,
) -> PrecisionChoice:
    """Resolve the precision of a run: as asked for, or by timing steps of its first batch.

    Several processes must agree, so under ``torchrun`` it is not timed: bfloat16 where the device computes in it.
    """
    if settings.precision == "auto" and settings.trainer.get("fp16"):
        return PrecisionChoice("float32", "the trainer computes in float16, as asked for")
    if settings.precision == "auto" and world_size() > 1:
        return PrecisionChoice(
            inference_precision("auto", model.device), "not measured: several processes train together"
        )
    if isinstance(dataset, dict):  # of several objectives the first
        dataset = next(iter(dataset.values()))
    columns = [values for name, values in dataset[: settings.batch_size].items() if name != "label"]
    texts: Any = [text for column in columns for text in column]
    if isinstance(model, CrossEncoder):
        texts = list(zip(*columns, strict=True))  # one text of a cross-encoder is a pair
    with packing(model):  # as in training
        return training_precision(model, texts, settings.precision, max_length)


def _resumed(loss: nn.Module, checkpoints: Path, also: list[str]) -> Path | None:
    """Return the checkpoint to go on from, the loss given the weights of its own that it holds."""
    newest = newest_checkpoint(checkpoints, required_files=[*also, *([LOSS_WEIGHTS] if loss_weights(loss) else [])])
    if newest is not None:
        load_loss_weights(loss, newest)
    return newest
