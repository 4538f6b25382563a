"""One writer of a folder at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from samesense.errors import OutputError

LOCK = ".lock"
"""Name of the file in a folder by which its writer holds it; says nothing about what the folder holds."""


@contextmanager
def only_writer(folder: Path, wait: float = 0) -> Iterator[None]:
    """Hold a folder, made if it is not there; the operating system frees it when a process dies.

    Args:
        folder: to write to.
        wait: seconds to wait for another writer.

    Raises:
        OutputError: if another process still holds it then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=wait)
    except Timeout as error:
        waited = f", and has done so for {wait:g} s" if wait else ""
        raise OutputError(
            f"A folder has one writer at a time, and another process writes to {folder}{waited}. Wait for it, or give "
            "another output folder."
        ) from error
    try:
        yield
    finally:
        lock.release()


def is_empty(folder: Path) -> bool:
    """Return whether there is nothing in a folder but its lock."""
    return all(path.name == LOCK for path in folder.iterdir())
