"""The run of every method: take the folder, build, evaluate, train, save, evaluate again, and record it all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from samesense.data.examples import Examples
from samesense.data.tuples.data import TupleData
from samesense.encoder.assembly.vocabulary import reads_all_alike, unknown_share
from samesense.encoder.forward.precision import PrecisionChoice
from samesense.encoder.maps.standardize import FITTED
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import stage
from samesense.execution.ranks import is_main, world_size
from samesense.execution.timing import Laps
from samesense.metrics import paired_bootstrap
from samesense.recipes.held_out.cross_validation import SPLIT_SEED
from samesense.recipes.held_out.sets import Sets
from samesense.recipes.run import run_folder
from samesense.recipes.run.earlier_run import REFIT
from samesense.recipes.run.evaluation_phase import StartOfRun, evaluate_saved, measure_start
from samesense.recipes.run.fold_runs import curve_out_of_fold, stop_early, train_folds, training_texts
from samesense.recipes.run.job import Build, Job, Prepare, TrainingInputs
from samesense.recipes.run.model_adapters import adapter_of, start_settings
from samesense.recipes.run.outcome.conclude import check_outcome, conclude, some_texts
from samesense.recipes.run.outcome.learning_curve import Train, settings_of_part
from samesense.recipes.run.outcome.measure import Measured, rows_of
from samesense.recipes.run.outcome.standardized_start import StandardizedStart, better_standardized_start
from samesense.recipes.run.outcome.unbiased import held_out_scores, keep_held_out, scores_of_start, unbiased_scores
from samesense.recipes.run.training_phase import Training, train_or_keep_start
from samesense.recipes.run.training_run import TrainingRun
from samesense.recipes.settings import EncoderSettings
from samesense.reports import append_results
from samesense.reports.run_verdict import Verdict
from samesense.results.results import Results
from samesense.training import manifest
from samesense.training.batches import check_fills_step
from samesense.training.fit import TrainOutput, check_settings, check_trainable, pick_precision
from samesense.training.step_scores import STEP_SCORES, StopAtStep, read_step_scores

logger = logging.getLogger(__name__)

WARN_UNKNOWN = 0.02
"""Share of tokens that a tokenizer does not know from which on a run warns."""


def run(
    job: Job[Any, Any],
    prepare: Prepare,
    *,
    build: Build | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> TrainingRun:
    """Train, keep the best checkpoint, evaluate on test, and leave ``output/model`` with all that led to it beside it.

    ``prepare`` gives, for the start model and the job, what is trained on. ``build`` makes the start model; ``None``
    opens the one that the settings name. Under ``torchrun`` every process calls this; the first one writes, logs and
    evaluates on test. Where a run could not end well, it raises before the first step.
    """
    laps = Laps(job.begun)
    job = check_job(job, build)
    settings = job.settings
    output = job.output
    adapter = adapter_of(job.settings)
    sets = job.sets()
    check_outcome(job, sets)
    record = _describe_run(job)
    before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
    with stage(f"loading {settings.model}"):
        model = adapter.build(settings) if build is None else build(job)
    inputs = _prepare_inputs(model, job, prepare)
    with stage("measuring which arithmetic is faster"):
        choice = _choose_precision(before, model, inputs, settings)
    record |= {"summary": list(inputs.summary), "precision": list(choice)}
    with run_folder.locked(output), run_folder.cleared_if_refused(output, resume=resume):
        # Once more, as another run may have ended since.
        before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
        record = run_folder.begin(output, record, before)
        start_line = f"model {settings.model}, {adapter.describe(model, settings)}"
        _log_start(model, inputs, [start_line, f"arithmetic: {choice.precision} ({choice.reason})"])
        laps.count("loading")
        texts = some_texts(sets, partial(training_texts, inputs.dataset)) if job.concludes else []
        # Before the training, which changes the model in place.
        start = measure_start(adapter, model, settings, sets, texts) if is_main() else None
        laps.count("evaluation")
        out_of_fold = None
        if job.cross_validation is not None:
            job = _adapt_learning_rate(job, start, record)
            out_of_fold = train_folds(job, prepare, build, choice)
            laps.count("cross-validation")
            if out_of_fold is None:
                return _end_in_folds(output, record, choice, laps)
            inputs = stop_early(job, inputs, out_of_fold)
            record[run_folder.CHOSEN_SHARE] = out_of_fold.weight_share
        trained = run_folder.finished_training(output, before)
        if trained is None:
            training = Training(job, model, inputs, choice, sets, record, laps, resume)
            trained = train_or_keep_start(training, start)
        # Processes other than the first have no part in what follows.
        if trained.interrupted or not is_main():
            if is_main():
                run_folder.end(output, record, trained, {})
            return TrainingRun(output, trained, Results(), laps.seconds)
        retraining = _Retraining(
            partial(_train_on_part, job, sets, prepare, build), partial(_train_on_all, job, prepare, build, trained)
        )
        return _finish(job, inputs, sets, StartOfRun(start, texts, out_of_fold), trained, record, retraining, laps)


def _end_in_folds(output: Path, record: dict[str, Any], choice: PrecisionChoice, laps: Laps) -> TrainingRun:
    """End a run that was interrupted before its own training."""
    stopped = TrainOutput(steps=0, seconds=0.0, precision=choice.precision, interrupted=True)
    run_folder.end(output, record, stopped, {})
    return TrainingRun(output, stopped, Results(), laps.seconds)


def _adapt_learning_rate(job: Job[Any, Any], start: Measured | None, record: dict[str, Any]) -> Job[Any, Any]:
    """Return the job with another learning rate, noted in its manifest, if its start was never tuned for sentences."""
    rate = job.cross_validation.untuned_start_rate if job.cross_validation else None
    if rate is None or start is None or not start.untuned:
        return job
    logger.info(f"learning rate {rate:g}: the start was never tuned for sentences; `learning_rate` overrides")
    record[run_folder.LEARNING_RATE] = rate
    return replace(job, settings=job.settings.model_copy(update={"learning_rate": rate}))


def _choose_precision(
    before: Mapping[str, Any] | None, model: Any, inputs: TrainingInputs, settings: EncoderSettings
) -> PrecisionChoice:
    """Return the arithmetic of a run: of one that goes on, the same as before."""
    if before:
        return PrecisionChoice(*before["precision"])
    return pick_precision(model, inputs.dataset, settings, settings.max_seq_length)


@dataclass(frozen=True)
class _Retraining:
    """The trainings that follow once the model of a run has been evaluated."""

    on_part: Train  # on a part of the data, for a learning curve
    on_all: Callable[[], bool]  # on the pairs that were held out too; False if that was interrupted


def _finish(
    job: Job[Any, Any],
    inputs: TrainingInputs,
    sets: Sets,
    start: StartOfRun,
    trained: TrainOutput,
    record: dict[str, Any],
    retraining: _Retraining,
    laps: Laps,
) -> TrainingRun:
    """Evaluate the saved model, conclude, and write down how the run ended."""
    output = job.output
    unbiased = unbiased_scores(job, sets, start.out_of_fold)
    end, results, manifest_entries = evaluate_saved(job, inputs, sets, start, unbiased)
    laps.count("evaluation")
    # Before the conclusion, which may train for hours and be interrupted.
    append_results(output / run_folder.RESULTS, results)
    verdict = None
    standardized = None
    calibrates_on = 0
    if job.concludes:
        curve = curve_out_of_fold(job, sets, start.measured, start.out_of_fold)
        verdict = conclude(job, sets, start.measured, end, trained, record, retraining.on_part, curve)
        if verdict is None:  # interrupted while a part for the learning curve was trained
            return TrainingRun(output, replace(trained, interrupted=True), Results(results), laps.seconds)
        if not verdict.keep_reason:
            calibrates_on = keep_held_out(job, held_out_scores(job, sets, end, unbiased))
        elif start.measured is not None:
            kept_start = start.measured
            standardized = better_standardized_start(
                job, sets, start.measured, partial(training_texts, inputs.dataset, FITTED)
            )
            if standardized is not None:
                kept_start = standardized.measured
                verdict = replace(verdict, keep_reason=f"{verdict.keep_reason}; it is the {standardized.reason}")
                manifest_entries |= {run_folder.STANDARDIZED_START: standardized.description}
                append_results(output / run_folder.RESULTS, rows_of(kept_start, sets.compared))
            calibrates_on = keep_held_out(job, scores_of_start(job, sets, kept_start))
        if job.refit and not verdict.keep_reason:
            is_refitted = retraining.on_all()
            laps.count("training on all pairs")
            if not is_refitted:
                return TrainingRun(output, replace(trained, interrupted=True), Results(results), laps.seconds)
            examples = f"{len(job.all_examples()):,} {_unit(job)}"
            verdict = replace(verdict, refit=f"model/ was then trained on all {examples}, by the same settings")
        manifest_entries |= {"verdict": verdict.to_dict()}
    run_folder.end(output, record, trained, manifest_entries, _choose_replacement(job, verdict, standardized))
    laps.count("evaluation")
    return TrainingRun(output, trained, Results(results), laps.seconds, verdict, calibrates_on)


def _describe_run(job: Job[Any, Any]) -> dict[str, Any]:
    """Return the manifest of a run that begins; ConfigError for folds where several processes train."""
    guards = {f"guard {guard.name}": guard for guard in job.guards}
    test = getattr(job.data, "test", None) if job.test is None else job.test
    data = run_folder.data_identity({"train": job.data, "dev": job.dev, "test": test, **guards})
    settings = job.settings.model_dump()
    cross_validation = job.cross_validation
    if cross_validation is not None:
        if world_size() > 1:
            raise ConfigError("Cross-validation trains one model after the other, in one process. Leave torchrun out.")
        settings |= {"folds": cross_validation.name, "folds_select": cross_validation.selects, "split_seed": SPLIT_SEED}
    return manifest.describe(job.method, settings, data)


def _choose_replacement(
    job: Job[Any, Any], verdict: Verdict | None, standardized: StandardizedStart | None
) -> Callable[[Path], object] | None:
    """Return what puts the start, or the model trained on all pairs, in the place of the trained model, if either."""
    if verdict is not None and verdict.keep_reason:
        model = None if standardized is None else standardized.model
        return lambda folder: run_folder.take_start(folder.parent, partial(_save_start, job, model))
    if verdict is not None and verdict.refit:
        return lambda folder: run_folder.take_refitted(folder.parent)
    return None


def _save_start(job: Job[Any, Any], model: Any, folder: Path) -> None:
    """Save a start; ``None`` is the one that the settings name."""
    save(adapter_of(job.settings).build(job.settings) if model is None else model, folder, overwrite=True)


def check_job(job: Job[Any, Any], build: Build | None) -> Job[Any, Any]:
    """Return a job with the settings of its start, unless ``build`` makes it; raises if the trainer refuses them."""
    check_settings(job.settings)
    if build is not None:
        return job
    return replace(job, settings=start_settings(job.settings))


def _prepare_inputs(model: Any, job: Job[Any, Any], prepare: Prepare) -> TrainingInputs:
    """Return what is trained on, while no folder is taken.

    ConfigError if several processes would train on nothing, or the model cannot be trained by the settings.
    """
    check_trainable(model, job.settings)
    with stage("preparing the examples"):
        inputs = prepare(model, job)
        inputs = replace(inputs, summary=[*inputs.summary, *job.remarks])
    check_fills_step(inputs.dataset, inputs.batches, job.settings.batch_size)
    return inputs


def _train_on_part(
    job: Job[Any, Any],
    sets: Sets,
    prepare: Prepare,
    build: Build | None,
    shard: Examples,
    folder: Path,
    **options: bool,
) -> TrainingRun:
    """Train on a part of the data as the run did on all."""
    settings = settings_of_part(job.settings, len(shard) / len(job.data))
    part_job = replace(
        job,
        data=shard,
        settings=settings,
        output=folder,
        dev=sets.selecting,
        test=None,
        guards=(),
        concludes=False,
        begun=time.perf_counter(),
    )
    return run(part_job, lambda model, job: replace(prepare(model, job), after_training=None), build=build, **options)


def _train_on_all(job: Job[Any, Any], prepare: Prepare, build: Build | None, trained: TrainOutput) -> bool:
    """Train again on what was held out too, for as many steps as dev showed to be useful; False if interrupted.

    That is done in a subfolder, with which an interrupted run goes on.
    """
    examples = job.all_examples()
    settings = job.settings.model_copy(update={"precision": trained.precision, "early_stopping_patience": None})
    share = _share_to_train(job, trained)
    steps = settings.steps(settings.examples(examples))
    folder = job.output / REFIT
    refit_job = replace(
        job,
        data=examples,
        settings=settings,
        output=folder,
        dev=None,
        guards=(),
        concludes=False,
        refit=False,
        begun=time.perf_counter(),
    )

    def prepare_all(model: Any, whole: Job[Any, Any]) -> TrainingInputs:
        inputs = prepare(model, whole)
        if share == 1:
            return inputs
        return replace(inputs, callbacks=[*inputs.callbacks, StopAtStep(round(share * steps))])

    logger.info(f"training on all {len(examples):,} {_unit(job)}, those that were held out too")
    return run_folder.run_or_resume(folder, partial(run, refit_job, prepare_all, build=build))


def _unit(job: Job[Any, Any]) -> str:
    if not isinstance(job.data, TupleData):
        return "pairs"
    return "anchors" if job.data.classes is None else "texts"


def _share_to_train(job: Job[Any, Any], trained: TrainOutput) -> float:
    """Return the share of the steps to train: all, unless dev showed that an earlier state is better than the last.

    The best of many states by few pairs is often an early one by chance, and a training that stops there ends at a
    high learning rate.
    """
    selecting = job.sets().selecting
    if trained.best_step is None or selecting is None:
        return 1.0
    best_share = trained.best_step / trained.steps
    by_step = read_step_scores(job.output / STEP_SCORES)
    last = max(by_step, default=0)
    # With early stopping the last state is not that of the whole training.
    if trained.best_step not in by_step or last != job.settings.steps(job.settings.examples(job.data)):
        return best_share
    labels = np.asarray(selecting.labels, dtype=np.float64)
    difference = paired_bootstrap(by_step[trained.best_step], by_step[last], labels, "spearman")
    return best_share if difference.low > 0 else 1.0


def _log_start(model: Any, inputs: TrainingInputs, lines: Sequence[str]) -> None:
    """Log what is trained on what, and warn if the tokenizer does not know much of the training texts.

    ModelError if it reads all of them alike.
    """
    for line in lines:
        logger.info(line)
    texts = training_texts(inputs.dataset, 500)
    unknown = unknown_share(model, texts)
    if unknown == 1 and reads_all_alike(model, texts):
        raise ModelError(
            "The model's tokenizer knows no token of the texts that were looked at, and reads them all as one and the "
            "same. Take a model that knows their language or signs."
        )
    if unknown >= WARN_UNKNOWN:
        logger.warning(
            f"{unknown:.0%} of the tokens of the texts are unknown to the model's tokenizer, which reads them all as "
            "one and the same: take a model of their language"
        )
    for line in inputs.summary:
        text = line.removeprefix("warning: ")
        logger.log(logging.INFO if text == line else logging.WARNING, text)
