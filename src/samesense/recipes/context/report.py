"""The end of the way from documents to a model: figures on the user's own pairs, and a report of all stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Final

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.data.documents import take_held_out
from samesense.data.held_out import compare_held_out
from samesense.data.pairs.data import PairData
from samesense.errors import DataError
from samesense.evaluation.run import Evaluations, evaluate_candidates
from samesense.evaluation.sections import SectionTask
from samesense.evaluation.sts import StsTask
from samesense.evaluation.task import Task
from samesense.execution.speed import Speed, time_in_turns
from samesense.files import write_json, write_text
from samesense.inference.models.load import load
from samesense.recipes.compare.models import open_models
from samesense.recipes.context.documents import Documents
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.origin.recipe import documents_of
from samesense.recipes.run.job import Job
from samesense.recipes.run.outcome.advice import Observations, advice
from samesense.recipes.run.outcome.conclude import reason_to_keep, write_page
from samesense.recipes.run.outcome.measure import CONE, NO_START, random_cosines
from samesense.recipes.run.outcome.untuned_start import is_untuned
from samesense.recipes.run.run_folder import RESULTS
from samesense.recipes.surrogate.recipe import KEPT, TASK, describe_kept
from samesense.reports import append_results, read_results
from samesense.reports.run_page import RunPage
from samesense.reports.run_verdict import Role, Verdict, compare
from samesense.reports.significance import Comparison, paired_comparisons
from samesense.reports.standing import rank
from samesense.reports.store import read_run
from samesense.reports.sweeps import difference_table
from samesense.reports.tables import markdown, markdown_table
from samesense.reports.verdict import verdict as verdict_lines
from samesense.results.markup import plain
from samesense.training import manifest
from samesense.types import Pair, TaskResult

VERDICT = "verdict.json"
"""File with what the manifest says of it."""

START = "start"
WHITENED = "whitened start"

SURROGATE = "surrogate"
"""Name of the Surrogate where models are compared, and the folder of its run."""

REPORT = "report.md"

HELD_OUT: Final = "held-out sections"
"""Name of the triplets of documents that were held out."""

FITTED = 5000
"""Sentences by which the start is whitened."""

COMPARED = "compared.md"
"""What the comparison on labelled pairs says, for the report."""

PARTS = ("origin", "")
"""Folders with stages, as seen from that of the report."""


def evaluate(output: Path, job: Job[Documents, ContextSettings]) -> tuple[Verdict, list[str]]:
    """Evaluate the Surrogate beside its start model, and that whitened, and test the differences.

    On the labelled pairs that were given, and on the sections of the documents that were held out. Returns the verdict,
    and lines about the outcome; the first ones say which model to take: by the test pairs, or else by the sections, and
    by the pairs that selected the Surrogate only where there is nothing else.
    """
    settings = job.settings
    test = _pairs_task(job.test)
    dev = _pairs_task(job.dev)
    sections, section_line = _sections(job)
    guards = [StsTask(data, dataset=data.name) for data in job.guards]
    # The first one decides which model is recommended.
    tasks: list[Task] = [task for task in (test, sections, dev, *guards) if task is not None]

    sentences = _some_sentences(output, settings)
    specs = [f"{SURROGATE}={output / SURROGATE}"]
    if settings.encoder == "bi":  # a cross-encoder begins with a head that says nothing yet
        specs = [f"{START}={settings.model}", f"{WHITENED}={settings.model}+whiten", *specs]
    models = open_models(specs, fit_texts=sentences) if tasks else []
    evaluations = evaluate_candidates(models, tasks)
    comparisons, problems = paired_comparisons(evaluations.evidence, evaluations.results, against=START)
    _write_results(output, evaluations, comparisons)

    # Dev has selected the Surrogate, so that it gives no verdict on it.
    tasks_by_role: list[tuple[Role, Task | None]] = [("test", test), (HELD_OUT, sections)]
    tasks_by_role += [("guard", guard) for guard in guards]
    verdict = _conclude(output, job, evaluations, tasks_by_role)
    if settings.encoder == "bi":  # a cross-encoder has no start that could be kept
        verdict = replace(verdict, keep_reason=_reason_to_keep(job, verdict, sentences[:CONE]))
    write_json(output / VERDICT, verdict.to_dict())
    if settings.report:
        _write_page(output, verdict, evaluations)

    advice = []
    if tasks and len(specs) > 1:
        advice = _recommended(evaluations, tasks[0].dataset, settings, keeps_start=bool(verdict.keep_reason))
    evaluated = [data for data in (job.test, job.dev, *job.guards) if data is not None]
    messages = [f"evaluated on {data.name} ({len(data):,} pairs)" for data in evaluated]
    failures = [
        f"{failure.dataset}: no figure of {failure.model}, {failure.reason}" for failure in evaluations.failures
    ]
    return verdict, [*advice, section_line, *messages, *failures, *problems]


def _pairs_task(data: PairData | None) -> StsTask | None:
    if data is None:
        return None
    return StsTask(data, dataset=data.name)


def _write_results(output: Path, evaluations: Evaluations, comparisons: Sequence[Comparison]) -> None:
    """Write the results, with those of the Surrogate against the scores it learnt, and the table of differences."""
    surrogate_rows = [row for row in read_results(output / SURROGATE / RESULTS) if row.task == TASK]
    path = output / RESULTS
    path.unlink(missing_ok=True)  # an earlier try of this stage may have left some
    append_results(path, [*evaluations.results, *surrogate_rows])
    table = f"{difference_table(comparisons)}\n" if comparisons else ""
    # Written even if it is empty, as the report reads it.
    write_text(output / COMPARED, table)


def _conclude(
    output: Path,
    job: Job[Documents, ContextSettings],
    evaluations: Evaluations,
    tasks: Sequence[tuple[Role, Task | None]],
) -> Verdict:
    """Return whether the Surrogate is better than the start, with advice."""
    findings = []
    problems = [f"{failure.dataset}: {failure.reason}" for failure in evaluations.failures]
    for role, task in tasks:
        if task is None:
            continue
        before = _result_on(evaluations, task, START)
        after = _result_on(evaluations, task, SURROGATE)
        # A failure is among the problems, and a cross-encoder has no start.
        if before is None or after is None:
            continue
        with suppress(DataError):
            findings.append(compare(role, before, after))
    first = next((finding for finding in findings if finding.role != "guard"), None)
    guards = tuple(finding for finding in findings if finding.role == "guard")
    reason = ""
    if first is None:
        reason = "neither test pairs nor enough documents that were held out"
        if job.settings.encoder == "cross":
            reason = NO_START
    verdict = Verdict(task=first, guards=guards, reason=reason, problems=tuple(problems))
    run = read_run(output / SURROGATE)
    record = manifest.read(output / SURROGATE)
    observations = Observations(job.settings, job.data, record["outcome"]["steps"], run.curve)
    return replace(verdict, advice=advice(verdict, observations))


def _reason_to_keep(job: Job[Documents, ContextSettings], verdict: Verdict, sentences: Sequence[str]) -> str:
    """Return why ``model/`` is the start, and where the Surrogate is; empty where ``model/`` is the Surrogate."""
    start = load(job.settings.model, precision="float32")
    untuned = is_untuned(start, random_cosines(start, sentences))
    reason = reason_to_keep(job, verdict, untuned=untuned)
    if not reason:
        return ""
    return f"{reason}; the Surrogate is in {SURROGATE}/model"


def _write_page(output: Path, verdict: Verdict, evaluations: Evaluations) -> None:
    """Write the page of the run."""
    before = [item for item in evaluations.evidence if item.model == START]
    after = [item for item in evaluations.evidence if item.model == SURROGATE]
    page = RunPage(
        name=output.resolve().name,
        verdict=verdict,
        history=read_run(output / SURROGATE),
        before=before,
        after=[replace(evidence, model="trained") for evidence in after],
        record=manifest.read(output / SURROGATE),
    )
    write_page(page, load(output / SURROGATE, precision="float32"), output)


def _result_on(evaluations: Evaluations, task: Task, model: str) -> TaskResult | None:
    """Return the result of a model on a task; ``None`` if it has none."""
    key = task.dataset, model
    evidence = [item for item in evaluations.evidence if (item.dataset, item.model) == key]
    if not evidence:
        return None
    return TaskResult([row for row in evaluations.results if (row.dataset, row.model) == key], evidence[:1])


def _sections(job: Job[Documents, ContextSettings]) -> tuple[SectionTask | None, str]:
    """Return the task on held-out documents, if there are enough, and what is said of it."""
    origin = job.settings.origin_settings()
    documents = list(take_held_out(documents_of(job.data.sources, origin), origin.held_out_documents))
    comparable = compare_held_out(documents)
    if not comparable.triplets:
        return None, f"not evaluated on held-out documents: {comparable.reason}"
    count = len(comparable.triplets)
    task = SectionTask(
        comparable.triplets,
        HELD_OUT,
        documents=comparable.documents,
        note="of documents from which nothing was learnt",
    )
    return task, f"evaluated on {count:,} triplets by {comparable.unit}, in documents that were held out"


def _some_sentences(output: Path, settings: ContextSettings) -> list[str]:
    """Return sentences of the corpus, by which the start is whitened, no text twice."""
    corpus = Corpus(output / "origin" / "corpus", settings.origin_settings().shape())
    ids = np.unique(corpus.text_keys, return_index=True)[1]
    return corpus.sentences(np.random.default_rng(0).permutation(ids)[:FITTED])


def _recommended(evaluations: Evaluations, dataset: str, settings: ContextSettings, *, keeps_start: bool) -> list[str]:
    """Return which of the models is best on a data set, how sure that is, and how to have it."""
    rows = [row for row in evaluations.results if row.dataset == dataset]
    ranking = rank([row for row in evaluations.evidence if row.dataset == dataset], rows, against=START)
    if ranking is None:
        return []
    selection = {
        SURROGATE: f"take the Surrogate, {SURROGATE}/model of this run",
        START: f"stay with {settings.model}; nothing that was made here was shown to be better",
        WHITENED: f"whitening alone does more: samesense whiten {quote(settings.model)} TEXTS --output FOLDER",
    }
    best = ranking.standings[0].model
    # The highest score is no reason to leave a start that it was not shown to surpass.
    if keeps_start and best == SURROGATE:
        best = START
    return [*verdict_lines(ranking), f"recommended: {selection[best]}"]


TIMED = 512
"""Pairs of a round of the speed, at most."""


def speed(folder: Path, pairs: Sequence[Pair]) -> Speed:
    """Return the pairs of new sentences that a model scores a second, nothing remembered, its start-up not counted."""
    score = load(folder, precision="float32").scores
    sample = pairs[:TIMED]
    score(sample[:1])

    def run() -> int:
        score(sample)
        return len(sample)

    (measured,), _ = time_in_turns([run])
    return measured


def write_report(output: Path) -> None:
    """Write ``report.md``: what was kept of Origin, the figures on labelled pairs, and the stages with their times."""
    selected = manifest.read(output / SURROGATE)[KEPT]
    stages = manifest.read(output)["stages"]
    blocks = [
        "# From documents to a model",
        plain(describe_kept(selected)),
        "## Beside the start",
        *map(plain, stages["evaluation"]["summary"]),
    ]
    results = [row for row in read_results(output / RESULTS) if row.task != TASK]
    if results:
        blocks.append(markdown_table([row for row in results if row.subset == "all"]))
    compared = (output / COMPARED).read_text(encoding="utf-8").strip()
    if compared:
        blocks += ["Paired bootstrap, adjusted by Holm.", compared]
    rows = [
        row for stage_folder in PARTS for row in _stages(stage_folder, manifest.read(output / stage_folder)["stages"])
    ]
    blocks += ["## Stages", markdown(["stage", "seconds", "outcome"], rows, numeric=("seconds",))]
    write_text(output / REPORT, "\n\n".join(blocks) + "\n")


def _stages(folder_name: str, stages: Mapping[str, Any]) -> list[list[str]]:
    prefix = f"{folder_name}: " if folder_name else ""
    return [
        [f"{prefix}{name}", f"{stage['seconds']:,.0f}", "; ".join(stage["summary"])]
        for name, stage in stages.items()
        if stage["status"] == "done"
    ]
