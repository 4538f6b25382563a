"""Temporary folders: removed at their end, and those of killed processes when the next one is made."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType

from samesense.failures import TEMPORARY_FOLDER

HELD = ".held"
"""Name of the file in a temporary folder that its process holds; the system frees it when the process dies."""


NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)
"""What file systems without locks say, as some of clusters are."""

FRESH = 60
"""Seconds for which a temporary folder is left alone, even if no process holds it."""


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder in ``TMPDIR``, removed when its block, its object or the process ends.

    A killed process leaves its folder, which may hold gigabytes: the next one on the same machine removes it.
    """

    def __init__(self) -> None:
        from filelock import FileLock  # imports asyncio, which takes longer than all else here

        clear_scratch()
        # On Windows a file that is open or mapped cannot be deleted.
        super().__init__(prefix=_prefix(), ignore_cleanup_errors=True)
        self._lock = FileLock(Path(self.name) / HELD)
        try:
            self._lock.acquire(blocking=False)
        except OSError as error:
            # Where there are no locks, no other process removes the folder.
            if error.errno not in NO_LOCKS:
                raise

    @classmethod
    def _cleanup(cls, name: str, *_: object, **__: object) -> None:
        # That its object or the process ends is how it is meant to go, and no reason for a ResourceWarning.
        shutil.rmtree(name, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the folder."""
        self._lock.release()
        super().__exit__(kind, error, traceback)


def _prefix() -> str:
    """Return the beginning of the names of temporary folders of this machine."""
    host = re.sub(r"[^\w.-]", "_", platform.node())
    return f"{TEMPORARY_FOLDER}{host}-"


_RANDOM = "?" * 8
"""Pattern of the end that the tempfile module gives the name of a folder."""


def _user() -> int:
    if os.name == "posix":
        return os.getuid()
    return 0  # as files of Windows have it


def clear_scratch() -> None:
    """Remove the temporary folders of this user's processes that were killed on this machine.

    Others are left alone: on a file system that machines share, a lock may hold on one of them only.
    """
    from filelock import FileLock, Timeout

    for held in Path(gettempdir()).glob(f"{_prefix()}{_RANDOM}/{HELD}"):
        # It may be gone by now.
        with suppress(OSError, Timeout):
            status = held.stat()
            # A new one may not be held yet.
            if status.st_uid == _user() and status.st_mtime < time.time() - FRESH:
                with FileLock(held).acquire(blocking=False):
                    shutil.rmtree(held.parent)
