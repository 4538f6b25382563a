"""Reads what an earlier run left in the folder of a new one, without loading torch."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from samesense.errors import DataError, OutputError
from samesense.files import read_json
from samesense.locks import is_empty
from samesense.places import check_empty
from samesense.recipes.held_out.cross_validation import FOLDS_FOLDER
from samesense.recipes.held_out.pairs import MODEL
from samesense.training import manifest

CHECKPOINTS = "checkpoints"
CURVE = "learning-curve"
REFIT = "refit"
"""Subfolder of a run for what takes the place of its model, the start or one trained on all pairs, until it has."""

RESUMABLE = (MODEL, f"{CHECKPOINTS}/checkpoint-*", CURVE, FOLDS_FOLDER, "fold-[0-9][0-9]", REFIT)
"""Patterns of subfolders of a run, one of which is not empty as soon as there is something to resume."""


def check_folder_of_run(output: Path) -> None:
    """Raise OutputError for a folder in which a new run would replace something, unless an earlier run came to nothing.

    A run that diverged, or was killed before its first checkpoint, has left a manifest and a history alone: there is
    nothing to resume, and the corrected run takes its folder over.
    """
    record = _unfinished_run(output)
    if record is None:
        check_empty(output)
    elif is_resumable(output):
        raise OutputError(
            f"{output} holds a run of {record['method']} that is not finished. Give the same command with `resume` to "
            "go on with it, or pass `overwrite` to start again."
        )


def is_resumable(output: Path) -> bool:
    """Return whether a run has left a model, checkpoints or trained folds."""
    folders = (folder for pattern in RESUMABLE for folder in output.glob(pattern))
    return any(folder.is_dir() and not is_empty(folder) for folder in folders)


def is_unfinished(output: Path) -> bool:
    """Return whether a folder holds a run that can be resumed and is not finished."""
    return _unfinished_run(output) is not None and is_resumable(output)


def came_to_nothing(output: Path) -> bool:
    """Return whether a folder holds a run that is not finished, and nothing of it that could be resumed."""
    return _unfinished_run(output) is not None and not is_resumable(output)


def _unfinished_run(output: Path) -> dict[str, Any] | None:
    """Return the manifest of a training that is not finished; ``None`` if there is none in the folder."""
    with suppress(DataError):  # it is not there, or no run's
        record = read_json(output / manifest.FILE)
        # Shards and sweeps have manifests too; only a training is done by several processes.
        if {"method", "processes"} <= record.keys() and record.get("status") != "finished":
            return record
    return None
