"""How many steps a training takes, and how long: a few of them are timed on a copy that is thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from transformers import TrainerCallback, set_seed

from samesense.data.sampling import spread_over
from samesense.execution.progress import stage, without_bars
from samesense.execution.ranks import world_size
from samesense.execution.timing import seconds_taken, time_summary
from samesense.execution.trainer import CHECKPOINT_SECONDS
from samesense.recipes.held_out.cross_validation import WEIGHT_SHARES, CrossValidation
from samesense.recipes.held_out.sets import Sets
from samesense.recipes.run.fold_runs import what_folds_select
from samesense.recipes.run.job import Build, Job, Prepare, TrainingInputs
from samesense.recipes.run.model_adapters import adapter_of, start_settings
from samesense.recipes.run.outcome.conclude import check_outcome
from samesense.recipes.run.outcome.requirements import COST
from samesense.recipes.run.runner import check_job
from samesense.scratch import ScratchFolder
from samesense.training.fit import pick_precision
from samesense.types import Pair

TIMED_STEPS = 4
"""Steps that are timed, after one that warms up."""

TIMED_PAIRS = 200
"""Labelled pairs of a data set whose scoring is timed."""


def estimate(job: Job[Any, Any], prepare: Prepare, *, build: Build | None = None) -> list[str]:
    """Return, in words, the steps of a run and an estimate of its time; raises as :func:`measure_time`."""
    return measure_time(job, prepare, build=build).lines()


def measure_time(job: Job[Any, Any], prepare: Prepare, *, build: Build | None = None) -> Estimate:
    """Return the steps of a run and an estimate of its time, that of its folds included.

    All that the run opens is opened, so that it raises where the run would raise before its first step. Teachers are
    asked about a part of the sentences only.
    """
    job = check_job(job, build)
    sets = job.sets()
    check_outcome(job, sets)
    settings = job.settings
    adapter = adapter_of(job.settings)
    models = 1 + (len(job.cross_validation.folds) if job.cross_validation else 0)
    seconds = {}
    with ScratchFolder() as scratch, stage("measuring a few steps"):
        started = time.perf_counter()
        sample_job = replace(job, data=_sample_data(job), output=Path(scratch))
        model = adapter.build(settings) if build is None else build(sample_job)
        inputs = prepare(model, sample_job)
        choice = pick_precision(model, inputs.dataset, settings, settings.max_seq_length)
        seconds["loading"] = models * (time.perf_counter() - started)
        if inputs.before_training is not None:
            seconds["teachers"] = seconds_taken(inputs.before_training) * len(job.data) / len(sample_job.data)
        examples = _count_examples(job, sample_job, inputs)
        steps = settings.steps(examples)
        along_steps = steps // settings.steps_between_evaluations(examples)
        measured = _time_step(sample_job, model, inputs, choice.precision)
        score = adapter.score(model, choice.precision)
        evaluations = _count_evaluations(job, along_steps)
        before_and_after = 2 * sum(_time_scoring(score, compared_set.pairs()) for compared_set in sets.compared)
        trainings = _count_trainings(job)
        seconds["training"] = measured.step * steps * trainings
        seconds["evaluation"] = evaluations * _time_scoring(score, _pairs_along_steps(job, sets)) + before_and_after
        # Where dev selects, each evaluation writes a checkpoint; a training on all data after it selects nothing.
        checkpoints = along_steps if sets.selecting is not None else int(seconds["training"] / CHECKPOINT_SECONDS)
        seconds["saving"] = measured.checkpoint * (1 + checkpoints)
    if settings.learning_curve:
        seconds["learning curve"] = COST * (seconds["training"] + seconds["saving"] + seconds["evaluation"])
    return Estimate(steps, examples, evaluations, measured.step, seconds, settings.batch_size, job.cross_validation)


def _count_examples(job: Job[Any, Any], sample_job: Job[Any, Any], inputs: TrainingInputs) -> int:
    """Return the number of examples of an epoch."""
    if inputs.batches == "label-aware":  # which take fewer
        return int(job.settings.examples(job.data))
    # A loss may make more or fewer examples than there are rows, of which a sample or several data sets say nothing.
    if sample_job.data is not job.data or isinstance(inputs.dataset, dict):
        return len(job.data)
    return len(inputs.dataset)


def _count_trainings(job: Job[Any, Any]) -> float:
    """Return how often a run trains on all rows, with trainings on a part of them by their share."""
    trainings = 1.0
    if job.cross_validation is not None:
        # k folds together train on k - 1 times all rows, and the run on all rows makes it k times.
        trainings = float(len(job.cross_validation.folds))
    if job.refit:
        # Once more, on those that were held out too.
        trainings += len(job.all_examples()) / len(job.data)
    return trainings


def _pairs_along_steps(job: Job[Any, Any], sets: Sets) -> list[Pair]:
    """Return the pairs that are scored along the training: those of dev, or all pairs out of fold."""
    if job.cross_validation is not None:
        pairs: list[Pair] = job.data.pairs()
        return pairs
    return [] if sets.selecting is None else sets.selecting.pairs()


def _count_evaluations(job: Job[Any, Any], along_steps: int) -> int:
    """Return how often a run evaluates along its training: on dev, or out of fold."""
    if job.dev is not None:
        return 1 + along_steps  # the start too
    if job.cross_validation is None:
        return 0
    selects = what_folds_select(job.cross_validation, job.settings)
    return {"nothing": 1, "steps": along_steps, "weights": len(WEIGHT_SHARES)}[selects]


@dataclass(frozen=True)
class Estimate:
    """Steps of a run, and the time that it takes.

    Attributes:
        steps: of the training on all examples.
        examples: of an epoch.
        evaluations: along the steps.
        step_seconds: of one step.
        seconds: of all trainings, by what they are spent on.
        batch_size: of each process.
        dealt: the folds, if it is cross-validated.
    """

    steps: int
    examples: int
    evaluations: int
    step_seconds: float
    seconds: dict[str, float]
    batch_size: int
    dealt: CrossValidation | None = None

    def lines(self) -> list[str]:
        """Return the estimate in words."""
        evaluated = "on dev" if self.dealt is None else "of each fold"
        trainings = ""
        if self.dealt is not None:
            trainings = f"; {len(self.dealt.folds)} folds, then a run on all"
        evaluations = "1 evaluation" if self.evaluations == 1 else f"{self.evaluations} evaluations"
        return [
            f"steps: {self.steps:,} of {min(self.batch_size * world_size(), self.examples):,} examples each, of "
            f"{self.examples:,}; {evaluations} {evaluated}{trainings}",
            f"estimate of the {time_summary(self.seconds)}; by {TIMED_STEPS} steps of {self.step_seconds:.2g} s on "
            "this machine",
        ]


class StepTime(NamedTuple):
    """The seconds of a step, and of a checkpoint."""

    step: float
    checkpoint: float


def time_step(job: Job[Any, Any], prepare: Prepare) -> StepTime:
    """Time the steps of a run."""
    job = replace(job, settings=start_settings(job.settings))
    model = adapter_of(job.settings).build(job.settings)
    inputs = prepare(model, job)
    choice = pick_precision(model, inputs.dataset, job.settings, job.settings.max_seq_length)
    return _time_step(job, model, inputs, choice.precision)


def _sample_data(job: Job[Any, Any]) -> Any:
    """Return the data, or a part of them where teachers are to read every sentence."""
    count = (2 + TIMED_STEPS) * job.settings.batch_size
    if not getattr(job.settings, "embedding_models", ()) or len(job.data) <= count:
        return job.data
    return job.data.take(spread_over(len(job.data), count))


def _time_step(job: Job[Any, Any], model: Any, inputs: TrainingInputs, precision: str) -> StepTime:
    last = 1 + TIMED_STEPS
    overrides = {
        # One evaluation, at the last step, so that none falls between the steps that are timed.
        "max_steps": last,
        "eval_steps": last,
        # Without a dev score, `fit` refuses to stop early.
        "early_stopping_patience": None,
        "precision": precision,
        # A trial is no run to be tracked.
        "report_to": (),
    }
    set_seed(job.settings.seed)
    clock = _Clock()
    output = inputs.fit(model, job.settings.model_copy(update=overrides), job.output, callbacks=[clock])
    # `fit` keeps Ctrl-C to itself, to write a checkpoint, and only reports it.
    if output.interrupted:
        raise KeyboardInterrupt
    # From the end of the first step on, which warms up.
    return StepTime((clock.times[-1] - clock.times[0]) / TIMED_STEPS, _time_checkpoint(model))


def _time_checkpoint(model: Any) -> float:
    """Return the seconds that a checkpoint takes: the weights, and two numbers of the optimizer for each."""
    with ScratchFolder() as folder, without_bars():
        return 3 * seconds_taken(lambda: model.save_pretrained(folder, create_model_card=False))


class _Clock(TrainerCallback):
    """Notes when each step ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())


def _time_scoring(score: Callable[[Sequence[Pair]], Any], pairs: Sequence[Pair]) -> float:
    """Return the seconds that scoring all pairs takes, by those of some."""
    if not pairs:
        return 0.0
    sample = [pairs[index] for index in spread_over(len(pairs), TIMED_PAIRS)]
    return seconds_taken(lambda: score(sample)) * len(pairs) / len(sample)
