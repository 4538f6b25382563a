"""Names of sources, and those that are URLs, such as ``s3://bucket/texts.parquet``: read and written by fsspec.

``file://`` is the file itself. Keys and other settings of a store are those that fsspec reads from its environment and
configuration. fsspec knows many more kinds; some unpack archives, follow references or run commands, and any
package may add others; what is not one of :data:`SCHEMES` is refused before fsspec sees it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from stat import S_ISFIFO
from typing import IO, Any

from samesense.errors import ConfigError, DataError, OutputError, SamesenseError
from samesense.failures import with_class, writing
from samesense.hub import unreachable
from samesense.scratch import ScratchFolder

SCHEMES = ("s3", "gs", "az", "abfs", "http", "https", "hf", "memory")
"""Kinds of stores that are read and written: of Amazon, Google and Microsoft, the web, the hub, and this process."""

_URL = re.compile(r"[A-Za-z][\w+.-]+(::[A-Za-z][\w+.-]+)*://.+")
_FILE = "file://"


class Name(str):
    """A string that is certainly the name of a source, as on a command line, and not a text."""

    __slots__ = ()


def local(name: str) -> str:
    """Return a name without ``file://``."""
    return name.removeprefix(_FILE)


def is_url(name: str | Path) -> bool:
    """Return whether a name is that of an object in a store; that of a file is not, ``file://`` included."""
    return isinstance(name, str) and not name.startswith(_FILE) and _URL.fullmatch(name) is not None


_pipes: dict[tuple[int, int], Path] | None = None
"""Where the content of each pipe is, where pipes are read."""

_folders: list[ScratchFolder] = []  # of these files, removed when the process ends


def take_pipes() -> None:
    """Read named pipes and ``<(process substitution)`` too, as the command line does: each is copied to a file once.

    A long-lived process does not: a pipe of the same name may bring something else the next time.
    """
    global _pipes
    _pipes = {}


def is_pipe(name: str | Path) -> bool:
    """Return whether a name is that of a pipe."""
    try:
        return S_ISFIFO(Path(local(str(name))).expanduser().stat().st_mode)
    except (OSError, ValueError, RuntimeError):
        return False


def is_readable(path: Path) -> bool:
    """Return whether there is a file, or a pipe where pipes are read."""
    return path.is_file() or (_pipes is not None and is_pipe(path))


def file_of(path: Path) -> Path:
    """Return a file that can be read again and again: of a pipe a copy of what it brought."""
    if _pipes is None or not is_pipe(path):
        return path
    status = path.stat()
    # By inode: a pipe can be read only once, whichever of its names is given.
    key = status.st_dev, status.st_ino
    if key not in _pipes:
        _folders.append(ScratchFolder())
        copy = Path(_folders[-1].name) / "content"
        with path.open("rb") as source, writing(copy), copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        _pipes[key] = copy
    return _pipes[key]


def check_scheme(url: str) -> None:
    """Raise DataError for a URL of a kind that is not read, or that leads through several."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise DataError(
            f"{url[:200]}: files are read from and written to {', '.join(f'{name}://' for name in SCHEMES)} and "
            f"file://; received {scheme[:40]}://. Download the file, and unpack it if it is an archive."
        )
    if "::" in url:
        raise DataError(
            f"{url[:200]}: a URL leads to one file or object, and '::' would lead through it to another. Download the "
            "file, and unpack it if it is an archive."
        )


@contextmanager
def _asking(url: str) -> Iterator[None]:
    """Turn what a store raises into DataError: each has errors of its own."""
    try:
        yield
    except SamesenseError:
        raise
    except Exception as error:
        raise DataError(
            f"{url} cannot be read ({with_class(error)}). Check the name, the connection, and the keys of the store."
        ) from error


def store_of(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec that a URL is in, and the place in it.

    DataError for a URL of a kind that is not read (:data:`SCHEMES`); ConfigError if the package for its kind of store
    is absent, or refuses it.
    """
    check_scheme(url)
    if url.startswith("hf:") and (reason := unreachable()):
        raise DataError(f"{url[:200]} cannot be read or written, as the hub cannot be reached: {reason}.")
    from fsspec.core import url_to_fs

    try:
        store, path = url_to_fs(url)
    except Exception as error:  # each store has errors of its own
        raise ConfigError(f"{url}: this store cannot be opened ({with_class(error)}).") from error
    return store, str(path)


def open_file(name: str | Path) -> IO[bytes]:
    """Open a file or an object to read; DataError if a store does not give it, OSError for a file."""
    if not is_url(name):
        return file_of(Path(local(str(name))).expanduser()).open("rb")
    store, path = store_of(str(name))
    try:
        stream: IO[bytes] = store.open(path, "rb")
    except (FileNotFoundError, PermissionError, ValueError, NotImplementedError) as error:
        raise DataError(
            f"{name} cannot be read ({with_class(error)}). Check the name, and the keys of the store."
        ) from error
    except OSError:
        raise  # another try may put it right
    except Exception as error:
        raise OSError(f"{name} cannot be read ({with_class(error)}).") from error
    return stream


def delivered(url: str, content: bytes) -> None:
    """Write an object, whole or not at all; OutputError if the store refuses."""
    store, path = store_of(url)
    try:
        store.pipe_file(path, content)
    except Exception as error:  # each store has errors of its own
        raise OutputError(f"{url} cannot be written ({with_class(error)}). Check the name, and the keys.") from error


def is_file(name: str | Path) -> bool:
    """Return whether there is a file or an object of this name; false for a text too long to be one."""
    if is_url(name):
        store, path = store_of(str(name))
        with _asking(str(name)):
            return bool(store.isfile(path))
    try:
        return is_readable(Path(local(str(name))).expanduser())
    except (OSError, RuntimeError):  # also for the home of an unknown user
        return False


def whole(name: str) -> str:
    """Return the whole path of a file; a URL as it is."""
    return name if is_url(name) else str(Path(local(name)).expanduser().resolve())


def matching(pattern: str) -> list[str]:
    """Return the files or objects that match a pattern with ``*``, ``**``, ``?`` or ``[]``, by name."""
    if is_url(pattern):
        store, path = store_of(pattern)
        with _asking(pattern):
            return [store.unstrip_protocol(name) for name in sorted(store.glob(path)) if store.isfile(name)]
    from fsspec.implementations.local import LocalFileSystem

    inside = Path(escape(str(Path.cwd())))  # of a working directory, no sign is one of a pattern
    files = LocalFileSystem()
    return sorted(name for name in files.glob(str(inside / Path(local(pattern)).expanduser())) if files.isfile(name))


def state(name: str) -> tuple[int, str]:
    """Return the bytes of a file or an object, and a text that is another one once it has been changed."""
    if is_url(name):
        store, path = store_of(name)
        with _asking(name):
            return int(store.info(path)["size"]), str(store.ukey(path))
    status = file_of(Path(name)).stat()
    return status.st_size, str(status.st_mtime_ns)
