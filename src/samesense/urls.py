"""Names of files that are URLs, such as ``s3://bucket/texts.parquet``: read and written by fsspec.

``file://`` is the file itself. Keys and other settings of a store are those that fsspec reads from its environment and
configuration.
"""

from __future__ import annotations

import re
from glob import escape
from pathlib import Path
from typing import IO, Any

from samesense.errors import ConfigError, DataError, OutputError
from samesense.failures import shortened

_URL = re.compile(r"[A-Za-z][\w+.-]+(::[A-Za-z][\w+.-]+)*://.+")
_FILE = "file://"


def local(name: str) -> str:
    """Return a name without ``file://``."""
    return name.removeprefix(_FILE)


def is_url(name: str | Path) -> bool:
    """Return whether a name is that of an object in a store; that of a file is not, ``file://`` included."""
    return isinstance(name, str) and not name.startswith(_FILE) and _URL.fullmatch(name) is not None


def store_of(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec that a URL is in, and the place in it.

    ConfigError if the package for its kind of store is absent, or there is no such kind.
    """
    from fsspec.core import url_to_fs

    try:
        found: tuple[Any, str] = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{url}: this kind of store cannot be opened ({_said(error)}).") from error
    return found


def open_file(name: str | Path) -> IO[bytes]:
    """Open a file or an object to read; DataError if a store does not give it, OSError for a file."""
    if not is_url(name):
        return Path(local(str(name))).expanduser().open("rb")
    store, place = store_of(str(name))
    try:
        stream: IO[bytes] = store.open(place, "rb")
    except (FileNotFoundError, PermissionError) as error:  # of others, another try may put them right
        raise DataError(
            f"{name} cannot be read ({_said(error)}). Check the name, and the keys of the store."
        ) from error
    return stream


def delivered(url: str, content: bytes) -> None:
    """Write an object, whole or not at all; OutputError if the store refuses."""
    store, place = store_of(url)
    try:
        store.pipe_file(place, content)
    except Exception as error:  # each store has errors of its own
        raise OutputError(f"{url} cannot be written ({_said(error)}). Check the name, and the keys.") from error


def is_file(name: str | Path) -> bool:
    """Return whether there is a file or an object of this name."""
    if is_url(name):
        store, place = store_of(str(name))
        return bool(store.isfile(place))
    return Path(local(str(name))).expanduser().is_file()


def whole(name: str) -> str:
    """Return the whole path of a file; a URL as it is."""
    return name if is_url(name) else str(Path(local(name)).expanduser().resolve())


def matching(pattern: str) -> list[str]:
    """Return the files or objects that match a pattern with ``*``, ``**``, ``?`` or ``[]``, by name."""
    remote = is_url(pattern)
    inside = Path(escape(str(Path.cwd())))  # of a working directory, no sign is one of a pattern
    store, place = store_of(pattern if remote else str(inside / Path(local(pattern)).expanduser()))
    found = sorted(name for name in store.glob(place) if store.isfile(name))
    return [store.unstrip_protocol(name) for name in found] if remote else found


def state(name: str) -> tuple[int, str]:
    """Return the bytes of a file or an object, and a text that is another one once it has been changed."""
    if is_url(name):
        store, place = store_of(name)
        return int(store.info(place)["size"]), str(store.ukey(place))
    found = Path(name).stat()
    return found.st_size, str(found.st_mtime_ns)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {shortened(error)}"
