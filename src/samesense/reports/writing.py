"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from samesense.errors import OutputError


def check_place(path: str | Path) -> None:
    """Raise, before long work, if a file could not be written there; its folder is made.

    Raises:
        OutputError: if the path is a folder, or its folder cannot be made or written to.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise OutputError(f"{path} is a folder, and a file is to be written there. Name a file in it.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error}") from error
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{path} cannot be written: there is no permission to write to its folder.")


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write a file beside its place and rename it, making folders as needed.

    A link stays a link, and a file that is replaced keeps its permissions.

    Args:
        path: the file.
        content: text (as UTF-8) or bytes.

    Returns:
        The path.

    Raises:
        OutputError: if the file cannot be written; what was there before is left as it was.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("wb") as stream:
                stream.write(content.encode("utf-8") if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error}") from error
    return Path(path)
