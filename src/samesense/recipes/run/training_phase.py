"""The training of a run: what selects, the fit, and the model that is saved; or the start, where nothing is trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

from transformers import TrainerCallback, set_seed

from samesense.data import PairData
from samesense.encoder.assembly.merge import copy_weights, interpolate
from samesense.encoder.forward.precision import PrecisionChoice
from samesense.encoder.saving.storage import save
from samesense.execution.progress import stage
from samesense.execution.ranks import is_main, world_size
from samesense.execution.timing import Laps
from samesense.metrics import spearman
from samesense.recipes.held_out.sets import Sets
from samesense.recipes.run import run_folder
from samesense.recipes.run.fold_runs import score_of_pairs, standardize_start
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.run.model_adapters import Adapter, adapter_of
from samesense.recipes.run.outcome.conclude import keeps_start_in_any_case
from samesense.recipes.run.outcome.measure import Measured
from samesense.recipes.run.outcome.merge import merge
from samesense.training.fit import TrainOutput
from samesense.training.step_scores import STEP_SCORES, StepScores
from samesense.types import Precision

logger = logging.getLogger(__name__)

FOLDS_CHOSE_START = "the folds chose the start: nothing is trained on all pairs"
KEEPS_START = (
    "nothing is trained: no labelled pairs and no held-out documents could show whether training helps, and the start "
    "is tuned for sentences already. Give `test` FILE, or set `keep_start` never"
)
"""Why a run trains nothing."""


def _reason_for_no_training(job: Job[Any, Any], sets: Sets, start: Measured | None, record: Mapping[str, Any]) -> str:
    """Return why nothing is trained; empty where something is."""
    if not record.get(run_folder.CHOSEN_SHARE, 1.0):
        return FOLDS_CHOSE_START
    # Only the first process measures the start, and all must train alike.
    if world_size() == 1 and keeps_start_in_any_case(job, sets, start):
        return KEEPS_START
    return ""


def train_or_keep_start(
    job: Job[Any, Any],
    model: Any,
    inputs: TrainingInputs,
    choice: PrecisionChoice,
    sets: Sets,
    start: Measured | None,
    record: dict[str, Any],
    laps: Laps,
    *,
    resume: bool,
) -> TrainOutput:
    """Train, or save the start where there is a reason to train nothing."""
    reason = _reason_for_no_training(job, sets, start, record)
    if reason:
        return _save_untrained(job, model, inputs, choice, record, reason)
    return _train(job, model, inputs, choice, sets, record, laps, resume=resume)


def _save_untrained(
    job: Job[Any, Any],
    model: Any,
    inputs: TrainingInputs,
    choice: PrecisionChoice,
    record: dict[str, Any],
    reason: str,
) -> TrainOutput:
    """Put the start into the folder of the model; ``record`` is given what was done to it."""
    record["start"] = standardize_start(job, model, inputs, choice)
    if is_main():
        logger.info(reason)
    untrained = TrainOutput(steps=0, seconds=0.0, precision=choice.precision, interrupted=False)
    run_folder.save_model(job.output, record, untrained, partial(save, model))
    return untrained


class _Selection(NamedTuple):
    """How the selecting pairs are scored; nothing without such pairs.

    Attributes:
        score: returns the Spearman of a model.
        fit_score: the same along the steps of the training, whose scores it may keep.
        callbacks: what keeps them.
    """

    score: Callable[[Any], float] | None = None
    fit_score: Callable[[Any], float] | None = None
    callbacks: tuple[TrainerCallback, ...] = ()


def _prepare_selection(job: Job[Any, Any], sets: Sets, choice: PrecisionChoice, *, resume: bool) -> _Selection:
    if sets.selecting is None:
        return _Selection()
    adapter = adapter_of(job.settings)
    score = dev_score(adapter, sets.selecting, choice.precision)
    if not job.concludes:
        return _Selection(score, score)
    # The scores of the steps are kept, for the verdict.
    pairs_score = score_of_pairs(adapter, sets.selecting, choice.precision)
    recorder = StepScores(job.output / STEP_SCORES, pairs_score, resume=resume)
    return _Selection(score, recorded_score(recorder, sets.selecting), (recorder,))


def _train(
    job: Job[Any, Any],
    model: Any,
    inputs: TrainingInputs,
    choice: PrecisionChoice,
    sets: Sets,
    record: dict[str, Any],
    laps: Laps,
    *,
    resume: bool,
) -> TrainOutput:
    """Train, or go on with it, and put the model into its folder; ``record`` is given what was done to it."""
    if inputs.before_training is not None:
        inputs.before_training()
        laps.count("teachers")
    record["start"] = standardize_start(job, model, inputs, choice)
    share = record.get(run_folder.CHOSEN_SHARE, 1.0)
    # A copy, as training changes the weights in place.
    start = copy_weights(model) if job.settings.merge or share < 1 else {}
    selection = _prepare_selection(job, sets, choice, resume=resume)
    set_seed(job.settings.seed)  # a loss may have weights of its own
    trained = inputs.fit(
        model,
        job.settings.model_copy(update={"precision": choice.precision}),
        job.output,
        dev_score=selection.fit_score,
        resume=resume,
        callbacks=selection.callbacks,
    )
    laps.add(trained.spent)
    if is_main() and not trained.interrupted:
        if job.settings.merge and selection.score is not None:
            record["merge"] = asdict(merge(model, start, selection.score, sets.verdict))
            laps.count("evaluation")
        if share < 1:
            interpolate(model, start, copy_weights(model), share)
        with stage("saving the model"):
            run_folder.save_model(job.output, record, trained, partial(save, model))
    laps.count("saving")
    return trained


def recorded_score(recorder: StepScores, dev: PairData) -> Callable[[Any], float]:
    """Return a function from a model to the Spearman of its scores on ``dev``, which keeps the scores."""
    return lambda model: spearman(recorder.record(model), dev.labels)


def dev_score(adapter: Adapter, dev: PairData, precision: Precision = "float32") -> Callable[[Any], float]:
    """Return a function from a model to the Spearman of its scores on ``dev``."""
    score = score_of_pairs(adapter, dev, precision)
    return lambda model: spearman(score(model), dev.labels)
