"""The end of a run: its verdict, the advice and decisions from it, and its report page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from samesense.errors import OutputError, SamesenseError
from samesense.execution.progress import stage
from samesense.files import write_text
from samesense.inference.explain import marked
from samesense.inference.models.model import Model
from samesense.recipes.held_out.sets import ComparedSet, Sets
from samesense.recipes.run.job import Job
from samesense.recipes.run.model_adapters import has_new_head
from samesense.recipes.run.outcome.advice import OUT_OF_FOLD_PAIRS, Observations, advice
from samesense.recipes.run.outcome.learning_curve import Train, measure_curve
from samesense.recipes.run.outcome.measure import CONE, Measured, compared
from samesense.recipes.run.outcome.merge import check_merge
from samesense.recipes.run.outcome.requirements import check_requirements
from samesense.recipes.run.run_folder import CHOSEN_SHARE, REPORT
from samesense.reports.figures.curves import Curve
from samesense.reports.run_page import RunPage, cases_of, run_page
from samesense.reports.run_verdict import CROSS_FITTED, Finding, Verdict, merged_from
from samesense.reports.store import read_run
from samesense.training.fit import TrainOutput
from samesense.types import Evidence

logger = logging.getLogger(__name__)


MOST_WORDS = 80
"""Most words of a pair that occlusion leaves out, one by one; each costs a score of the model."""


def check_outcome(job: Job[Any, Any], sets: Sets) -> None:
    """Raise ConfigError, before anything is computed, for a merge, an early stop or a learning curve that cannot be."""
    check_requirements(job.settings, job.data, sets, concludes=job.concludes)
    if job.settings.merge:
        check_merge(new_head=has_new_head(job.settings))


def some_texts(sets: Sets, of_training: Callable[[int], Sequence[str]]) -> list[str]:
    """Return texts to measure the cone on: those of the verdict's set, or else of the training data."""
    first = sets.verdict
    texts = of_training(CONE) if first is None else first.texts()
    # Two equal texts have a cosine of 1, which says nothing of the cone.
    distinct = list(dict.fromkeys(texts))
    return [distinct[index] for index in np.random.default_rng(0).permutation(len(distinct))[:CONE]]


def conclude(
    job: Job[Any, Any],
    sets: Sets,
    start: Measured | None,
    end: Measured,
    trained: TrainOutput,
    record: Mapping[str, Any],
    train: Train,
    out_of_fold: Curve | None = None,
) -> Verdict | None:
    """Return the verdict, and write the page; ``None`` if a training for the learning curve was interrupted.

    ``out_of_fold`` is Spearman along the steps by cross-validation, where the run has no dev.
    """
    verdict = compared(start, end, sets, job.data)
    if "merge" in record:
        verdict = replace(verdict, merge=merged_from(record["merge"]))
    history = read_run(job.output)
    selecting = "dev"
    if out_of_fold is not None:
        history = replace(history, curve=out_of_fold)
        selecting = OUT_OF_FOLD_PAIRS
    observations = Observations(
        job.settings, job.data, trained.steps, history.curve, _mean_cosines(start, end), selecting
    )
    verdict = replace(verdict, advice=advice(verdict, observations))
    untuned = start is not None and start.untuned
    reason = reason_to_keep(job, verdict, trained, record.get(CHOSEN_SHARE, 1.0), untuned=untuned)
    if reason:
        verdict = replace(verdict, keep_reason=f"{reason}; `keep_start` never gives the trained one")
    if job.settings.learning_curve:
        with_curve = _add_learning_curve(verdict, job, sets, end, train)
        if with_curve is None:
            return None
        verdict = with_curve
    if job.settings.report:
        page = RunPage(
            name=job.output.resolve().name,
            verdict=verdict,
            history=history,
            before=[] if start is None else _evidence(start, "start"),
            after=_evidence(end, "trained"),
            cones=(None if start is None else start.cosines, end.cosines),
            record=record,
            selecting="on dev" if out_of_fold is None else "out of fold",
        )
        write_page(page, end.model, job.output)
    return verdict


def _add_learning_curve(
    verdict: Verdict, job: Job[Any, Any], sets: Sets, end: Measured, train: Train
) -> Verdict | None:
    """Return the verdict with a learning curve, or with why there is none; ``None`` if its training was interrupted."""
    first = sets.verdict
    if not isinstance(first, ComparedSet) or first.name not in end.by_set:
        return verdict
    scores = end.by_set[first.name].evidence[0].values
    try:
        curve = measure_curve(job.data, job.output, first, scores, train)
    except OutputError:  # the resumed run goes on with the curve
        raise
    except SamesenseError as error:  # a training on a small part failed; the run's own model is saved
        return replace(verdict, problems=(*verdict.problems, f"learning curve: none, {error}"))
    if curve is None:
        return None
    return replace(verdict, curve=curve)


