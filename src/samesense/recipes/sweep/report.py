"""Tables, figures and one page about a sweep, finished or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from samesense.errors import DataError, MissingExtraError
from samesense.evaluation.run import EvaluatedModel, Failure
from samesense.files import write_json_lines, write_text
from samesense.recipes.sweep.completeness import (
    CONTINUE,
    describe_failures,
    describe_incomplete,
    incomplete_tests,
    list_waiting,
    waiting_runs,
)
from samesense.recipes.sweep.file import LAYERS
from samesense.recipes.sweep.gather import CellResults, PlanRecord, Tried, gather, read_plan, rows, settings_of, tried
from samesense.recipes.sweep.next_step import describe_next_steps
from samesense.recipes.sweep.plan import slug
from samesense.recipes.sweep.protocol import protocol_sentences
from samesense.reports.figures.curves import Curve
from samesense.reports.figures.plot import Plot, Style, need_matplotlib
from samesense.reports.figures.seeds import seed_figures
from samesense.reports.illustrate import distributions, model_styles, stem
from samesense.reports.report import Report
from samesense.reports.shown import shown_best
from samesense.reports.significance import paired_comparisons
from samesense.reports.standing import Ranking, rank
from samesense.reports.store import Run
from samesense.reports.sweeps import (
    comparison_figure,
    curve_figure,
    difference_table,
    setting_figures,
    steps_table,
    steps_to_scores,
)
from samesense.reports.tables import TitledTable, markdown_grids
from samesense.results.markup import plain
from samesense.types import Evidence, Result

Curves = dict[str, dict[str, dict[int, Curve]]]


def write_report(output: Path, *, latex: Path | None = None, figures: Path | None = None) -> tuple[str, list[Path]]:
    """Write ``results.jsonl``, ``tables.md``, ``comparisons.jsonl`` and, with matplotlib, ``report.html``.

    Cells that are not finished are named and have no figure. Returned are the tables in Markdown, and the files.

    Args:
        output: folder of the sweep.
        latex: file for the tables in LaTeX.
        figures: folder for the figures, which need matplotlib.
    """
    cells = gather(output)
    plan = read_plan(output)
    report, left_out = _report(cells, tried(output), plan)
    next_steps = []
    # A run that is missing may be the best.
    if not report.incomplete:
        next_steps = describe_next_steps(cells, plan.config, plan.reading)
    text = _tables(report, left_out, next_steps)
    paths = [
        write_json_lines(output / "results.jsonl", rows(cells)),
        write_json_lines(
            output / "comparisons.jsonl", ({**vars(item), "significant": item.finding} for item in report.comparisons)
        ),
        write_text(output / "tables.md", text),
    ]
    if latex is not None:
        paths.append(report.save(latex, "tex"))
    try:
        # Only now, as the tables above need no matplotlib.
        need_matplotlib()
    except MissingExtraError as error:
        if figures is not None:
            raise
        return f"{text}\nThere is no report.html: {error}\n", paths
    styles = model_styles([cell.entry.variant for cell in cells])
    plots = _figures(cells, list(plan.grid), plan.against, styles)
    untrained = {cell.entry.variant for cell in cells if cell.entry.seed is None}
    if any(comparison.model not in untrained for comparison in report.comparisons):
        plots = [comparison_figure(report.comparisons, name="differences", untrained=untrained), *plots]
    report = replace(report, general=plots, by_dataset=distributions(report.evidence, styles))
    paths.append(report.save(output / "report.html"))
    if figures is not None:
        paths += report.save_figures(figures)
    return text, paths


def _report(
    cells: Sequence[CellResults], tuning: Sequence[Tried], plan: PlanRecord
) -> tuple[Report, dict[str, Sequence[str]]]:
    """Return the report without its figures, and what is not in its tables, by reason."""
    results = [result for cell in cells for result in cell.results if result.subset == "all"]
    evidence = [item for cell in cells for item in cell.evidence]
    comparisons, problems = paired_comparisons(evidence, results, against=plan.against)
    ranking = None
    try:
        ranking = _ranking(cells, evidence, results, plan.against)
    except DataError as error:
        problems.append(f"No variant is named the best: {error}")
    if ranking is not None:
        comparisons = [*ranking.of_means, *comparisons]
        if ranking.unranked:
            problems.append(f"Not in {ranking.on}, since a test set or seed is missing: {'; '.join(ranking.unranked)}")
    left_out: dict[str, Sequence[str]] = {
        "Failed": describe_failures(cells, tuning),
        "Not run": list_waiting(cells, tuning),
        "Left out": plan.skipped,
        "Not compared": problems,
        "Not made alike": _unlike(cells),
    }
    report = Report(
        title="Sweep",
        times="Wall time in seconds, of all runs of a variant and all calls.",
        models=_models(cells),
        results=[result for cell in cells for result in cell.results],
        evidence=evidence,
        comparisons=comparisons,
        against=plan.against,
        ranking=ranking,
        failures=_failures(cells),
        waiting=waiting_runs(cells),
        shown_best=shown_best(evidence, results, comparisons, ranking, incomplete=incomplete_tests(cells, tuning)),
        protocol=protocol_sentences(cells, tuning, plan.dev, plan.skipped),
        incomplete=describe_incomplete(cells, tuning),
        notes=[f"failed: {line}" if title == "Failed" else line for title, lines in left_out.items() for line in lines],
        warnings=plan.warnings,
        tables=_more_tables(cells, tuning),
        environment={component: " / ".join(values) for component, values in _collect_environments(cells).items()},
    )
    return report, left_out


def _ranking(
    cells: Sequence[CellResults], evidence: Sequence[Evidence], results: Sequence[Result], against: str
) -> Ranking | None:
    """Rank the variants once every cell has run; ``None`` before, and for a sweep over several data sets.

    Each data set has models of its own, so that no variant has a mean over several of them.
    """
    is_complete = all(cell.status in ("finished", "failed") for cell in cells)
    if not is_complete or len({cell.entry.dataset for cell in cells}) != 1:
        return None
    return rank(evidence, results, _ran(cells), against=against)


def _tables(report: Report, left_out: Mapping[str, Sequence[str]], next_steps: Sequence[str]) -> str:
    blocks = []
    if report.incomplete:
        blocks.append(f"{plain(f'{report.incomplete} {CONTINUE}')}\n")
    if report.ranking is not None:
        blocks.append(f"{' '.join(map(plain, report.verdict()))}\n")
    if report.results:
        blocks.append(markdown_grids(report.grids()))
    if report.comparisons:
        blocks.append(f"{plain(report.marks())}\n")
        blocks.append(f"## Differences from {plain(report.reference)}\n\n{difference_table(report.comparisons)}\n")
    blocks += [f"## {plain(table.title)}\n\n{table.markdown()}\n" for table in report.tables]
    for title, lines in {**left_out, "Warnings about the data": report.warnings}.items():
        if lines:
            blocks.append(f"## {title}\n\n" + "".join(f"- {plain(line)}\n" for line in lines))
    blocks += [f"{line}\n" for line in next_steps]
    return "\n".join(blocks)


_UNTRIED = {"finished": "", "failed": "failed"}
"""What stands for the dev score where there is none, by what became of the run."""


def _tried_table(tuning: Sequence[Tried]) -> TitledTable:
    """Return what was tried with the first seed, and what all seeds were run with."""
    rows = []
    for trial in tuning:
        if trial.dev is None:
            dev_text = _UNTRIED.get(trial.status, "not run yet")
        else:
            dev_text = f"{100 * trial.dev:.2f}"
        chosen_text = "yes" if trial.chosen and trial.dev is not None else ""
        rows.append([trial.dataset, trial.variant, trial.settings, dev_text, chosen_text])
    return TitledTable("Chosen on dev", ["data set", "variant", "tried", "dev", "chosen"], rows, numeric=("dev",))


def _more_tables(cells: Sequence[CellResults], tuning: Sequence[Tried]) -> list[TitledTable]:
    """Return what was tried, and how soon the variants get to each other's scores."""
    timed = {dataset: steps_to_scores(curves) for dataset, curves in _curves(cells).items()}
    tried_first = [_tried_table(tuning)] if tuning else []
    steps = [steps_table(step_counts, dataset) for dataset, step_counts in timed.items() if step_counts]
    return [*tried_first, *_label_use(cells), *steps]


