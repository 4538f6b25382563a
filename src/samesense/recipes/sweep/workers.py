"""Where cells run: in this process, or in one of its own each, which gives all memory back; and how many at a time."""

from __future__ import annotations

import logging
import os
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Literal

from samesense.errors import ConfigError, OutputError
from samesense.execution.shards.spawned import start, when_parent_ends
from samesense.execution.threads import cores
from samesense.execution.torch_import import uncollected
from samesense.execution.unread import counted
from samesense.hashes import json_hash
from samesense.recipes.sweep.cell import CellJob, read_record, record, run_cell, status_of
from samesense.recipes.sweep.plan import Cell
from samesense.training import manifest

logger = logging.getLogger(__name__)

Jobs = int | Literal["auto"]

TOGETHER = 2
"""Cells that ``auto`` tries at a time: each holds a model, its gradients and the state of its optimiser."""

LOOK = 2.0
"""Seconds between two looks at how far the running cells are."""

Watch = Callable[[Sequence[CellJob]], None]
"""Called every :data:`LOOK` seconds with the cells that run."""

UNWRITTEN = 3
"""Exit code of a process whose cell could not be written."""

COSTLESS = frozenset(
    {
        "early_stopping_patience",
        "epochs",
        "eval_steps",
        "learning_rate",
        "lr_scheduler_type",
        "margin",
        "max_grad_norm",
        "max_steps",
        "temperature",
        "threshold",
        "warmup_ratio",
        "weight_decay",
    }
)
"""Settings that leave the time of a step as it is."""


def check_jobs(jobs: Jobs) -> None:
    """Raise ConfigError unless a cell can run."""
    if jobs != "auto" and jobs < 1:
        raise ConfigError(f"`jobs` must be auto, or 1 or more; received {jobs}.")


class Places:
    """How many cells run at a time: as many as asked for or, by ``auto``, one or two, whichever is faster.

    The first cell that is trained runs alone, and the next ones two at a time. Once one of each has taken the same kind
    of step, it is known what is faster.
    """

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self._jobs: int | None  # None until it is measured which is faster
        if jobs != "auto":
            self._jobs = jobs
        elif cores() > 1 and not _has_gpu():
            self._jobs = None
        else:
            self._jobs = 1
        self._seconds: dict[str, dict[int, float]] = {}

    @property
    def count(self) -> int:
        """Cells that may run now."""
        return self._jobs or (TOGETHER if self._seconds else 1)

    def learn(self, job: CellJob, beside: int) -> None:
        """Record the seconds a step of a finished cell that ran among ``beside`` cells."""
        seconds = _seconds_a_step(job)
        if self._jobs is not None or seconds is None:
            return
        seconds_by_count = self._seconds.setdefault(_kind_of(job.cell), {})
        seconds_by_count[beside] = seconds
        if len(seconds_by_count) == TOGETHER:
            gain = TOGETHER * seconds_by_count[1] / seconds_by_count[TOGETHER]
            self._jobs = TOGETHER if gain > 1 else 1
            logger.info(
                f"two runs at a time make {gain:.2f} times the steps of one: {self._jobs} at a time from now on"
            )

    def lessen(self) -> None:
        """Go on with one at a time, as there may be no memory for more; what was asked for stays."""
        if self._jobs is None:
            self._jobs = 1


def _has_gpu() -> bool:
    import torch

    return torch.accelerator.is_available()


def _seconds_a_step(job: CellJob) -> float | None:
    """Return how long a step of a cell took that ran without interruption; None for what was not trained."""
    if job.cell.seed is None or status_of(job.folder) != "finished":
        return None
    outcome = manifest.read(job.folder)["outcome"]
    training: float = outcome["spent"].get("training", 0.0)
    steps: int = outcome["steps"]
    if training and steps:
        return training / steps
    return None


def _kind_of(cell: Cell) -> str:
    """Return the same for cells whose steps take the same time on the same threads."""
    settings = {name: value for name, value in cell.identity["settings"].items() if name not in COSTLESS | {"seed"}}
    return json_hash({**cell.identity, "settings": settings})


def run_cells(cell_jobs: Iterator[CellJob], places: Places, watch: Watch) -> Iterator[tuple[CellJob, str]]:
    """Run cells, in this process if one at a time was asked for; yields those that have ended, with their status.

    After Ctrl-C none is begun, those that run write a checkpoint, and KeyboardInterrupt ends it. A cell in this process
    shows itself how far it is; of those in processes of their own ``watch`` is called.
    """
    if places.jobs == 1:
        return _one_by_one(cell_jobs)
    return _in_processes(cell_jobs, places, watch)


