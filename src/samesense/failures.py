"""Turns disk, damaged-file and missing-package failures into messages."""

from __future__ import annotations

import errno
import os
import re
import reprlib
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from tokenize import TokenError
from typing import Any

from samesense.errors import MissingExtraError, ModelError, OutputError, SamesenseError

DAMAGED = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    EOFError,
    SyntaxError,
    TokenError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged file raises: numpy parses the head of an array as Python."""

TEMPORARY_ENDING = r"\.(?P<process>\d+)-[0-9a-f]{8}\.part"
TEMPORARY = re.compile(rf"\..+{TEMPORARY_ENDING}")
"""Name of a file or folder that is written beside its place, of which the user knows nothing."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_SHORT_WRITE = re.compile(
    r"\d+ requested and \d+ written|failed writing file|file write failed|unexpected pos \d+ vs \d+"
)
"""What numpy and torch say of a write that a full disk, or a limit of file sizes, cut short."""

_FIXES = {
    errno.ENOSPC: "Free some space, or name a place on another disk.",
    errno.EDQUOT: "Free some space, or name a place on another disk.",
    errno.EFBIG: "Raise the limit of file sizes, as by `ulimit -f unlimited`; a disk may have one of its own.",
    errno.ENAMETOOLONG: "Give a shorter name.",
    errno.EROFS: "Name a place on another disk.",
    errno.EACCES: "Name another place, or see to its permissions.",
}

TEMPORARY_FOLDER = "samesense-"
"""Beginning of the names of temporary folders."""

_IN_TEMPORARY = "It is a temporary file: free some space, or set TMPDIR to a folder on another disk."


def imported(module: str, extra: str) -> Any:
    """Return a module that an extra brings; MissingExtraError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(module.partition(".")[0], extra) from error


@contextmanager
def opening(what: str, fix: str) -> Iterator[None]:
    """Say of ``what`` that it cannot be opened, why, and what helps: a damaged file makes its reader raise anything.

    ModelError for all but the errors of the library itself.
    """
    try:
        yield
    except SamesenseError:
        raise
    except Exception as error:
        raise ModelError(f"Cannot open {what}: {described(error).rstrip('.')}. {fix}") from error


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Say which file could not be written and why."""
    try:
        yield
    except SamesenseError:
        raise
    except Exception as error:
        reason = system_reason(error, _IN_TEMPORARY if _is_temporary(path) else "")
        if reason is None:
            raise
        if _system_number(error) in (errno.ENOSPC, errno.EFBIG):
            reason += space_left(path)
        raise OutputError(f"{path} cannot be written: {reason}") from error


def space_left(path: str | Path) -> str:
    """Say how much room the disk of a file has, now that what was begun of it may be removed."""
    with suppress(OSError):
        folder = next(parent for parent in Path(path).absolute().parents if parent.exists()).resolve()
        disk = next(place for place in (folder, *folder.parents) if place.is_mount())
        usage = shutil.disk_usage(folder)
        return f" The disk at {disk} has {usage.free / 1e6:,.1f} MB free of {usage.total / 1e6:,.1f} MB."
    return ""


def _is_temporary(path: str | Path) -> bool:
    """Return whether a file is in a temporary folder of this library, of which the user knows nothing."""
    for parent in Path(path).absolute().parents:
        if parent.name.startswith(TEMPORARY_FOLDER):
            return parent.parent.resolve() == Path(gettempdir()).resolve()
    return False


def system_reason(error: Exception, fix: str = "") -> str | None:
    """Return what the system said of a file, and what helps; ``None`` for an error that is not the system's.

    ``fix`` is what helps where the file is one that the user has not named. Libraries that are not written in Python
    raise classes of their own, and of some only the words tell.
    """
    number = _system_number(error)
    if number is None and not isinstance(error, OSError):
        return None
    reason = ""
    if number and os.strerror(number) not in str(error):
        reason = f" ({os.strerror(number)})"
    message = _without_temporary_names(str(error))
    if str(error).startswith("[Errno 2] No usable temporary directory"):
        fix = _IN_TEMPORARY
    if number == errno.EFBIG:  # in every place alike
        fix = ""
    return f"{message}{reason}. {fix or _FIXES.get(number or 0, 'Name another place.')}"


