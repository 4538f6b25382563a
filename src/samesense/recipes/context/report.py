"""The end of the way from documents to a model: figures on the user's own pairs, and a report of all stages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.evaluation.run import evaluate_candidates
from samesense.evaluation.sts import StsTask
from samesense.evaluation.task import Task
from samesense.files import write_text
from samesense.inference.models.load import load
from samesense.recipes.compare.models import open_models
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.surrogate.recipe import KEPT, TASK, describe_kept
from samesense.reports import append_results, read_results
from samesense.reports.significance import paired_comparisons
from samesense.reports.sweeps import difference_table
from samesense.reports.tables import markdown, markdown_table
from samesense.training import manifest
from samesense.types import Pair

START, SURROGATE = "start", "surrogate"
"""Names of the two that are compared; the second is also the folder of its run."""

COMPARED = "compared.md"
"""What the comparison on labelled pairs says, for the report."""

PARTS = ("origin", "")
"""Folders with stages, as seen from that of the report."""


def evaluate(output: Path, settings: ContextSettings, given: Sequence[PairData]) -> list[str]:
    """Evaluate the Surrogate and its start model on labelled pairs, and test the difference.

    Without ``given`` pairs, what was held out of the harvest is all there is. Returns lines about the outcome.
    """
    folder, path = output / SURROGATE, output / "results.jsonl"
    own = [row for row in read_results(folder / "results.jsonl") if row.task == TASK]
    specs = [f"{SURROGATE}={folder}"]
    if settings.encoder == "bi":  # a cross-encoder begins with a head that says nothing yet
        specs.insert(0, f"{START}={settings.model}")
    tasks: list[Task] = [StsTask(data, dataset=data.name) for data in given]
    found = evaluate_candidates(open_models(specs) if tasks else [], tasks)
    comparisons, problems = paired_comparisons(found.evidence, found.results, against=START)
    path.unlink(missing_ok=True)
    append_results(path, [*found.results, *own])
    write_text(output / COMPARED, f"{difference_table(comparisons)}\n" if comparisons else "")
    lines = [f"{one.dataset}: no figure of {one.model}, {one.reason}" for one in found.failures]
    shown = [f"evaluated on {data.name} ({len(data):,} pairs)" for data in given] or ["no labelled pairs were given"]
    return [*shown, *lines, *problems]


def speed(folder: Path, pairs: Sequence[Pair]) -> float:
    """Return the pairs of new sentences that a model scores a second, nothing remembered, its start-up not counted."""
    score = load(folder, precision="float32").scores
    score(pairs[:1])
    started = time.perf_counter()
    score(pairs[1:])
    return (len(pairs) - 1) / (time.perf_counter() - started)


def write_report(output: Path) -> None:
    """Write ``report.md``: what was kept of Origin, the figures on labelled pairs, and the stages with their times."""
    kept = manifest.read(output / SURROGATE)[KEPT]
    results = read_results(output / "results.jsonl")
    rows = [row for part in PARTS for row in _stages(part, manifest.read(output / part)["stages"])]
    figures = markdown_table([row for row in results if row.task != TASK and row.subset == "all"])
    compared = (output / COMPARED).read_text(encoding="utf-8").strip()
    parts = [
        "# From documents to a model",
        describe_kept(kept),
        "## Labelled pairs",
        figures if any(row.task != TASK for row in results) else "None were given.",
        *(["Paired bootstrap, adjusted by Holm.", compared] if compared else []),
        "## Stages",
        markdown(["stage", "seconds", "outcome"], rows, numeric=("seconds",)),
    ]
    write_text(output / "report.md", "\n\n".join(parts) + "\n")


def _stages(part: str, stages: Mapping[str, Any]) -> list[list[str]]:
    prefix = f"{part}: " if part else ""
    return [
        [f"{prefix}{name}", f"{stage['seconds']:,.0f}", "; ".join(stage["summary"])]
        for name, stage in stages.items()
        if stage["status"] == "done"
    ]
