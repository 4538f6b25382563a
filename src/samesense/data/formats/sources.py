"""Reads rows from any source that a user names: a file, a folder saved by ``datasets``, or a hub name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from samesense.data.formats.endings import LIKE_THEM, SUFFIXES, split_suffix
from samesense.data.formats.files import Row, leads_to, missing_file, read_rows
from samesense.data.formats.memory import Source, dataset_rows, in_memory, memory_rows, name_of
from samesense.errors import DataError
from samesense.failures import imported
from samesense.hub import hub_access
from samesense.urls import is_url, local

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<config>[\w.+-]+))?(?::(?P<split>[^:]+))?")


def load_rows(source: Source) -> Iterator[Row]:
    """Read rows from a file, a folder saved by ``datasets``, the hub, or an object in memory.

    Args:
        source: path of a file; path of a folder, followed by ``:split`` if it has several splits; or
            ``owner/name``, ``owner/name@config``, ``owner/name:split`` or ``owner/name@config:split``
            on the hub (by default split ``train``); or data in memory, see
            :func:`~samesense.data.formats.memory.memory_rows`.

    Returns:
        Row numbers with cells by column name. Class labels are given by name, never as integers.

    Raises:
        DataError: if the source cannot be found or read.
        MissingExtraError: if ``datasets`` is needed and absent.
    """
    if in_memory(source):
        return memory_rows(source)
    text = str(source)
    if is_url(source) or leads_to(local(text), Path.is_file):
        return read_rows(source)
    # A folder takes precedence over a hub data set of the same name.
    folder, split = _folder_and_split(text)
    if folder is not None:
        return dataset_rows(_from_disk(folder, split), text)
    match = _HUB_NAME.fullmatch(text)
    if isinstance(source, Path) or _looks_like_path(text):
        raise missing_file(text)
    if match is None:
        raise DataError(
            f"{text}: this is no existing file or folder, and no hub name of the form owner/name, owner/name@config "
            f"or owner/name:split. Name a file that ends in {', '.join(SUFFIXES)} ({LIKE_THEM})."
        )
    return dataset_rows(_from_hub(match["name"], match["config"], match["split"] or "train", text), text)


def list_rows(source: Source, limit: int | None = None) -> list[Row]:
    """Return all rows of a source, or the first ``limit``; DataError if there are none. See :func:`load_rows`."""
    rows = list(islice(load_rows(source), limit))
    if not rows:
        raise no_rows(source)
    return rows


def no_rows(source: Source) -> DataError:
    """Build the error for a source without rows."""
    return DataError(f"{name_of(source)}: there are no rows. Check that this is the right file.")


def _folder_and_split(text: str) -> tuple[Path | None, str | None]:
    if leads_to(text, Path.is_dir):
        return Path(text).expanduser(), None
    name, colon, split = text.rpartition(":")
    is_split = colon and name and split and leads_to(name, Path.is_dir)
    return (Path(name).expanduser(), split) if is_split else (None, None)


def _looks_like_path(text: str) -> bool:
    if split_suffix(text)[0] or text.startswith((".", "/", "~")) or "\\" in text:
        return True
    # A missing file in an existing folder is a misspelt path, not a hub name.
    parent = text.rpartition("/")[0]
    return bool(parent) and leads_to(parent, Path.is_dir)


def _from_disk(folder: Path, split: str | None) -> Any:
    datasets = imported("datasets", "train")
    try:
        # For damaged or foreign folders, datasets raises exceptions of many types.
        loaded = datasets.load_from_disk(str(folder))
    except Exception as error:
        raise DataError(
            f"{folder}: a folder must be one written by save_to_disk of datasets; it could not be read as that "
            f"({_one_line(error)}). Nor does it hold documents (.txt, .md, .html, .pdf, .docx). Name a file inside it."
        ) from error
    if not isinstance(loaded, dict):
        if split is not None:
            raise DataError(
                f"{folder}: this folder holds one dataset without splits; received ':{split}'. Leave out ':{split}'."
            )
        return loaded
    if split not in loaded:
        received = "none was named" if split is None else f"received {split!r}"
        raise DataError(
            f"{folder}: this folder holds several splits and one must be named; {received}. Splits available: "
            f"{', '.join(loaded)}. Write for example {folder}:{next(iter(loaded), 'train')}"
        )
    return loaded[split]


def _from_hub(name: str, config: str | None, split: str, source: str) -> Any:
    datasets = imported("datasets", "train")
    try:
        # Without a connection, hub_access falls back to the cached copy.
        with hub_access(name, "dataset"):
            return datasets.load_dataset(name, config, split=split)
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{source}: no such file or folder, and it could not be loaded from the hub ({_one_line(error)}). "
            "Check the spelling and the network; a local file works offline."
        ) from error


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
