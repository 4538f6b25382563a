"""Standard streams that are closed or full, or whose reader is gone: the work is done, and the exit code right.

Source: POSIX, exec: a program whose standard streams are closed gets their numbers for the first files that it opens,
so that words for people would be written into them.
"""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path


def stand_in_for_closed() -> None:
    """Open the null device in the place of standard streams that are closed.

    Data and words for people then go nowhere, as with ``> /dev/null``. Standard input stays closed for whoever asks
    ``sys.stdin``, so that a command which reads it says so.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _open_null(number)
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif sys.stderr is sys.__stderr__:
        sys.stderr = _never_failing(sys.stderr)


def _open_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)


class _NeverFailing(io.FileIO):
    """A file to which nothing is written where it cannot be: what people are told is not what they asked for."""

    def write(self, content: object) -> int:
        """Write bytes, or drop them; return their number."""
        try:
            return super().write(content)  # type: ignore[arg-type]
        except OSError:
            return len(memoryview(content))  # type: ignore[arg-type]


def _never_failing(stream: io.TextIOBase | object) -> io.TextIOWrapper:
    number = stream.fileno()  # type: ignore[union-attr]
    raw = _NeverFailing(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


def flush_output() -> None:
    """Write what standard output holds; OSError if it fails, which would otherwise be met when Python ends."""
    sys.stdout.flush()


def drop_output() -> None:
    """Drop what standard output still holds and cannot be written, which would change the exit code at the end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def output_is_broken() -> bool:
    """Return whether the reader of standard output is gone: it may be another pipe or a connection that broke."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    if not hasattr(select, "poll"):
        return True
    pipe = select.poll()
    pipe.register(number, 0)
    return any(event & select.POLLERR for _, event in pipe.poll(0))
