"""Handles standard streams that are closed or full, or whose reader is gone, with the right exit code.

Source: POSIX, exec: a program whose standard streams are closed gets their numbers for the first files that it opens,
so that messages would be written into those files.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path


def replace_closed_streams() -> None:
    """Open the null device in place of closed standard streams.

    Data and messages are then discarded, as with ``> /dev/null``. ``sys.stdin`` stays ``None``, so that a command that
    reads it can say so.
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


def write_utf8() -> None:
    """Write standard output as UTF-8, as files are: the encoding of a locale may lack characters of the texts."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
        # Names of files may have bytes that are no text.
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _open_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    # open takes the lowest free number, which may be that of another closed stream.
    if null != number:
        os.dup2(null, number)
        os.close(null)
    # So that a process started by this one has the three streams too.
    os.set_inheritable(number, True)


class _NeverFailing(io.FileIO):
    """A file that drops what cannot be written: a message that is lost must not fail the command."""

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
    """Flush standard output now; OSError if that fails, which Python would otherwise report at its exit."""
    sys.stdout.flush()


def drop_output() -> None:
    """Discard the buffer of standard output that cannot be written, and would change the exit code."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        # Python flushes its buffer at exit, and would fail again.
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def output_is_broken() -> bool:
    """Return whether the reader of standard output is gone, and not another pipe or connection."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return False
    # Windows has no poll: a broken pipe is taken for that of the output.
    if not hasattr(select, "poll"):
        return True
    pipe = select.poll()
    pipe.register(number, 0)
    # POLLERR on the writing end means that nobody reads.
    return any(event & select.POLLERR for _, event in pipe.poll(0))
