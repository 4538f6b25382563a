"""The training of a run: what selects, the fit, and the model that is saved; or the start, where nothing is trained."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Training:
    """A training that begins or goes on.

    Attributes:
        model: the start, which is trained in place.
        record: of the manifest; it is given what was done to the model.
        resume: whether to go on from a checkpoint.
    """

    job: Job[Any, Any]
    model: Any
    inputs: TrainingInputs
    choice: PrecisionChoice
    sets: Sets
    record: dict[str, Any]
    laps: Laps
    resume: bool

    def standardize(self) -> None:
        """Standardize the start, where that is asked for."""
        self.record["start"] = standardize_start(self.job, self.model, self.inputs, self.choice)

    def save(self, trained: TrainOutput) -> None:
        """Put the model into its folder."""
        run_folder.save_model(self.job.output, self.record, trained, partial(save, self.model))


def train_or_keep_start(training: Training, start: Measured | None) -> TrainOutput:
    """Train, or save the start where there is a reason to train nothing."""
    reason = _reason_for_no_training(training.job, training.sets, start, training.record)
    if not reason:
        return _train(training)
    training.standardize()
    if is_main():
        logger.info(reason)
    untrained = TrainOutput(steps=0, seconds=0.0, precision=training.choice.precision, interrupted=False)
    training.save(untrained)
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


def _prepare_selection(training: Training) -> _Selection:
    job = training.job
    selecting = training.sets.selecting
    if selecting is None:
        return _Selection()
    adapter = adapter_of(job.settings)
    score = dev_score(adapter, selecting, training.choice.precision)
    if not job.concludes:
        return _Selection(score, score)
    # The scores of the steps are kept, for the verdict.
    pairs_score = score_of_pairs(adapter, selecting, training.choice.precision)
    recorder = StepScores(job.output / STEP_SCORES, pairs_score, resume=training.resume)
    return _Selection(score, lambda model: spearman(recorder.record(model), selecting.labels), (recorder,))


def _train(training: Training) -> TrainOutput:
    """Train, or go on with it, and put the model into its folder."""
    job = training.job
    settings = job.settings
    model = training.model
    laps = training.laps
    if training.inputs.before_training is not None:
        training.inputs.before_training()
        laps.count("teachers")
    training.standardize()
    share = training.record.get(run_folder.CHOSEN_SHARE, 1.0)
    # A copy, as training changes the weights in place.
    start = copy_weights(model) if settings.merge or share < 1 else {}
    selection = _prepare_selection(training)
    set_seed(settings.seed)  # a loss may have weights of its own
    trained = training.inputs.fit(
        model,
        settings.model_copy(update={"precision": training.choice.precision}),
        job.output,
        dev_score=selection.fit_score,
        resume=training.resume,
        callbacks=selection.callbacks,
    )
    laps.add(trained.spent)
    if is_main() and not trained.interrupted:
        if settings.merge and selection.score is not None:
            training.record["merge"] = asdict(merge(model, start, selection.score, training.sets.verdict))
            laps.count("evaluation")
        if share < 1:
            interpolate(model, start, copy_weights(model), share)
        with stage("saving the model"):
            training.save(trained)
    laps.count("saving")
    return trained


def dev_score(adapter: Adapter, dev: PairData, precision: Precision = "float32") -> Callable[[Any], float]:
    """Return a function from a model to the Spearman of its scores on ``dev``."""
    score = score_of_pairs(adapter, dev, precision)
    return lambda model: spearman(score(model), dev.labels)
