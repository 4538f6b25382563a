"""Processes of workers: they do not run the script of the user a second time, and end with the one that made them."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import parent_process, spawn
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from threading import RLock, Thread, get_ident
from typing import Any

_ONE_AT_A_TIME = RLock()


def start(process: BaseProcess, *arguments: object) -> None:
    """Start a spawned process, whose ``arguments`` these are.

    A spawned process imports the main module. Without ``if __name__ == "__main__"`` it would do all of the script
    again, and overwrite what it wrote, so the main module is left out unless the arguments need it.
    """
    if b"__main__" in bytes(ForkingPickler.dumps(arguments)):
        process.start()
        return
    caller = get_ident()
    with _ONE_AT_A_TIME:
        prepare = spawn.get_preparation_data

        def prepare_without_main(name: str) -> dict[str, Any]:
            data = prepare(name)
            # Another thread may start processes of its own meanwhile.
            if get_ident() != caller:
                return data
            return {key: value for key, value in data.items() if not key.startswith("init_main_")}

        spawn.get_preparation_data = prepare_without_main
        try:
            process.start()
        finally:
            spawn.get_preparation_data = prepare


def when_parent_ends(act: Callable[[], object]) -> None:
    """Start a thread that calls ``act`` when the ``multiprocessing`` parent of this process ends for any reason."""
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        act()

    Thread(target=wait, daemon=True).start()
