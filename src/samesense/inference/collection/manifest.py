"""What a collection consists of at one moment: one small file, replaced as a whole.

Everything else in the folder is written first, under names that no manifest holds yet, and reaches the disk before the
manifest that names it. A process that dies leaves the state before or after, and files that the next writer removes.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from samesense.errors import DataError
from samesense.files import sync_folder, write_text

MANIFEST = "manifest.json"
SEGMENTS = "segments"

Approximate = Literal["auto", "always", "never"]


class _Note(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SegmentNote(_Note):
    """Rows that were added together."""

    name: str  # its folder
    rows: int  # rows in it, deleted ones too
    deleted: int = 0  # how many are deleted
    tombstones: str | None = None  # file with the numbers of the deleted rows; None if there are none


class GraphNote(_Note):
    """The approximate index."""

    file: str  # its file
    segments: tuple[str, ...]  # the segments it covers, in the order in which it numbers their rows
    expansion: int  # candidates looked at in a search
    recall: float  # share of the ten nearest neighbours that it found when it was made
    queries: int  # sampled rows on which that was measured


class Manifest(_Note):
    """One state of a collection."""

    format: Literal[1] = 1  # version of the files
    generation: int  # grows with every change
    model: str  # name of the model, for people and for opening it again
    identity: str  # what tells the model from any other
    precision: str  # arithmetic of the vectors
    dim: int  # numbers of a vector
    dtype: Literal["float32", "float16"]  # how they are kept
    approximate: Approximate  # whether an approximate index is made
    next_id: int  # id of the next text that brings none
    segments: tuple[SegmentNote, ...]  # what there is
    graph: GraphNote | None = None  # the approximate index, if there is one

    @property
    def live(self) -> int:
        """Texts that are not deleted."""
        return sum(note.rows - note.deleted for note in self.segments)


def read_manifest(folder: Path) -> Manifest:
    """Return the state of the collection in ``folder``; DataError if there is none, or it is damaged."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(
            f"{folder} holds no collection: there is no {MANIFEST}. Build one: samesense index build {folder} texts.txt"
        ) from error
    except ValidationError as error:
        raise DataError(
            f"{path} is damaged, of another version, or not that of a collection: {error.errors()[0]['msg']}. Build "
            "the collection anew in another folder, or delete this one first."
        ) from error


def swap_manifest(folder: Path, manifest: Manifest) -> None:
    """Make ``manifest`` the state of the collection, at once and for good."""
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n", sync=True)
    sync_folder(folder)


def leftovers(folder: Path, manifest: Manifest | None) -> list[Path]:
    """Return what is ours in the folder and belongs to no state that counts: remains of a killed or earlier writer."""
    kept: set[str] = set()
    if manifest is not None:
        kept = {note.name for note in manifest.segments} | {note.tombstones or "" for note in manifest.segments}
        kept |= set() if manifest.graph is None else {manifest.graph.file}
    ours = [path for pattern in ("deleted-*.npy", "graph-*.usearch") for path in folder.glob(pattern)]
    ours += (folder / SEGMENTS).glob("*")
    return sorted(path for path in ours if path.name not in kept)


def tidy(folder: Path, manifest: Manifest | None) -> None:
    """Remove the leftovers; what another process still holds open may stay until the next time."""
    for path in leftovers(folder, manifest):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
