"""Train a cross-encoder on ``CrossEncoderTrainer``: selection, checkpoints, resume and a safe stop as in ``fit.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentence_transformers import CrossEncoder, SentenceTransformerTrainingArguments
from sentence_transformers.cross_encoder import CrossEncoderTrainer
from torch import nn
from transformers import TrainerCallback

from samesense.encoder.precision import Choice, inference_precision, training_precision
from samesense.execution.ranks import world_size
from samesense.training.batches import Batches
from samesense.training.fit import TrainOutput, drive
from samesense.training.settings import TrainingSettings

if TYPE_CHECKING:
    from datasets import Dataset

Judge = Callable[[CrossEncoder], float]
"""Gives a cross-encoder's dev Spearman."""


class PairTrainer(CrossEncoderTrainer):  # type: ignore[misc]
    """sentence-transformers' own, taking the arguments that ``fit.py`` makes: both kinds of trainer have the same."""

    training_args_class = SentenceTransformerTrainingArguments


def fit_cross(  # noqa: PLR0913 - what a run may be told
    model: CrossEncoder,
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
        model: the cross-encoder.
        dataset: two text columns, then ``label``.
        objective: module in the form of sentence-transformers' cross-encoder losses.
        settings: see :class:`TrainingSettings`; with ``precision`` resolved, see :func:`pick_cross_precision`.
        folder: holds ``checkpoints/`` (deleted at the end of a finished run) and ``history.jsonl``.
        judge: dev Spearman of a model, for selection and early stopping.
        batches: how examples are put into batches; see :mod:`samesense.training.batches`.
        collator: puts examples into a batch; ``None`` takes the trainer's own.
        resume: continue from the newest whole checkpoint in ``folder``.
        callbacks: further trainer callbacks.

    Returns:
        An :class:`~samesense.training.fit.TrainOutput`.

    Raises:
        ConfigError: if patience is asked for without a judge, or there is nothing to resume.

    Differs: selects by Spearman, where the blog's code selects by accuracy at a threshold of 0.5.
    """
    return drive(
        PairTrainer, model, dataset, objective, settings, folder,
        judge=judge, batches=batches, collator=collator, resume=resume, callbacks=callbacks,
    )  # fmt: skip


def pick_cross_precision(model: CrossEncoder, dataset: Dataset, settings: TrainingSettings) -> Choice:
    """Resolve the precision of a run as :func:`~samesense.training.fit.pick_precision` does, over its first pairs."""
    if settings.precision == "auto" and world_size() > 1:
        return Choice(inference_precision("auto", model.device), "not measured: several processes train together")
    first = dataset[: settings.batch_size]
    pairs = list(zip(first["sentence1"], first["sentence2"], strict=True))
    return training_precision(model, pairs, settings.precision)  # type: ignore[arg-type]  # one text is a pair here