def _label_use(cells: Sequence[CellResults]) -> list[TitledTable]:
    """Return what each variant made of the labels of each data set."""
    lines = {(cell.entry.dataset, cell.entry.variant): cell.summary[0] for cell in cells if cell.summary}
    table_rows = [[dataset, variant, line] for (dataset, variant), line in lines.items()]
    if not lines:
        return []
    return [TitledTable("Trained on", ["data set", "variant", "examples"], table_rows, numeric=())]


def _ran(cells: Sequence[CellResults]) -> list[EvaluatedModel]:
    """Return one entry a run that was finished or has failed."""
    return [
        # A ranking asks for names and seeds alone.
        EvaluatedModel(name=cell.entry.variant, spec="", protocol="", seed=cell.entry.seed)
        for cell in cells
        if cell.status in ("finished", "failed")
    ]


def _models(cells: Sequence[CellResults]) -> list[EvaluatedModel]:
    """Return one entry a variant, with the time that its cells took."""
    variants: dict[str, list[CellResults]] = {}
    for cell in cells:
        if cell.results:
            variants.setdefault(cell.entry.variant, []).append(cell)
    return [
        EvaluatedModel(
            name=name,
            spec=_differing([_spec(cell) for cell in variant_cells]),
            protocol=_differing([cell.results[0].protocol for cell in variant_cells]),
            seconds={"training and evaluation": sum(float(cell.record.get("seconds", 0.0)) for cell in variant_cells)},
        )
        for name, variant_cells in variants.items()
    ]


