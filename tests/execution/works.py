"""Work for executors, in a module that workers can import."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from samesense.errors import DataError

THREADS = os.environ.get("OMP_NUM_THREADS")
"""As it was when this, and so all that it might have imported, was imported."""


@dataclass(frozen=True)
class Squares:
    """Squares numbers, and meets accidents that are noted in a folder: (task, accident, how often)."""

    folder: Path
    accidents: tuple[tuple[int, str, int], ...] = ()
    seconds: float = 0.0

    def __call__(self, task):
        tries = self.folder / f"{task}"
        with tries.open("a") as stream:
            stream.write("x")
        for number, accident, times in self.accidents:
            if number == task and len(tries.read_text()) <= times:
                self.meet(accident, task)
        time.sleep(self.seconds)
        return task * task, os.getpid(), THREADS

    def meet(self, accident, task):
        if accident == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif accident == "exits":
            os._exit(3)
        elif accident == "refuses":
            raise DataError(f"task {task} breaks a rule")
        raise RuntimeError(f"task {task} fails")

    def tries(self, task):
        return len((self.folder / f"{task}").read_text())


@dataclass(frozen=True)
class OwnGpu:
    """Says which GPU a task was given; leaves a file for each number of tasks that were at work at once."""

    folder: Path

    def __call__(self, task):
        import ray

        mine = self.folder / f"busy-{task}"
        mine.touch()
        (self.folder / f"at-once-{len(list(self.folder.glob('busy-*')))}").touch()
        time.sleep(0.3)
        mine.unlink()
        return ray.get_runtime_context().get_accelerator_ids()["GPU"]
