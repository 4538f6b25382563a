"""Several cells at a time, each in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from samesense.recipes.sweep.cell import CellJob, record, run_cell, status_of


def side_by_side(cell_jobs: Iterator[CellJob], jobs: int) -> Iterator[tuple[CellJob, str]]:
    """Run each cell in a process of its own, so that one that is killed takes no other along."""
    threads = max(1, len(os.sched_getaffinity(0)) // jobs) if hasattr(os, "sched_getaffinity") else 1
    running: dict[BaseProcess, CellJob] = {}
    stopping = False
    try:
        while True:
            try:
                while not stopping and len(running) < jobs and (job := next(cell_jobs, None)) is not None:
                    process = _begun(job, threads)
                    running[process] = job
                if not running:
                    return
                wait([process.sentinel for process in running])
            except KeyboardInterrupt:
                stopping = True
                _interrupt(running)
            for process in [process for process in running if not process.is_alive()]:
                job = running.pop(process)
                yield job, _outcome(job, process.exitcode, stopping)
    finally:
        _interrupt(running)


def _begun(job: CellJob, threads: int) -> BaseProcess:
    """Start a process for a cell."""
    record(job, "running")  # whatever an earlier run left there no longer counts
    process = get_context("spawn").Process(target=_child, args=(job, threads))
    process.start()
    return process


def _interrupt(running: dict[BaseProcess, CellJob]) -> None:
    """Pass Ctrl-C on: each cell writes a checkpoint and ends."""
    for process in running:
        if process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)


def _outcome(job: CellJob, exitcode: int | None, stopping: bool) -> str:
    status = status_of(job.folder)
    if status != "running":
        return status
    if stopping:
        return record(job, "interrupted")
    return record(job, "failed", error=f"Its process ended with code {exitcode}, perhaps for want of memory.")


def _child(job: CellJob, threads: int) -> None:
    """Run a cell in this process, which hears of Ctrl-C from its parent alone."""
    if hasattr(os, "setsid"):
        os.setsid()
    with suppress(KeyboardInterrupt):
        import torch

        torch.set_num_threads(threads)
        run_cell(job)