def _one_by_one(cell_jobs: Iterator[CellJob]) -> Iterator[tuple[CellJob, str]]:
    for job in cell_jobs:
        logger.info(job.cell.name)
        with counted(apart=True):  # the sweep says it once, by the records of its cells
            status = run_cell(job)
        yield job, status
        if status == "interrupted":
            return


def _in_processes(cell_jobs: Iterator[CellJob], places: Places, watch: Watch) -> Iterator[tuple[CellJob, str]]:
    """Run each cell in a process of its own; one that is killed takes no other along."""
    running: dict[BaseProcess, tuple[CellJob, int]] = {}  # with how many it began beside; 0 if it goes on
    stopping = False
    try:
        while True:
            try:
                if not stopping:
                    _fill_places(cell_jobs, places, running)
                if not running:
                    break
                if not wait([process.sentinel for process in running], LOOK):
                    watch([job for job, _ in running.values()])
            except KeyboardInterrupt:
                stopping = True
                _interrupt(running)
            # Over a list, as cells are taken out of `running` meanwhile.
            for process in [process for process in running if not process.is_alive()]:
                running_count = len(running)
                job, beside = running.pop(process)
                status = _outcome(job, process.exitcode, stopping)
                if running_count == beside:  # to its end: the last ones have the machine to themselves
                    places.learn(job, beside)
                # An exit code means that the process was killed, perhaps for want of memory.
                if status == "failed" and process.exitcode:
                    places.lessen()
                yield job, status
    finally:
        _interrupt(running)
    if stopping:
        raise KeyboardInterrupt


def _fill_places(cell_jobs: Iterator[CellJob], places: Places, running: dict[BaseProcess, tuple[CellJob, int]]) -> None:
    """Begin cells until every place is taken, or there is none left to begin."""
    while len(running) < places.count and (job := next(cell_jobs, None)) is not None:
        logger.info(job.cell.name)
        beside = places.count if status_of(job.folder) == "absent" else 0
        # The processes share the cores, and more threads than cores slow all of them.
        process = _process_of(job, max(1, cores() // places.count))
        running[process] = job, beside  # before it starts: Ctrl-C may come at any moment
        with _held_back():
            start(process, job)


def _process_of(job: CellJob, threads: int) -> BaseProcess:
    """Return a process for a cell, to be started."""
    record(job, "running")  # replaces the status that an earlier run left there
    # A fork would copy the locks of torch's threads without the threads that free them.
    return get_context("spawn").Process(target=_child, args=(job, threads))


@contextmanager
def _held_back() -> Iterator[None]:
    """Keep Ctrl-C waiting, in a process that is started here too: there, until :func:`_child` lets it through."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its first start lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(running: Iterable[BaseProcess]) -> None:
    """Pass Ctrl-C on: each cell writes a checkpoint and ends.

    On Windows it has reached the cells already, from the console, and a signal from here would end them at once.
    """
    if os.name == "nt":
        return
    for process in running:
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)


def _outcome(job: CellJob, exitcode: int | None, stopping: bool) -> str:
    """Return what became of a cell whose process has ended; OutputError if it could not be written."""
    # A process that was killed has left the status running.
    status = status_of(job.folder)
    if exitcode == UNWRITTEN:
        if status == "running":
            record(job, "failed", error=f"{job.folder} cannot be written. Free some space.")
        raise OutputError(read_record(job.folder)["error"])
    if status != "running":
        return status
    if stopping:
        return record(job, "interrupted")
    return record(job, "failed", error=f"Its process ended with code {exitcode}, perhaps for want of memory.")


def _child(job: CellJob, threads: int) -> None:
    """Run a cell in this process, which hears of Ctrl-C from its parent alone, where the system can part them.

    It ends as by Ctrl-C when its parent ends.
    """
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script ignores it for what it runs in the background
    when_parent_ends(interrupt_main)
    # Ctrl-C that was held back is raised where it is let through.
    with suppress(KeyboardInterrupt):
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        # An import takes seconds, and one that is broken off says so.
        with _held_back(), uncollected():
            import sentence_transformers  # noqa: F401 - with all that it imports
            import torch

        # By default, each process would take threads for all cores.
        torch.set_num_threads(threads)
        with counted(apart=True):
            try:
                run_cell(job)
            except OutputError:
                sys.exit(UNWRITTEN)  # its record says why, or cannot be written either