def _spec(cell: CellResults) -> str:
    """Return from which model a cell started, and what the file set for it."""
    overrides = ", ".join(f"{key} {value}" for key, value in settings_of(cell).items())
    layers = "" if cell.record["layers"] is None else f", first {cell.record['layers']} layers"
    return f"{cell.record['start']}{layers}" + (f"; {overrides}" if overrides else "")


def _differing(texts: Sequence[str]) -> str:
    """Return what cells have in common, or each thing that some have: data sets may have settings of their own."""
    return " / ".join(dict.fromkeys(texts))


def _figures(
    cells: Sequence[CellResults], grid: Sequence[str], against: str, styles: Mapping[str, Style]
) -> list[Plot]:
    plots = [
        curve_figure(curves, dataset, slug(f"learning-{dataset}"), reference=against, styles=styles)
        for dataset, curves in _curves(cells).items()
    ]
    runs: dict[str, list[Run]] = {}
    for cell in cells:
        if cell.run is not None:
            # the manifest of the run knows a cut start by its folder
            settings = {**cell.run.settings, "model": cell.record["start"], LAYERS: cell.record["layers"]}
            runs.setdefault(cell.entry.dataset, []).append(replace(cell.run, settings=settings))
    return [*plots, *_seed_plots(cells, styles), *setting_figures(runs, grid)]


def _seed_plots(cells: Sequence[CellResults], styles: Mapping[str, Style]) -> list[Plot]:
    """Return for each test set a figure of what every seed of each variant has."""
    values: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        for result in cell.results:
            if (result.metric, result.subset) == ("spearman", "all"):
                variants = values.setdefault(result.dataset, {})
                variants.setdefault(cell.entry.variant, []).append(100 * result.value)
    return [
        seed_figures(
            variants,
            styles=styles,
            score=f"Spearman x100 on {dataset}",
            name=stem("seeds", dataset),
            caption=f"{dataset}: Spearman of every seed; the bar is the mean, the line one standard deviation.",
        )
        for dataset, variants in values.items()
    ]


def _curves(cells: Sequence[CellResults]) -> Curves:
    curves: Curves = {}
    for cell in cells:
        if cell.entry.seed is not None and cell.run is not None and cell.run.curve is not None:
            variants = curves.setdefault(cell.entry.dataset, {})
            variants.setdefault(cell.entry.variant, {})[cell.entry.seed] = cell.run.curve
    return curves


def _failures(cells: Sequence[CellResults]) -> list[Failure]:
    """Return each figure that a failed cell would have, of those that others have on its test sets."""
    tasks = dict.fromkeys((row.task, row.dataset) for cell in cells for row in cell.results)
    return [
        Failure(
            model=cell.entry.variant,
            task=task,
            dataset=name,
            reason=cell.error,
            seed=cell.entry.seed,
            trained=False,
        )
        for cell in cells
        if cell.status == "failed"
        for task, name in tasks
        # The tasks are those of all data sets, and a cell has the test sets of one.
        if name in cell.record["rows"]["tests"]
    ]


def _collect_environments(cells: Sequence[CellResults]) -> dict[str, list[str]]:
    """Return with which versions and in which arithmetic the trained cells were made."""
    values_by_component: dict[str, list[str]] = {}
    for cell in cells:
        for component, value in cell.environment.items():
            if value not in values_by_component.setdefault(component, []):
                values_by_component[component].append(value)
    return values_by_component


def _unlike(cells: Sequence[CellResults]) -> list[str]:
    """Return a line about each version or arithmetic that is not the same for all trained cells."""
    return [
        f"trained with {component} {' and '.join(values)}: differences between runs may come of that"
        for component, values in _collect_environments(cells).items()
        if len(values) > 1
    ]
