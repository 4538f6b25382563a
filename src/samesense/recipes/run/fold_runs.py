"""The folds of a cross-validated run: their trainings, and what these decide for the training on all pairs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers import set_seed

from samesense.data import PairData
from samesense.encoder.assembly.merge import copy_weights, interpolate
from samesense.encoder.forward.precision import PrecisionChoice
from samesense.encoder.maps.standardize import FITTED, standardize
from samesense.errors import DataError, ModelError
from samesense.evaluation.task import checked_scores
from samesense.execution.progress import stage
from samesense.recipes.held_out.cross_validation import (
    FOLDS_FOLDER,
    WEIGHT_SHARES,
    CrossValidation,
    FoldScores,
    OutOfFold,
    Selects,
    score_out_of_fold,
)
from samesense.recipes.held_out.sets import Sets
from samesense.recipes.run.earlier_run import CHECKPOINTS
from samesense.recipes.run.job import Build, Job, Prepare, TrainingInputs
from samesense.recipes.run.model_adapters import Adapter, adapter_of, has_new_head
from samesense.recipes.run.outcome.measure import Measured
from samesense.recipes.settings import EncoderSettings
from samesense.reports.figures.curves import Curve
from samesense.training.step_scores import STEP_SCORES, StepScores, StopAtStep
from samesense.types import Precision, Scores

logger = logging.getLogger(__name__)


def train_folds(job: Job[Any, Any], prepare: Prepare, build: Build | None, choice: PrecisionChoice) -> OutOfFold | None:
    """Train and score the folds of a job that are not there yet; ``None`` if that was interrupted."""
    if job.cross_validation is None:
        raise ValueError("the job has no folds")
    selects = what_folds_select(job.cross_validation, job.settings)
    train = partial(_train_fold, job, prepare, build, choice, selects)
    return score_out_of_fold(job.data, job.cross_validation.folds, job.output / FOLDS_FOLDER, train, selects)


def what_folds_select(cross_validation: CrossValidation, settings: EncoderSettings) -> Selects:
    """Return what the folds choose: a new head, or adapters that are saved alone, have no weights to go back to."""
    if not cross_validation.selects:
        return "nothing"
    if has_new_head(settings) or settings.keep_lora:
        return "steps"
    return "weights"


def _train_fold(
    job: Job[Any, Any],
    prepare: Prepare,
    build: Build | None,
    choice: PrecisionChoice,
    selects: Selects,
    teaching: PairData,
    held: PairData,
    folder: Path,
) -> FoldScores | None:
    """Train on some pairs as the run does on all, and score others along the training; ``None`` if interrupted.

    Where nothing is chosen, they are scored by the last state alone, in float32 as a saved model is.
    """
    fold = _job_of_fold(job, choice, teaching, folder)
    settings = fold.settings
    adapter = adapter_of(settings)
    with stage(f"preparing {folder.name}"):
        model = adapter.build(settings) if build is None else build(fold)
        inputs = prepare(model, fold)
        standardize_start(fold, model, inputs, choice)
    folder.mkdir(parents=True, exist_ok=True)
    start = copy_weights(model) if selects == "weights" else {}
    precision: Precision = "float32" if selects == "nothing" else choice.precision
    score = score_of_pairs(adapter, held, precision)
    # Only a fold that was stopped has checkpoints: they are removed once it is scored.
    resume = (folder / CHECKPOINTS).is_dir()
    recorder = StepScores(folder / STEP_SCORES, score, every=_steps_between_scores(fold, selects), resume=resume)
    set_seed(settings.seed)
    trained = inputs.fit(model, settings, folder, resume=resume, callbacks=[recorder])
    if trained.interrupted:
        return None
    scores_by_share = {step / recorder.total: scores for step, scores in recorder.by_step.items()}
    if selects == "weights":
        scores_by_share |= _score_between(model, start, score)
    if not scores_by_share:
        raise ModelError(
            f"The model of {folder.name} has no scores for its pairs at any step. Lower `learning_rate`, or take "
            "`folds` none."
        )
    shares = sorted(scores_by_share)
    return FoldScores(
        shares=shares,
        scores=[scores_by_share[share].tolist() for share in shares],
        protocol=f"{adapter.describe(model, settings)}, {precision}",
    )


def _job_of_fold(job: Job[Any, Any], choice: PrecisionChoice, teaching: PairData, folder: Path) -> Job[Any, Any]:
    """Return the job of a fold, which is a part of the run: it has no verdict, no guards and no folds of its own."""
    # A fold has no dev to stop early by: its share is chosen afterwards.
    settings = job.settings.model_copy(update={"precision": choice.precision, "early_stopping_patience": None})
    return replace(
        job, data=teaching, settings=settings, output=folder, guards=(), concludes=False, cross_validation=None
    )


def _steps_between_scores(fold: Job[Any, Any], selects: Selects) -> int:
    """Return the steps after which the held-out pairs are scored: at each evaluation, or at the end alone."""
    examples = fold.settings.examples(fold.data)
    if selects == "steps":
        return int(fold.settings.steps_between_evaluations(examples))
    return int(fold.settings.steps(examples))


def _score_between(model: Any, start: Mapping[str, Tensor], score: Callable[[Any], Scores]) -> dict[float, Scores]:
    """Return scores by the share of the way from the start to the trained weights, without those of the end."""
    end = copy_weights(model)
    scores_by_share = {}
    for share in WEIGHT_SHARES[:-1]:
        interpolate(model, start, end, share)
        # A share without scores cannot be chosen.
        with suppress(DataError, ModelError):
            scores_by_share[share] = score(model)
    return scores_by_share


def _schedule(job: Job[Any, Any]) -> tuple[int, int]:
    """Return the steps of a run on all pairs, and those between two evaluations."""
    examples = job.settings.examples(job.data)
    return job.settings.steps(examples), job.settings.steps_between_evaluations(examples)


def stop_early(job: Job[Any, Any], inputs: TrainingInputs, out_of_fold: OutOfFold) -> TrainingInputs:
    """Return the training inputs with the step at which the training ends, as the folds chose."""
    steps, every = _schedule(job)
    last = out_of_fold.stop_step(steps, every)
    if last >= steps:
        share = out_of_fold.weight_share
        chosen = f", then {share:.0%} of the way from the start, as the folds chose" if 0 < share < 1 else ""
        if share:
            logger.info(f"training on all {len(job.data)} pairs, {steps} steps{chosen}")
        return inputs
    logger.info(f"training on all {len(job.data)} pairs, {last} of {steps} steps, as the folds chose")
    return replace(inputs, callbacks=[*inputs.callbacks, StopAtStep(last)])


def curve_out_of_fold(
    job: Job[Any, Any], sets: Sets, start: Measured | None, out_of_fold: OutOfFold | None
) -> Curve | None:
    """Return Spearman out of fold along the training, where the folds chose how much of it is kept."""
    first = sets.verdict
    if out_of_fold is None or out_of_fold.selects == "nothing" or first is None:
        return None
    start_scores = None if start is None else start.by_set.get(first.name)
    figure = None if start_scores is None else start_scores.results[0].value
    return out_of_fold.curve(job.output.resolve().name, *_schedule(job), figure)


def score_of_pairs(adapter: Adapter, data: PairData, precision: Precision) -> Callable[[Any], Scores]:
    """Return a function from a model to its scores of the pairs, which raises ModelError if one is no number."""
    pairs = data.pairs()
    return lambda model: checked_scores(adapter.score(model, precision)(pairs), pairs)


def standardize_start(job: Job[Any, Any], model: Any, inputs: TrainingInputs, choice: PrecisionChoice) -> str:
    """Spread a start whose texts lie close together, if that is asked for; return in words what was done."""
    method = job.settings.standardize
    if method == "none":  # so that no texts are read for it
        return ""
    description = standardize(model, training_texts(inputs.dataset, FITTED), method, precision=choice.precision)
    if description:
        logger.info(description)
    return description


def training_texts(dataset: Any, rows: int) -> list[str]:
    """Return the texts of ``rows`` rows, spread evenly over the training data."""
    if isinstance(dataset, dict):
        # Rows of all objectives, the same number of each.
        return [
            text
            for objective_dataset in dataset.values()
            for text in training_texts(objective_dataset, -(-rows // len(dataset)))
        ]
    columns = dataset[np.unique(np.linspace(0, len(dataset) - 1, rows).astype(int)).tolist()]
    # Columns of labels and row numbers hold no texts.
    return [text for column in columns.values() if column and isinstance(column[0], str) for text in column]
