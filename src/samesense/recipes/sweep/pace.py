"""How far a sweep is: how many runs a call may begin, what the running ones do, and how long the others may take."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from samesense.errors import ConfigError
from samesense.execution.timing import clock_time
from samesense.recipes.sweep.cell import RESULTS, CellJob, read_record
from samesense.recipes.sweep.plan import Cell
from samesense.reports import read_results
from samesense.reports.store import read_run
from samesense.training import manifest

logger = logging.getLogger(__name__)


def check_max_runs(max_runs: int | None) -> None:
    """Raise ConfigError unless it is a number of runs, or ``None`` for all."""
    if max_runs is not None and max_runs < 1:
        raise ConfigError(f"`max_runs` is a number of runs from 1 on; received {max_runs}. Leave it out for all.")


class RunBudget:
    """How many runs a call may still begin."""

    def __init__(self, runs: int | None) -> None:
        self.runs = runs
        self.is_spent = False  # whether a run was left for the next call

    def take(self, waiting: Sequence[Cell]) -> Sequence[Cell]:
        """Return the cells that are run now, in their order."""
        if self.runs is None:
            return waiting
        chosen = waiting[: self.runs]
        self.runs -= len(chosen)
        self.is_spent = len(chosen) < len(waiting)
        return chosen


def describe_progress(running: Sequence[CellJob]) -> dict[str, str]:
    """Return the last step that each of the running cells has logged, and its last score on dev."""
    steps = [step for job in running if (step := _last_step(job.folder)) is not None]
    if not steps:
        return {}
    return {"at step": " and ".join(steps)}


def _last_step(folder: Path) -> str | None:
    if not (folder / manifest.FILE).is_file():  # it is still loading
        return None
    run = read_run(folder)
    # The loss is logged more often than dev is evaluated.
    step = max((curve.steps[-1] for curve in (run.curve, run.losses) if curve is not None), default=None)
    dev = "" if run.curve is None else f" (dev {100 * run.curve.values[-1]:.2f})"
    if step is None:
        return None
    return f"{step:.0f}{dev}"


class RunClock:
    """Logs how each cell ended, and how long the rest may take."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.done = 0
        self.started = time.perf_counter()

    def tell(self, job: CellJob, status: str) -> None:
        """Log the figures of a cell that has ended, or why it failed."""
        self.done += 1
        spent = time.perf_counter() - self.started
        left = spent / self.done * (self.cells - self.done)
        if status == "failed":
            outcome = read_record(job.folder)["error"].splitlines()[-1]
        else:
            outcome = _figures(job)
        logger.info(f"{self.done} of {self.cells}: {job.cell.name}: {outcome}; about {clock_time(left)} left")


def _figures(job: CellJob) -> str:
    results = read_results(job.folder / RESULTS)
    main_rows = [row for row in results if (row.metric, row.subset) == ("spearman", "all")]
    return ", ".join(f"{row.dataset} {100 * row.value:.2f}" for row in main_rows)
