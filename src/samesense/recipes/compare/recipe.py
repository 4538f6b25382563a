"""Compare models: judge them on the same data, test the differences, and show it all in one page.

samesense compare default runs/first --data en zh --suite sts,transfer --output report.html
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from samesense.data.benchmarks.comparability import why_not_comparable
from samesense.data.formats.lines import read_lines
from samesense.errors import ConfigError, DataError
from samesense.evaluation.averages import averages
from samesense.evaluation.suites import Found, find_tasks
from samesense.recipes.compare.models import Verdicts, judge_models, open_models
from samesense.reports.content import Content
from samesense.reports.figures import TOPICS, save_drawings
from samesense.reports.figures.drawing import Drawing, need_matplotlib
from samesense.reports.illustrate import distributions, heatmaps, looks_of, planes, run_figures
from samesense.reports.latex import latex_grids, markdown_grids
from samesense.reports.page import html_page
from samesense.reports.runs import Run, read_run
from samesense.reports.significance import compare
from samesense.reports.writing import write_whole
from samesense.training import manifest
from samesense.types import Precision

logger = logging.getLogger(__name__)

Groups = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to compare, and how.

    Attributes:
        models: ``SPEC`` or ``NAME=SPEC`` each; see :func:`samesense.recipes.compare.models.open_models`.
        data: folders, files and names of benchmarks.
        suites: what to judge.
        fast: fewer folds in the transfer suite.
        precision: arithmetic of models.
        fit_texts: unlabelled texts for whitening and flow.
        cache: folder in which embeddings are kept between runs.
        against: name of the reference; ``None`` takes the best of each data set.
        sentences: for the heatmap, by topic.
        runs: run folders for learning curves, ``FOLDER`` or ``NAME=FOLDER`` each.
        sweep: setting of the runs to draw figures against.
    """

    models: Sequence[str]
    data: Sequence[str]
    suites: Sequence[str] = ("sts",)
    fast: bool = False
    precision: Precision = "float32"
    fit_texts: Sequence[str] | None = None
    cache: Path | None = None
    against: str | None = None
    sentences: Groups = TOPICS
    runs: Sequence[str] = ()
    sweep: str | None = None


def run(wanted: Wanted) -> Content:
    """Judge, compare and draw.

    Args:
        wanted: what to compare.

    Returns:
        Everything that a report shows.

    Raises:
        ConfigError, DataError, ModelError, MissingExtraError: before the first model runs, where a report could not
            be made.
    """
    need_matplotlib()
    if wanted.sweep is not None and not wanted.runs:
        raise ConfigError("A sweep is drawn from training runs, and none is given. Name their folders with --runs.")
    drawn = run_figures([_run(spec) for spec in wanted.runs], wanted.sweep)
    found = find_tasks(wanted.data, wanted.suites, fast=wanted.fast)
    with TemporaryDirectory() as scratch:  # a model and its maps share their vectors, if only for this run
        return _judged(wanted, found, drawn, wanted.cache or Path(scratch))


def _judged(wanted: Wanted, found: Found, drawn: list[Drawing], cache: Path) -> Content:
    environment = _environment(wanted)
    opened = open_models(wanted.models, precision=wanted.precision, fit_texts=wanted.fit_texts, cache=cache)
    names = [candidate.name for _, candidate in opened]
    if wanted.against is not None and wanted.against not in names:
        raise ConfigError(f"--against must name one of the models, {', '.join(names)}; received {wanted.against!r}.")
    logger.info(f"{len(found.tasks)} tasks: {', '.join(f'{task.suite} {task.dataset}' for task in found.tasks)}")
    chosen = [sentence for group in wanted.sentences for sentence in group]
    verdicts = judge_models(opened, found.tasks, sentences=chosen)
    logger.info("comparing")
    comparisons, problems = compare(verdicts.evidence, verdicts.results, against=wanted.against)
    means = averages(verdicts.results)
    looks = looks_of(names)
    return Content(
        models=verdicts.models,
        results=verdicts.results,
        averages=means,
        evidence=verdicts.evidence,
        comparisons=comparisons,
        against=wanted.against,
        failures=verdicts.failures,
        notes=_notes(verdicts, found.missing, problems),
        general=[
            *planes(verdicts.results, means, looks),
            *heatmaps(verdicts.sentences, wanted.sentences),
            *drawn,
        ],
        by_dataset=distributions(verdicts.evidence, looks),
        environment=environment,
    )


def write(
    content: Content,
    output: Path,
    *,
    markdown: Path | None = None,
    latex: Path | None = None,
    figures: Path | None = None,
) -> list[Path]:
    """Write a report, each file whole or not at all.

    Args:
        content: what it shows.
        output: the HTML page.
        markdown: file for the main tables in Markdown.
        latex: file for the main tables in LaTeX.
        figures: folder for every figure as SVG and PNG.

    Returns:
        The files.
    """
    written = [write_whole(output, html_page(content))]
    if markdown is not None:
        written.append(write_whole(markdown, f"{markdown_grids(content.grids())}\n{content.legend()}\n"))
    if latex is not None:
        written.append(write_whole(latex, latex_grids(content.grids(), marks=content.marks(), legend=content.legend())))
    if figures is not None:
        written += save_drawings(content.drawings(), figures)
    return written


def read_topics(path: Path) -> list[list[str]]:
    """Read sentences for the heatmap: one a line, an empty line between topics.

    Raises:
        DataError: if the file cannot be read, or holds fewer than two sentences.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path}. Give a text file with one sentence a line.")
    topics: list[list[str]] = [[]]
    for _, line in read_lines(path, path.suffix == ".gz"):
        if line.strip():
            topics[-1].append(line.strip())
        elif topics[-1]:
            topics.append([])
    topics = [topic for topic in topics if topic]
    if sum(map(len, topics)) < 2:
        raise DataError(f"{path}: a heatmap needs two sentences or more, one a line.")
    return topics


def _run(spec: str) -> Run:
    name, equals, folder = spec.partition("=")
    return read_run(folder, name) if equals and not Path(spec).exists() else read_run(spec)


def _notes(verdicts: Verdicts, missing: Sequence[str], problems: Sequence[str]) -> list[str]:
    absent = [f"Not found in the data, so not run: {', '.join(missing)}."] if missing else []
    differing = {(row.dataset, why_not_comparable(row.protocol)): None for row in verdicts.results}
    apart = [f"{name}: not comparable with published figures: {why}." for name, why in differing if why]
    return [*absent, *apart, *verdicts.notes, *problems]


def _environment(wanted: Wanted) -> dict[str, str]:
    """Return what a figure or a time may depend on."""
    import torch

    record = manifest.describe("compare", {}, {})
    versions = record["versions"] | {name: version(name) for name in ("scipy", "matplotlib")}
    machine = record["machine"]
    folds = {"transfer folds": "5 (--fast)" if wanted.fast else "10"} if "transfer" in wanted.suites else {}
    return {
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        "machine": f"{machine['system']} {machine['machine']}, {machine['cores']} cores",
        "threads": str(torch.get_num_threads()),
        "precision": wanted.precision,
        **folds,
        "begun": record["started"],
    }
