"""The evaluation of a run: its start before the training, and the saved model after it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from samesense.encoder.assembly.students import is_made_from_teacher
from samesense.errors import ModelError
from samesense.evaluation.sts import evaluate_pairs, warn_of_reversed_labels
from samesense.execution.progress import stage
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.recipes.held_out.cross_validation import OutOfFold
from samesense.recipes.held_out.pairs import MODEL
from samesense.recipes.held_out.sets import ComparedSet, Sets
from samesense.recipes.run import run_folder
from samesense.recipes.run.job import Job, TrainingInputs
from samesense.recipes.run.model_adapters import Adapter
from samesense.recipes.run.outcome.measure import Measured, UnbiasedScores, measure, rows_of
from samesense.recipes.run.outcome.unbiased import results_by_fold
from samesense.recipes.run.outcome.untuned_start import is_untuned
from samesense.recipes.settings import EncoderSettings
from samesense.reports.run_verdict import CROSS_FITTED, OUT_OF_FOLD
from samesense.reports.tables import markdown
from samesense.types import Result

logger = logging.getLogger(__name__)

COLLAPSED = 0.999
"""Least cosine of random pairs from which on a model gives all texts one vector."""

FEWEST_COSINES = 100
"""Random pairs from which on such cosines are no property of a few texts."""

MATRYOSHKA = "matryoshka"
"""Task of the results at the widths of ``matryoshka``, which are beside those of the model itself."""


@dataclass(frozen=True)
class StartOfRun:
    """What is known of a run before its training."""

    measured: Measured | None  # the start on the sets of the run; None of one whose head is new
    texts: Sequence[str]  # by which the cones are measured
    out_of_fold: OutOfFold | None  # what its folds found, if it has some


def measure_start(
    adapter: Adapter, model: Any, settings: EncoderSettings, sets: Sets, texts: Sequence[str]
) -> Measured | None:
    """Evaluate the start on the sets of the run; ``None`` for one whose head is new."""
    with stage("evaluation of the start"):
        scorer = adapter.start(model, settings)
        if scorer is None:
            return None
        start = measure(scorer, sets.compared, texts)
        start = replace(start, untuned=is_untuned(scorer, start.cosines))
    # No other model can be named for a student that is made from its teacher.
    if start.untuned and not is_made_from_teacher(settings.model):
        logger.info(
            "the start was never tuned for sentences, as it does not find plain paraphrases; where labels are few, one "
            "that was tuned goes much further, such as `model` default"
        )
    for compared_set in sets.compared:
        if isinstance(compared_set, ComparedSet) and compared_set.name in start.by_set:
            scores = start.by_set[compared_set.name].evidence[0].values
            warn_of_reversed_labels(scorer, compared_set.data, scores)
    for name, why in start.failures.items():
        logger.warning(f"the start has no figure on {name}, and the trained model is not compared with it: {why}")
    return start


class Evaluation(NamedTuple):
    """The saved model on the sets of the run, all results of the run, and what the manifest shall hold of them."""

    end: Measured
    results: list[Result]
    manifest_entries: dict[str, Any]


def evaluate_saved(
    job: Job[Any, Any],
    inputs: TrainingInputs,
    sets: Sets,
    start: StartOfRun,
    unbiased: Mapping[str, UnbiasedScores],
) -> Evaluation:
    """Evaluate the saved model."""
    with stage("evaluation"):
        saved = load(job.output, precision="float32", seed=job.settings.seed, cache=True)
        end = measure(saved, sets.compared, start.texts, unbiased)
        if not sets.compared:
            _refuse_collapsed(job, start.measured, end)
        extra_results: list[Result] = []
        manifest_entries: dict[str, Any] = {}
        if inputs.after_training is not None:
            extra_results, manifest_entries = inputs.after_training()
        width_results, section = _evaluate_widths(job, saved)
    for name, why in end.failures.items():
        logger.warning(f"the trained model has no figure on {name}: {why}")
    section |= _describe_scoring(sets)
    extra_results = [*extra_results, *results_by_fold(job, saved, unbiased)]
    sections = {**manifest_entries.get(run_folder.SECTIONS, {}), **section}
    if sections:
        manifest_entries = manifest_entries | {run_folder.SECTIONS: sections}
    start_rows = [] if start.measured is None else rows_of(start.measured, sets.compared)
    results = [*start_rows, *rows_of(end, sets.compared), *extra_results, *width_results]
    return Evaluation(end, results, manifest_entries)


def _refuse_collapsed(job: Job[Any, Any], start: Measured | None, end: Measured) -> None:
    """Raise ModelError, and remove the model, if training gave all texts one vector; labelled pairs would show it."""
    if end.cosines is None or len(end.cosines) < FEWEST_COSINES or float(end.cosines.min()) < COLLAPSED:
        return
    if start is not None and start.cosines is not None and float(start.cosines.min()) >= COLLAPSED:
        return  # the texts are as close before training, such as lines of one template
    shutil.rmtree(job.output / MODEL)
    raise ModelError(
        f"The trained model gives all texts one vector: the least cosine of {len(end.cosines):,} random pairs is "
        f"{end.cosines.min():.4f}. No model is kept. Lower `learning_rate`, which is {job.settings.learning_rate:g}."
    )


def _evaluate_widths(job: Job[Any, Any], saved: Model) -> tuple[list[Result], dict[str, str]]:
    """Return the results at the widths that were trained too, and a section of the card; by dev if there is no test."""
    widths = job.settings.matryoshka
    data = job.dev if job.test is None else job.test
    if not widths or data is None:
        return [], {}
    # Its texts are encoded once, and their vectors cut.
    saved.remember()
    models = [saved, *(load(saved, dim=width) for width in widths)]
    results = [replace(row, task=MATRYOSHKA) for model in models for row in evaluate_pairs(model, data)]
    spearman = [row for row in results if (row.metric, row.subset) == ("spearman", "all")]
    rows = [
        [width, row.dataset, f"{100 * row.value:.2f}"]
        for width, row in zip(["all", *map(str, widths)], spearman, strict=True)
    ]
    table = markdown(["dimensions", "data", "x100"], rows, numeric=("dimensions", "x100"))
    section = {"Dimensions": f"Spearman x100 with the first numbers of each vector:\n\n{table}"}
    # The results of the trained model are those on test, if there is one.
    return [row for row in results if job.test is None or row.model != saved.name], section


def _describe_scoring(sets: Sets) -> dict[str, str]:
    """Return a section of the card where the figures are not those of the saved model's own scores."""
    first = sets.verdict
    if not isinstance(first, ComparedSet) or first.role not in (CROSS_FITTED, OUT_OF_FOLD):
        return {}
    return {"How it was tested": f"On {first.name}: {len(first.data):,} pairs {first.description}."}
