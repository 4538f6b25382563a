"""The run of every method: take the folder, build, evaluate, train, save, evaluate again, and record it all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from torch import nn
from transformers import TrainerCallback, set_seed

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.encoder.precision import Choice
from samesense.encoder.standardize import FITTED, standardize
from samesense.encoder.storage import save
from samesense.encoder.vocabulary import unknown_share
from samesense.errors import MissingExtraError
from samesense.evaluation.sts import evaluate_pairs, evaluate_sts
from samesense.execution.progress import Laps, stage
from samesense.execution.ranks import is_main
from samesense.inference.models.load import load
from samesense.recipes import run_folder
from samesense.recipes.matryoshka import described, evaluate_widths
from samesense.recipes.model_adapters import Adapter, adapter_of, start_settings
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.training_run import TrainingRun
from samesense.reports import append_results
from samesense.results import Results
from samesense.training import manifest
from samesense.training.batches import Batches
from samesense.training.fit import TrainOutput, check_settings, fit, pick_precision
from samesense.training.mixing import Mix
from samesense.types import Precision, Result

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

logger = logging.getLogger(__name__)

Data = TypeVar("Data", bound=Examples)
Settings = TypeVar("Settings", bound=EncoderSettings)

WARN_UNKNOWN = 0.02
"""Share of tokens that a tokenizer does not know from which on a run warns."""


@dataclass(frozen=True, kw_only=True)
class Job(Generic[Data, Settings]):
    """What is trained on what."""

    method: str  # its name in the manifest
    data: Data  # what is trained on
    settings: Settings  # of the method
    output: Path  # run folder; holds model/, manifest.json, history.jsonl and results.jsonl
    # labelled pairs; the checkpoint with the best Spearman on them is kept. None keeps the last state
    dev: PairData | None = None
    test: PairData | None = None  # labelled pairs on which the model is evaluated before and after
    begun: float = field(default_factory=time.perf_counter)  # when it was asked for; its times count from there


@dataclass(frozen=True, kw_only=True)
class TrainingInputs:
    """What a model is trained on, and how."""

    dataset: Dataset | DatasetDict  # text columns, then label where the loss takes one; of several objectives, by name
    # makes the loss; called once the seed is set, since a loss may have weights of its own
    loss: Callable[[], nn.Module]
    summary: Sequence[str] = ()  # lines for people and for the manifest: what was read, formed and left out
    batches: Batches | Mix = "random"  # how examples are put into batches
    collator: Callable[..., Any] | None = None  # puts examples into a batch, where the trainer's own does not do
    callbacks: Sequence[TrainerCallback] = ()  # of the trainer
    # what takes long, and is done once the folder is taken, so that an interrupted run can be resumed
    before_training: Callable[[], None] | None = None
    # evaluates the saved model further; returns results, and what the manifest shall hold besides
    after_training: Callable[[], tuple[list[Result], dict[str, Any]]] | None = None


def run(
    job: Job[Any, Any],
    prepare: Callable[[Any, Job[Any, Any]], TrainingInputs],
    *,
    build: Callable[[Job[Any, Any]], Any] | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> TrainingRun:
    """Train, keep the best checkpoint, evaluate on test, and leave ``output/model`` with all that led to it beside it.

    ``prepare`` gives, for the start model and the job, what is trained on. ``build`` makes the start model; ``None``
    opens the one that the settings name. Under ``torchrun`` every process calls this; the first one writes, logs and
    evaluates on test. Where a run could not end well, it raises before the first step.
    """
    laps = Laps(job.begun)
    job = checked(job, build)
    settings, output, adapter = job.settings, job.output, adapter_of(job.settings)
    data = run_folder.data_identity({"train": job.data, "dev": job.dev, "test": job.test})
    record = manifest.describe(job.method, settings.model_dump(), data)
    before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
    with stage(f"loading {settings.model}"):
        model = adapter.build(settings) if build is None else build(job)
    with stage("preparing the examples"):
        inputs = prepare(model, job)
    with stage("measuring which arithmetic is faster"):
        choice = (
            Choice(*before["precision"])
            if before
            else pick_precision(model, inputs.dataset, settings, settings.max_seq_length)
        )
    record |= {"summary": list(inputs.summary), "precision": list(choice)}
    with run_folder.locked(output):
        run_folder.check(output, record, resume=resume, overwrite=overwrite)  # another run may have ended since
        record = run_folder.begin(output, record, before)
        _log_start(model, inputs, [f"model {settings.model}, {adapter.describe(model, settings)}", _arithmetic(choice)])
        test = job.test if is_main() else None
        laps.count("loading")
        with stage("evaluation of the start on test"):
            results = [] if test is None else adapter.evaluate_start(model, settings, test)
        laps.count("evaluation")
        trained = run_folder.finished_training(output, before)
        if trained is None:
            if inputs.before_training is not None:
                inputs.before_training()
                laps.count("teachers")
            record |= {"start": _standardize(job, model, inputs, choice)}
            trained = _train(job, adapter, model, inputs, choice, resume=resume)
            laps.add(trained.spent)
            if is_main() and not trained.interrupted:
                with stage("saving the model"):
                    run_folder.save_model(output, record, trained, partial(save, model))
            laps.count("saving")
        if is_main():
            more: dict[str, Any] = {}
            if not trained.interrupted:
                with stage("evaluation"):
                    further, more = _evaluate(job, inputs)
                results += further
                append_results(output / run_folder.RESULTS, results)
            run_folder.end(output, record, trained, more)
        laps.count("evaluation")
        return TrainingRun(output, trained, Results(results), laps.seconds)


def checked(job: Job[Any, Any], build: Callable[[Job[Any, Any]], Any] | None) -> Job[Any, Any]:
    """Return a job with the settings of its start, unless ``build`` makes it; raises if the trainer refuses them."""
    check_settings(job.settings)
    return job if build is not None else replace(job, settings=start_settings(job.settings))


def _arithmetic(choice: Choice) -> str:
    return f"arithmetic: {choice.precision} ({choice.reason})"


def _standardize(job: Job[Any, Any], model: Any, inputs: TrainingInputs, choice: Choice) -> str:
    """Spread a start whose texts lie close together, if that is asked for; return in words what was done."""
    how = job.settings.standardize
    if how == "none":  # so that no texts are read for it
        return ""
    said = standardize(model, _texts(inputs.dataset, FITTED), how, precision=choice.precision)
    if said:
        logger.info(said)
    return said


def _train(
    job: Job[Any, Any], adapter: Adapter, model: Any, inputs: TrainingInputs, choice: Choice, *, resume: bool
) -> TrainOutput:
    """Train in place, or go on with it."""
    set_seed(job.settings.seed)  # a loss may have weights of its own
    return fit(
        model,
        inputs.dataset,
        inputs.loss(),
        job.settings.model_copy(update={"precision": choice.precision}),
        job.output,
        dev_score=None if job.dev is None else dev_score(adapter, job.dev, choice.precision),
        batches=inputs.batches,
        collator=inputs.collator,
        resume=resume,
        max_length=job.settings.max_seq_length,
        callbacks=inputs.callbacks,
    )


def _evaluate(job: Job[Any, Any], inputs: TrainingInputs) -> tuple[list[Result], dict[str, Any]]:
    """Return the results of the saved model, and what the manifest shall hold of it."""
    results: list[Result] = []
    if job.test is not None:
        saved = load(job.output, precision="float32", seed=job.settings.seed)
        results = evaluate_pairs(saved, job.test)
    further, more = ([], {}) if inputs.after_training is None else inputs.after_training()
    cut, section = _at_widths(job)
    sections = {**more.get(run_folder.SECTIONS, {}), **section}
    return [*results, *further, *cut], more | ({run_folder.SECTIONS: sections} if sections else {})


def _at_widths(job: Job[Any, Any]) -> tuple[list[Result], dict[str, str]]:
    """Return the results at the widths that were trained too, and a section of the card; by dev if there is no test."""
    widths, data = job.settings.matryoshka, job.dev if job.test is None else job.test
    if not widths or data is None:
        return [], {}
    saved = load(job.output, precision="float32", seed=job.settings.seed)
    results = evaluate_widths(saved, data, widths)
    known = [] if job.test is None else [row for row in results if row.model == saved.name]  # among those on test
    return [row for row in results if row not in known], {"Dimensions": described(results, widths)}


def dev_score(adapter: Adapter, dev: PairData, precision: Precision = "float32") -> Callable[[Any], float]:
    """Return what gives the Spearman of a model's scores on ``dev``."""

    def spearman(model: Any) -> float:
        score = adapter.score(model, precision)
        found = evaluate_sts(score, dev.pairs(), dev.labels, dataset=dev.source, intervals=False, metrics=("spearman",))
        return found[0].value

    return spearman


def as_dataset(columns: Mapping[str, Sequence[Any]]) -> Dataset:
    """Return what the trainer takes: text columns, then ``label`` where there is one."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict(dict(columns))


def _texts(dataset: Any, rows: int) -> list[str]:
    """Return the texts of so many rows of the training data, evenly from all of them."""
    if isinstance(dataset, dict):
        return [text for part in dataset.values() for text in _texts(part, -(-rows // len(dataset)))]
    chosen = dataset[np.unique(np.linspace(0, len(dataset) - 1, rows).astype(int)).tolist()]
    return [text for column in chosen.values() if column and isinstance(column[0], str) for text in column]


def _log_start(model: Any, inputs: TrainingInputs, lines: Sequence[str]) -> None:
    """Log what is trained on what, and warn if the tokenizer does not know much of the training texts."""
    for line in lines:
        logger.info(line)
    unknown = unknown_share(model, _texts(inputs.dataset, 500))
    if unknown >= WARN_UNKNOWN:
        logger.warning(
            f"{unknown:.0%} of the tokens of the texts are unknown to the model's tokenizer, which reads them all as "
            "one and the same: take a model of their language"
        )
    for line in inputs.summary:
        logger.info(line)
