"""The process that started this one."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from threading import Thread


def when_parent_ends(act: Callable[[], object]) -> None:
    """Start a thread that calls ``act`` when the ``multiprocessing`` parent of this process ends for any reason."""
    parent = parent_process()
    if parent is not None:
        Thread(target=_wait, args=(parent, act), daemon=True).start()


def _wait(parent: BaseProcess, act: Callable[[], object]) -> None:
    parent.join()
    act()
