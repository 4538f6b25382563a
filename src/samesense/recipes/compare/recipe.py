"""Compare models: evaluate them on the same data, test the differences, and show it all in one page.

samesense compare default runs/first --data en zh --suite sts,transfer --output report.html
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from samesense.data.benchmarks.comparability import why_not_comparable
from samesense.data.rows.sources import Source
from samesense.errors import ConfigError, DataError
from samesense.evaluation.averages import averages
from samesense.evaluation.run import Cost, Evaluations, evaluate_candidates
from samesense.evaluation.suites import FoundTasks, find_tasks
from samesense.evaluation.task import Task
from samesense.execution.progress import stage
from samesense.inference.explain import marked
from samesense.inference.models.model import Model
from samesense.recipes.compare.cost import measure_costs
from samesense.recipes.compare.description import count_unread, describe_data, trained_on
from samesense.recipes.compare.memory import add_memory
from samesense.recipes.compare.models import Models, name_models, open_models
from samesense.recipes.compare.provenance import describe_environment, model_fingerprints
from samesense.recipes.compare.sentences import Sentences, own_sentences
from samesense.reports.details import against_gold
from samesense.reports.figures.plot import Plot, need_matplotlib
from samesense.reports.illustrate import distributions, heatmaps, model_styles, openings, planes, run_figures
from samesense.reports.recommendation import recommend
from samesense.reports.report import Report
from samesense.reports.significance import paired_comparisons
from samesense.reports.standing import Ranking, rank
from samesense.reports.store import Run, read_run
from samesense.reports.tables import TitledTable
from samesense.scratch import ScratchFolder
from samesense.types import Evidence, Marked, Pair, Precision, Result, Scorer

logger = logging.getLogger(__name__)

NOT_RANKED = (
    "No model is recommended: no requested suite has a tested figure where higher is better. Add sts, "
    "which takes any labelled pairs, or binary, which takes pairs labelled 0 and 1."
)
"""What is said where only figures without a test were asked for."""

Shades = dict[str, dict[Pair, tuple[Marked, Marked]]]
"""Shares of the words in the pairs that each model places worst, of several seeds by the first."""


def compare(  # noqa: PLR0913 - each is one flag of the command
    models: Models,
    data: Source,
    *,
    suites: Sequence[str] = ("sts",),
    against: str | None = None,
    fast: bool = False,
    fit_texts: Sequence[str] | None = None,
    precision: Precision = "float32",
    cache: Path | None = None,
    sentences: Sentences | None = None,
    speed: bool = True,
    runs: Sequence[str] = (),
    sweep: str | None = None,
    reading: Mapping[str, Any] = MappingProxyType({}),
    keep: Callable[[Sequence[Result]], None] = lambda results: None,
) -> Report:
    """Evaluate models on the same tasks, test the differences, and draw figures; see :func:`samesense.compare`.

    ``models`` are those of :func:`samesense.recipes.compare.models.open_models`, ``data`` those of
    :func:`samesense.evaluation.suites.find_tasks`, read as ``reading`` says; ``sentences`` are for the heatmap, by
    default some of the evaluated pairs. ``keep`` is given the results of each model at once, so that a later one that
    stops does not lose them. ConfigError, DataError, ModelError and MissingExtraError come before the first
    model runs, where a report could not be made.
    """
    # Checked now, as the figures are drawn after hours of evaluation.
    need_matplotlib()
    if sweep is not None and not runs:
        raise ConfigError("A sweep is drawn from training runs, and none is given. Name their folders (runs).")
    trained = read_runs(runs)
    curves = run_figures(trained, sweep)
    found = find_tasks(data, suites, fast=fast, reading=reading)
    if sentences is None:
        sentences = own_sentences(found.tasks)
    environment = describe_environment(precision)
    if "transfer" in suites:
        environment["transfer folds"] = "5 (fast)" if fast else "10"
    shades: Shades = {}
    with ScratchFolder() as scratch:  # a model and its maps share their vectors, if only for this run
        scorers = open_models(models, precision=precision, fit_texts=fit_texts, cache=cache or Path(scratch))
        # Taken now, as the evaluation empties the list.
        names = [candidate.name for _, candidate in scorers]
        if against is not None and against not in names:
            raise ConfigError(f"The reference (against) must be one of {', '.join(names)}; received {against!r}.")
        inputs = _Inputs(
            names=names,
            found=found,
            data_tables=_data_tables(scorers, found.tasks),
            warnings=trained_on({candidate.name: spec for spec, candidate in scorers}, found.tasks),
            sentences=sentences,
            runs=trained,
            run_figures=curves,
            environment=environment,
        )
        _log_start(found.tasks, inputs.warnings)
        evaluations = evaluate_candidates(
            scorers,
            found.tasks,
            sentences=list(chain.from_iterable(sentences.groups)),
            costs=partial(_costs, precision) if speed else None,
            then=partial(_keep_and_shade, keep, shades),
        )
    logger.info("comparing")
    with stage("comparing the models"):
        return _build_report(evaluations, inputs, against, shades)


@dataclass(frozen=True)
class _Inputs:
    """What a report holds of its models and data besides the evaluations."""

    names: list[str]  # of the models
    found: FoundTasks
    data_tables: list[TitledTable]
    warnings: list[str]  # of test data that models were trained on
    sentences: Sentences
    runs: list[Run]
    run_figures: list[Plot]
    environment: dict[str, str]


def _build_report(
    evaluations: Evaluations,
    inputs: _Inputs,
    against: str | None,
    shades: Shades,
) -> Report:
    """Compare the models by their evaluations, and draw the figures."""
    reference = against or inputs.names[0]
    comparisons, problems = paired_comparisons(evaluations.evidence, evaluations.results, against=reference)
    ranking, why_not_ranked = _rank_models(evaluations, reference)
    recommendation = None if ranking is None else recommend(ranking, evaluations.failures)
    means = averages(evaluations.results)
    styles = model_styles(inputs.names)
    notes = _notes(evaluations, inputs.found, [*problems, *why_not_ranked])
    return Report(
        models=evaluations.models,
        results=evaluations.results,
        averages=means,
        evidence=evaluations.evidence,
        comparisons=comparisons,
        against=against,
        failures=evaluations.failures,
        ranking=ranking,
        recommendation=recommendation,
        opening=openings(ranking, styles),
        notes=[*notes, *_without_curve(inputs.runs)],
        general=[
            *planes(evaluations.results, means, styles),
            *heatmaps(evaluations.sentences, inputs.sentences.groups, inputs.sentences.origin),
            *inputs.run_figures,
        ],
        by_dataset=distributions(evaluations.evidence, styles),
        marked=shades,
        environment=inputs.environment,
        warnings=inputs.warnings,
        data=inputs.data_tables,
        fingerprints=model_fingerprints([model.spec for model in evaluations.models]),
    )


def _log_start(tasks: Sequence[Task], warnings: Sequence[str]) -> None:
    for warning in warnings:
        logger.warning(warning)
    logger.info(f"tasks: {', '.join(f'{task.suite} {task.dataset}' for task in tasks)}")


def _costs(precision: Precision, candidates: Sequence[tuple[str, Scorer]], texts: Sequence[str]) -> list[Cost]:
    return add_memory(measure_costs(candidates, texts), candidates, texts, precision)


def _keep_and_shade(
    keep: Callable[[Sequence[Result]], None],
    shades: Shades,
    model: Scorer,
    results: Sequence[Result],
    evidence: Sequence[Evidence],
) -> None:
    """Keep the results of a model, and explain its pairs if tokens do; leaving words out would cost a score each."""
    keep(results)  # before anything of this model can stop
    if not isinstance(model, Model) or model.name in shades:
        return
    cases = [case for item in evidence if item.has_scores for case in against_gold(item)]
    try:
        with stage("explaining the pairs placed worst"):
            shades[model.name] = marked(model, dict.fromkeys(case.texts for case in cases))
    except Exception as error:  # such as that of a tokenizer: what was evaluated is worth more
        logger.warning(f"words of {model.name} are not shaded: {type(error).__name__}: {error}")


def _data_tables(scorers: Sequence[tuple[str, Scorer]], tasks: Sequence[Task]) -> list[TitledTable]:
    """Return what the data are, and the share of texts that models cut, if any is cut."""
    tables = [describe_data(tasks)]
    unread = count_unread([candidate for _, candidate in scorers], tasks)
    if unread is not None:
        tables.append(unread)
    return tables


def _rank_models(evaluations: Evaluations, reference: str) -> tuple[Ranking | None, list[str]]:
    """Rank the models; return ``None`` and the reason if there is no ranking."""
    failed = {failure.model for failure in evaluations.failures}
    try:
        ranking = rank(evaluations.evidence, evaluations.results, evaluations.models, against=reference, failed=failed)
    except DataError as error:
        return None, [f"No model is named the best: {error}"]
    if ranking is None:
        reason = NOT_RANKED
        # Another suite would not help where nothing could be evaluated.
        if evaluations.failures and not evaluations.results:
            failure = evaluations.failures[0]
            reason = f"No model has a figure; {failure.model} on {failure.dataset}: {failure.reason}"
        logger.warning(reason)
        return None, [reason]
    return ranking, []


def _notes(evaluations: Evaluations, found: FoundTasks, problems: Sequence[str]) -> list[str]:
    absent = []
    if found.missing:
        absent.append(f"Not found in the data, so not run: {', '.join(found.missing)}.")
    differing = {(row.dataset, why_not_comparable(row.protocol)): None for row in evaluations.results}
    apart = [f"{name}: not comparable with published figures: {why}." for name, why in differing if why]
    return [*found.unfit, *absent, *apart, *evaluations.notes, *problems]


def read_runs(specs: Sequence[str]) -> list[Run]:
    """Read run folders; ``NAME=FOLDER`` names one, and runs of one name are seeds of one thing.

    ConfigError if runs of one name have one seed, or differ in another setting.
    """
    runs = [read_run(folder, name) for name, folder in name_models(specs)]
    first: dict[str, Run] = {}
    names: set[tuple[str, str]] = set()
    for run in runs:
        first_settings = first.setdefault(run.name, run).settings
        settings = run.settings
        differing = [
            key
            for key in {**first_settings, **settings}
            if key != "seed" and first_settings.get(key) != settings.get(key)
        ]
        seed = run.name, repr(settings.get("seed"))
        if differing or seed in names:
            if differing:
                why = f"differ in {', '.join(differing)}"
            else:
                why = f"have seed {settings.get('seed')}"
            raise ConfigError(
                f"Runs of one name are seeds of one thing; two named {run.name!r} {why}. Give them names of their own, "
                "as in: `runs` first=FOLDER second=FOLDER"
            )
        names.add(seed)
    return runs


def _without_curve(runs: Sequence[Run]) -> list[str]:
    """Return a line about the runs that no learning curve shows."""
    names = dict.fromkeys(run.name for run in runs if run.curve is None)
    return [f"{name}: no learning curve, since it was never evaluated on dev." for name in names]
