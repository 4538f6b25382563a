"""Run a sweep: cell by cell or several at a time, resumable at any moment.

samesense sweep losses.toml --output sweeps/losses
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.errors import ConfigError, OutputError, SamesenseError
from samesense.execution.progress import progress_bar
from samesense.execution.unread import Unread, note
from samesense.files import write_json, write_json_lines
from samesense.locks import is_empty, only_writer
from samesense.places import check_folder
from samesense.recipes.sweep.cell import CellJob, read_record, record, status_of, with_cut_start
from samesense.recipes.sweep.pace import RunBudget, RunClock, check_max_runs, describe_progress
from samesense.recipes.sweep.plan import Cell, Plan, with_chosen
from samesense.recipes.sweep.workers import Jobs, Places, check_jobs, run_cells
from samesense.reports.store import read_run

logger = logging.getLogger(__name__)

PLAN = "sweep.json"
PAIRS = "pairs"


@dataclass(frozen=True)
class SweepOutput:
    """How many cells of a sweep are finished, have failed, and are left, and whether it was interrupted."""

    finished: int
    failed: int
    left: int
    interrupted: bool


def describe(plan: Plan) -> Iterator[str]:
    """Yield lines on each data set: rows used, pairs that leak, and warnings."""
    for (name, _), splits in plan.splits.items():
        sizes = [f"train {len(splits.train)}"]
        sizes += [f"{set_name} {len(data)}" for set_name, data in splits.evaluation_data().items()]
        kind = f" ({splits.train.kind})" if isinstance(splits.train, PairData) else ""
        yield f"{name}: {', '.join(sizes)}{kind}"
    yield from (f"warning: {warning}" for warning in plan.warnings)
    yield from (f"left out: {dataset}, {variant}: {reason}" for (variant, dataset), reason in plan.skipped.items())


def run(
    plan: Plan,
    output: Path,
    *,
    jobs: Jobs = 1,
    datasets: str | Sequence[str] | None = None,
    max_runs: int | None = None,
) -> SweepOutput:
    """Run every cell that is not finished; of some ``datasets`` alone, where they are named.

    ``max_runs`` is how many are run at most by this call; the next one goes on. ``output`` was checked by
    :func:`check_output`, before other outputs were begun in it.

    A failed cell is recorded, and tried again by the next call. The first Ctrl-C lets the running cells write a
    checkpoint. With ``jobs`` of 1 they run in this process, else in one of its own each; see
    :class:`samesense.recipes.sweep.workers.Places`.
    """
    check_jobs(jobs)
    check_max_runs(max_runs)
    selected = datasets_of(plan, datasets)
    places = Places(jobs)
    with only_writer(output):
        # Written before the first run, so that a report can name what is missing.
        begin(plan, output)
        _warn_of_deleted_models(plan, selected, output)
        budget = RunBudget(max_runs)
        interrupted = bool(plan.tuning) and _run_cells(plan, plan.tuning, selected, output, places, budget)
        # With something left to try, the best is not known yet.
        if not interrupted and not budget.is_spent:
            plan = with_tuned_cells(plan, selected, output)
            interrupted = _run_cells(plan, plan.cells, selected, output, places, budget)
    note(_sum_unread(plan, selected, output), places)
    states = [status_of(cell.folder(output)) for cell in plan.every if cell.dataset in selected]
    finished = states.count("finished")
    failed = states.count("failed")
    return SweepOutput(finished, failed, len(states) - finished - failed, interrupted)


def _sum_unread(plan: Plan, datasets: set[str], output: Path) -> Unread:
    """Return what was not read of the texts of each data set: that of the cell which counted most, as all read them."""
    most: dict[str, Unread] = {}
    for cell in plan.every:
        if cell.dataset in datasets:
            unread = Unread()
            unread.add_summary(read_record(cell.folder(output)).get("unread", {}))
            largest = most.setdefault(cell.dataset, unread)
            if sum(unread.figures.values()) > sum(largest.figures.values()):
                most[cell.dataset] = unread
    every = Unread()
    for unread in most.values():
        every.take(unread)
    return every


def check_output(output: Path) -> None:
    """Raise OutputError where no sweep can be written, nor gone on with."""
    check_folder(output)
    if output.is_file():
        raise OutputError(f"A sweep is a folder; {output} is a file. Choose another output folder.")
    if output.is_dir() and not is_empty(output) and not (output / PLAN).is_file():
        raise OutputError(f"{output} is not empty and holds no sweep. Choose another output folder.")


def datasets_of(plan: Plan, datasets: str | Sequence[str] | None) -> set[str]:
    """Return the data sets whose cells are run: those that are named, or all; ConfigError for one that is not there."""
    if isinstance(datasets, str):
        datasets = [datasets]
    names = [entry.name for entry in plan.file.data]
    unknown = next((name for name in datasets or () if name not in names), None)
    if unknown is not None:
        raise ConfigError(f"datasets names data sets of the sweep, {', '.join(names)}; received {unknown!r}.")
    return set(datasets or names)


def with_tuned_cells(plan: Plan, datasets: set[str], output: Path) -> Plan:
    """Return the plan with the cells of the tuned variants, with the settings that were the best on dev."""
    if not plan.tuning:
        return plan
    chosen = _best_tried(plan, datasets, output)
    for (variant, dataset), (score, best) in chosen.items():
        words = ", ".join(f"{name} {value}" for name, value in best.items())
        logger.info(f"chosen: {dataset}, {variant}: {words}, dev {100 * score:.2f}")
    for variant, dataset in dict.fromkeys((str(cell.tried_for), cell.dataset) for cell in plan.tuning):
        if (variant, dataset) not in chosen and dataset in datasets:
            logger.warning(f"not run: {dataset}, {variant}: nothing that was tried for it is finished")
    settled_plan = with_chosen(plan, {key: best for key, (_, best) in chosen.items()})
    # Again, now with the cells that the choice has added.
    begin(settled_plan, output)
    return settled_plan


def _best_tried(plan: Plan, datasets: set[str], output: Path) -> dict[tuple[str, str], tuple[float, dict[str, Any]]]:
    """Return for each variant and data set the best dev score of what was tried, and its settings.

    A data set that is not run now, and has something left to try, is left out: what is tried last may be the best.
    """
    tried = [(cell, cell.folder(output)) for cell in plan.tuning]
    finished = {folder for _, folder in tried if status_of(folder) == "finished"}
    unfinished_datasets = {cell.dataset for cell, folder in tried if folder not in finished} - datasets
    best: dict[tuple[str, str], tuple[float, dict[str, Any]]] = {}
    for cell, folder in tried:
        if cell.dataset in unfinished_datasets or folder not in finished:
            continue
        key = str(cell.tried_for), cell.dataset
        score = _best_dev(folder)
        # Of equal scores the one tried first stays.
        if score > best.get(key, (float("-inf"),))[0]:
            best[key] = score, cell.tried
    return best


def _run_cells(
    plan: Plan, every: Sequence[Cell], datasets: set[str], output: Path, places: Places, budget: RunBudget
) -> bool:
    """Run what is not finished of some data sets, within the budget; returns whether that was interrupted."""
    cells = [cell for cell in every if cell.dataset in datasets]
    unfinished = [cell for cell in cells if status_of(cell.folder(output)) != "finished"]
    waiting = budget.take(unfinished)
    what = "runs" if every is plan.cells else "runs to choose by"
    later = ""
    if len(waiting) < len(unfinished):
        later = f"; {len(waiting)} of the others now, as max_runs asks"
    logger.info(f"{len(cells)} {what}, {len(cells) - len(unfinished)} of them finished{later}")
    clock = RunClock(len(waiting))
    cell_jobs = _make_jobs(waiting, plan, output)
    interrupted = False
    try:
        with progress_bar("sweep", "run", len(cells), initial=len(cells) - len(unfinished)) as bar:

            def show(running: Sequence[CellJob]) -> None:
                bar.set_postfix(describe_progress(running))

            for job, status in run_cells(cell_jobs, places, show):
                # The others still write their checkpoints.
                if status == "interrupted":
                    interrupted = True
                    continue
                bar.update()
                clock.tell(job, status)
                _delete_models(plan, output, job.cell.dataset)
    except KeyboardInterrupt:
        interrupted = True
    return interrupted


def begin(plan: Plan, output: Path) -> None:
    """Write the plan, and the pairs of its test sets and what selects, to which the kept scores belong."""
    for splits in plan.splits.values():
        evaluated = list(splits.tests.values())
        if splits.dev is not None:
            evaluated.append(splits.dev)
        for data in evaluated:
            _write_pairs(output / PAIRS / f"{data.sha256}.jsonl", data)
    write_json(output / PLAN, _plan_content(plan, output), sync=True)


def _plan_content(plan: Plan, output: Path) -> dict[str, Any]:
    """Return a plan as it is stored."""
    return {
        "config": plan.file.config,
        "keep": plan.file.keep,
        "against": plan.file.reference,
        "grid": plan.file.grid,
        "warnings": plan.warnings,
        "skipped": [f"{dataset}, {variant}: {why}" for (variant, dataset), why in plan.skipped.items()],
        "dev": {entry.name: _dev_origin(entry.dev) for entry in plan.file.data},
        "reading": {entry.name: entry.reading() for entry in plan.file.data},
        "tuning": [
            {
                "variant": cell.tried_for,
                "dataset": cell.dataset,
                "tried": cell.tried,
                "folder": cell.folder(output).name,
                "chosen": plan.chosen.get((str(cell.tried_for), cell.dataset)) == cell.tried,
            }
            for cell in plan.tuning
        ],
        "cells": [
            {"variant": cell.variant, "dataset": cell.dataset, "seed": cell.seed, "folder": cell.folder(output).name}
            for cell in plan.cells
        ],
    }


def _dev_origin(dev: str) -> str:
    """Return ``dev`` of a data set without the path of a source."""
    if dev == "none" or dev.startswith("hold "):
        return dev
    return "source"


def _write_pairs(path: Path, data: PairData) -> None:
    if not path.is_file():
        # A file has the name of its content, so that one which is there is the same.
        rows = zip(data.sentences1, data.sentences2, data.labels, strict=True)
        write_json_lines(path, rows, sync=True)


def _make_jobs(cells: Sequence[Cell], plan: Plan, output: Path) -> Iterator[CellJob]:
    """Yield what is to be done; a cell whose start model cannot be cut has failed, and the others are run."""
    for cell in cells:
        job = CellJob(cell, plan.splits_of(cell), cell.folder(output), plan.file.test_precision)
        try:
            job = replace(job, cell=with_cut_start(cell, output))
        except OutputError:  # no other cell could be written either
            raise
        except SamesenseError as error:
            logger.warning(f"{cell.name}: {error}")
            record(job, "failed", error=str(error))
            continue
        yield job


def _delete_models(plan: Plan, output: Path, dataset: str) -> None:
    """Delete the models that are not kept."""
    if plan.file.keep == "all":
        return
    folders = [cell.folder(output) for cell in plan.every if cell.dataset == dataset]
    done = [folder for folder in folders if (folder / "model").is_dir() and status_of(folder) == "finished"]
    if plan.file.keep == "best" and done:
        done.remove(max(done, key=_best_dev))
    for folder in done:
        shutil.rmtree(folder / "model", ignore_errors=True)


def _warn_of_deleted_models(plan: Plan, datasets: set[str], output: Path) -> None:
    """Warn of models that are to be kept now, and were not when their cells ended."""
    if plan.file.keep == "none":
        return
    gone: list[Path] = []
    for dataset in datasets:
        cells = [cell for cell in plan.every if cell.dataset == dataset and cell.seed is not None]
        folders_of_cells = [cell.folder(output) for cell in cells]
        done = [folder for folder in folders_of_cells if status_of(folder) == "finished"]
        if plan.file.keep == "all" or not done:
            folders = done
        else:
            folders = [max(done, key=_best_dev)]
        gone += [folder for folder in folders if not (folder / "model").is_dir()]
    if gone:
        logger.warning(
            f'keep = "{plan.file.keep}": {len(gone)} finished runs have no model any more, as it was not kept when '
            f"they ended. To train them again, delete their folders: {', '.join(folder.name for folder in gone)}"
        )


def _best_dev(folder: Path) -> float:
    curve = read_run(folder).curve
    if curve is None:
        return float("-inf")
    return curve.best[1]
