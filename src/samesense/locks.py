"""Locks of files and folders: one writer at a time, whose lock the operating system frees when its process dies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from samesense.errors import OutputError
from samesense.failures import system_reason
from samesense.files import beside_path, clear_temporary, is_temporary
from samesense.scratch import NO_LOCKS

logger = logging.getLogger(__name__)

LOCK = ".lock"
"""Name of the file in a folder by which its writer holds it; says nothing about what the folder holds."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold a folder, made if it is not there, and clear it of what killed writers left.

    The operating system frees it when a process dies. OutputError if another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    message = (
        f"A folder has one writer at a time, and another process writes to {folder}. Wait for it, or give another "
        "output folder."
    )
    with _held(folder / LOCK, message):
        clear_temporary(folder)
        yield


@contextmanager
def only_writer_of(path: Path) -> Iterator[None]:
    """Hold a file, or a folder that is replaced as a whole, by a lock beside it; its parents are made.

    The system frees it when a process dies; the lock is removed at the end. OutputError if another process holds it.
    """
    message = f"An output has one writer at a time, and another process writes to {path}. Wait for it, or name another."
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = beside_path(path, LOCK)
    with _held(lock, message), _removing(lock):
        clear_temporary(path.parent, path.name)
        yield


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold a file for a moment, to read it and write it again; another process that does so is waited for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = beside_path(path, LOCK)
    with _acquire(lock), _removing(lock):
        yield


@contextmanager
def _removing(lock: Path) -> Iterator[None]:
    try:
        yield
    finally:
        # Windows removes no file that is open.
        with suppress(OSError):
            lock.unlink()


@contextmanager
def _held(lock: Path, message: str) -> Iterator[None]:
    from filelock import Timeout

    try:
        held = _acquire(lock, blocking=False)
    except Timeout as error:
        raise OutputError(message) from error
    with held:
        yield


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; where another process does, call ``on_wait`` and wait for it."""
    from filelock import Timeout

    try:
        held = _acquire(path, blocking=False)
    except Timeout:
        on_wait()
        held = _acquire(path)
    with held:
        yield


_WITHOUT_LOCKS: set[int] = set()
"""Devices of file systems without locks, of which a warning was given."""


def _acquire(lock: Path, *, blocking: bool = True) -> AbstractContextManager[object]:
    """Take a lock; on a file system that has none go on without it, and warn once."""
    from filelock import FileLock, Timeout  # imports asyncio, which takes longer than all else here

    try:
        return FileLock(lock).acquire(blocking=blocking)
    except Timeout:
        raise
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise OutputError(f"{lock} cannot be locked: {system_reason(error)}") from error
    device = lock.parent.stat().st_dev
    if device not in _WITHOUT_LOCKS:
        _WITHOUT_LOCKS.add(device)
        logger.warning(
            f"{lock.parent}: this file system has no locks, so that another process which writes the same output is "
            "not refused. Let no two commands write the same file or folder"
        )
    return nullcontext()


def is_empty(folder: Path) -> bool:
    """Return whether there is nothing in a folder but its lock and what killed writers left."""
    return all(path.name == LOCK or is_temporary(path.name) for path in folder.iterdir())