def _without_temporary_names(message: str) -> str:
    """Return a message with the folder of a temporary file instead of it, or its final name within a path."""
    within = re.sub(rf"/\.([^/]+){TEMPORARY_ENDING}(?=/)", r"/\1", message)
    return re.sub(rf"/\.[^/]+{TEMPORARY_ENDING}", "", within)


def _system_number(error: Exception) -> int | None:
    """Return the system's number of an error."""
    # Rust's errors, as of safetensors and tokenizers, hold the system's number in their words only.
    if match := re.search(r"\(os error (\d+)\)", str(error)):
        return int(match[1])
    # numpy and torch report a short write without a number; without a limit of file sizes, the disk is full.
    if _SHORT_WRITE.search(str(error)):
        return errno.EFBIG if has_size_limit() else errno.ENOSPC
    return error.errno if isinstance(error, OSError) else None


def has_size_limit() -> bool:
    """Return whether this process may write no file beyond some size."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return False
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def broken_link(path: str | Path) -> str:
    """Return what to say of a link that leads to nothing; ``""`` for all else."""
    if not os.path.islink(path) or os.path.exists(path):  # noqa: PTH110, PTH114 - false for a name that no file can have
        return ""
    return f"{path}: this is a link to {Path(path).readlink()}, which does not exist. Correct the link, or remove it."


def shortened(error: BaseException, most: int = 200) -> str:
    """Return what an error says on one line, shortened to ``most`` characters."""
    return " ".join(str(error).split())[:most]


def visible(text: str) -> str:
    r"""Return a text with its control characters written as escapes, which a terminal shows and does not obey.

    Tabs and line feeds stay. The escapes are those of JSON, which stays JSON.

    >>> print(visible("\x1b[31mred"))
    \u001b[31mred
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shorten_text(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters; of a longer one the end is replaced by three dots.

    >>> shorten_text("a long text", 8)
    'a lon...'
    """
    if len(text) <= most:
        return text
    return f"{text[: most - 3]}..."


def abridged(values: Sequence[object], most: int) -> str:
    """Return the first ``most`` of values for a message, and the number of the others.

    >>> abridged([1, 2, 3, 4], 2)
    '1, 2 and 2 more'
    """
    first = ", ".join(map(str, values[:most]))
    return first if len(values) <= most else f"{first} and {len(values) - most:,} more"


def excerpt(value: object, most: int = 200) -> str:
    """Return the beginning of a value as Python writes it, at a cost that does not grow with the value.

    >>> excerpt(["a" * 1000, 2], 20)
    "['aaaaaaaa ..."
    """
    shortening = reprlib.Repr()
    shortening.maxstring = most
    shortening.maxother = most
    shortening.maxlong = most
    shortening.maxlevel = 3
    try:
        text = shortening.repr(value)
    except ValueError:  # Python writes no whole numbers of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def described(error: BaseException, most: int = 400) -> str:
    """Return what an error of a library says on one line, with its class where that tells what the words do not."""
    message = shortened(error, most)
    if not message:
        return type(error).__name__
    # The text of a KeyError is the bare key, which alone says nothing.
    return f"there is no {message}" if isinstance(error, KeyError) else message


def with_class(error: BaseException, most: int = 200) -> str:
    """Return the class of an error of a library, and on the same line what it says."""
    return ": ".join(filter(None, (type(error).__name__, shortened(error, most))))


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its class where it says nothing.

    Backticks become quotes, as backticks of our messages mark arguments, which a command spells as flags.
    """
    return next(iter(str(error).strip().splitlines()), type(error).__name__).replace("`", "'")
