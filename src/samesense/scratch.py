"""Temporary folders: removed at their end, and those of killed processes when the next one is made."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType

from samesense.failures import TEMPORARY_FOLDER

HELD = ".held"
"""Name of the file in a temporary folder that its process holds; the system frees it when the process dies."""


FRESH = 60
"""Seconds for which a temporary folder is left alone, even if no process holds it."""


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder in ``TMPDIR``, removed when its block, its object or the process ends.

    A killed process leaves its folder, which may hold gigabytes: the next one that is made removes it.
    """

    def __init__(self) -> None:
        from filelock import FileLock  # imports asyncio, which takes longer than all else here

        clear_scratch()
        # On Windows a file that is open or mapped cannot be deleted.
        super().__init__(prefix=TEMPORARY_FOLDER, ignore_cleanup_errors=True)
        self._lock = FileLock(Path(self.name) / HELD)
        self._lock.acquire(blocking=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the folder."""
        self._lock.release()
        super().__exit__(kind, error, traceback)


def clear_scratch() -> None:
    """Remove the temporary folders of processes that were killed."""
    from filelock import FileLock, Timeout

    for held in Path(gettempdir()).glob(f"{TEMPORARY_FOLDER}*/{HELD}"):
        # It may be another user's, or gone by now.
        with suppress(OSError, Timeout):
            # A new one may not be held yet.
            if held.stat().st_mtime < time.time() - FRESH:
                with FileLock(held).acquire(blocking=False):
                    shutil.rmtree(held.parent)