def reason_to_keep(
    job: Job[Any, Any],
    verdict: Verdict,
    trained: TrainOutput | None = None,
    weight_share: float = 1.0,
    *,
    untuned: bool,
) -> str:
    """Return why the start is kept and the trained model is not; empty where the trained model is kept.

    ``keep_start`` unless-higher compares figures on the pairs of the verdict; where these are test, which chooses
    nothing, those on dev. On held-out anchors or texts, which are few, on dev pairs with few of one label, and on NLI
    labels beside in-batch negatives, which teach more than these labels measure, the start is kept only if training did
    harm. With unless-better, an ``untuned`` start, never tuned for sentences, is kept only if training did harm:
    training was shown to improve such models on meaning, which sections of documents do not measure.
    """
    if weight_share == 0:
        return f"model/ is the start, {job.settings.model}, as the folds found no part of the training better"
    rule = getattr(job.settings, "keep_start", "never")
    if rule == "never" or verdict.word == "better":
        return ""
    if rule == "unless-higher":
        return _reason_if_not_higher(job, verdict, trained)
    if untuned and verdict.word != "worse":
        logger.info("model/ is the trained model: the start was never tuned for sentences, and no harm was shown")
        return ""
    outcome = "training did harm"
    if verdict.task is None:
        outcome = "nothing could show whether training helps"
    elif verdict.word != "worse":
        outcome = "training was not shown to help"
    return f"model/ is the start, {job.settings.model}, as {outcome}"


def keeps_start_in_any_case(job: Job[Any, Any], sets: Sets, start: Measured | None) -> bool:
    """Return whether :func:`reason_to_keep` will keep the start, as nothing can show whether training helps."""
    if getattr(job.settings, "keep_start", "never") != "unless-better" or sets.verdict is not None or start is None:
        return False
    return job.concludes and start.cosines is not None and not start.untuned


def _reason_if_not_higher(job: Job[Any, Any], verdict: Verdict, trained: TrainOutput | None) -> str:
    """Return why the start is kept where the trained model's figure is no higher; empty where it is higher."""
    task = verdict.task
    if task is not None and task.word != "worse" and _cannot_choose(job, task):
        return ""
    if task is not None and task.role != "test":
        start, end, dataset = task.start, task.end, task.dataset
    elif trained is not None and trained.start_dev_spearman is not None and trained.best_dev_spearman is not None:
        start, end, dataset = trained.start_dev_spearman, trained.best_dev_spearman, "dev"
    else:
        return ""
    if end > start:
        return ""
    return (
        f"model/ is the start, {job.settings.model}, as training did not raise its figure on {dataset} "
        f"({100 * start:.2f}, trained {100 * end:.2f})"
    )


def _cannot_choose(job: Job[Any, Any], task: Finding) -> bool:
    """Return whether the higher figure on a set is no reason to choose: it is too small, or measures another thing.

    Out of fold, few pairs of one label are few pairs in all, which can make a good start worse.
    """
    if task.role in ("held-out anchors", "held-out texts") or job.settings.teaches_beyond_labels(job.data):
        return True
    return task.role in ("dev", CROSS_FITTED) and task.has_few_of_a_label


def _evidence(measured: Measured, name: str) -> list[Evidence]:
    return [replace(item, model=name) for result in measured.by_set.values() for item in result.evidence]


def _mean_cosines(start: Measured | None, end: Measured) -> tuple[float, float] | None:
    """Return the mean cosine of random pairs before and after."""
    if start is None or start.cosines is None or end.cosines is None:
        return None
    return float(start.cosines.mean()), float(end.cosines.mean())


def write_page(page: RunPage, trained: Model, output: Path) -> None:
    """Write the report page of a run; ``trained`` explains its scores by words.

    If the page cannot be drawn, the cause is logged, and the run does not fail. OutputError if it cannot be written:
    the resumed run evaluates again, and writes it.
    """
    try:
        with stage("drawing the report"):
            pairs = {case.texts for cases in cases_of(page.before, page.after).values() for case in cases}
            write_text(output / REPORT, run_page(replace(page, marked=marked(trained, pairs, most_words=MOST_WORDS))))
    except OutputError:
        raise
    except Exception as error:  # the model is saved: a failure of the page must not lose it
        logger.warning(f"no {REPORT}: {type(error).__name__}: {error}")
