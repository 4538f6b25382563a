"""The work folder of a search for near-duplicates: vectors and links of the texts.

With them, another threshold needs neither the model nor a new search. While many workers make them, unfinished shards
are in a subfolder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from samesense.choices import Chunk
from samesense.encoder.unfinished import UnfinishedEmbeddings, remove_unfinished, remove_when_finished
from samesense.errors import DataError, OutputError
from samesense.failures import DAMAGED
from samesense.files import is_temporary, map_array, read_json, replacing, write_json
from samesense.hashes import json_hash, rows_hash
from samesense.inference.duplicates.links import Links
from samesense.inference.duplicates.vector_shards import (
    SHARDED,
    Sharing,
    remove_shards,
    remove_shards_of,
    remove_vector_shards,
    write_vectors_by_shards,
)
from samesense.inference.encode import write_unit_vectors
from samesense.inference.models.model import Model
from samesense.locks import LOCK, only_writer
from samesense.places import check_folder
from samesense.scratch import ScratchFolder
from samesense.types import Embeddings

logger = logging.getLogger(__name__)

ABOUT = "about.json"
VECTORS = "vectors.bin"
LINKS = "links.npz"
UNFINISHED = "unfinished"

ROOM = 0.1
"""Links down to this much below the threshold are stored in a folder that is kept, for lower thresholds."""

Search = Callable[[Embeddings, float], Links]
"""Finds the links of unit rows ``(rows, dim)`` with a cosine at a floor or above."""


@dataclass(frozen=True)
class About:
    """Contents of a work folder: ``texts`` and ``model`` are hashes, ``what`` is the kind of search."""

    what: str
    texts: str
    model: str
    rows: int
    dim: int


class Work:
    """Vectors and links of texts in a folder; a temporary folder (``holder``) is removed with the object."""

    def __init__(self, folder: Path, about: About, holder: ScratchFolder | None = None) -> None:
        self.folder = folder
        self.about = about
        self._holder = holder
        self.vectors: Embeddings = map_array(folder / VECTORS, np.float32, about.rows, about.dim)

    def links(self, threshold: float, search: Search) -> Links:
        """Return links that include all with a cosine at a threshold or above: stored ones, or new ones of a search."""
        path = self.folder / LINKS
        stored = _read(path) if path.exists() else None
        if stored is not None and stored.floor <= threshold and len(stored.beyond) == len(self.vectors):
            return stored
        with only_writer(self.folder):
            if stored is not None:
                remove_shards_of(self.folder, stored.floor)
            # A folder keeps links for lower thresholds too, so that these need no second search.
            floor = threshold if self._holder is not None else max(-1.0, threshold - ROOM)
            stored = search(self.vectors, floor)
            with replacing(path) as beside, beside.open("wb") as stream:
                # Without None, which numpy would pickle, and reading refuses pickles.
                np.savez(stream, **{name: value for name, value in vars(stored).items() if value is not None})
            remove_shards(self.folder)
        return stored


def _read(path: Path) -> Links | None:
    """Return the stored links; ``None``, after a warning, if the file is damaged."""
    try:
        with np.load(path) as archive:
            arrays: dict[str, Any] = {
                name: archive[name] if archive[name].ndim else archive[name].item() for name in archive
            }
        links = Links(**arrays)
        len(links.beyond)  # raises if it is not an array
        return links
    except DAMAGED as error:
        logger.warning(f"{path} is damaged ({type(error).__name__}): links are searched again.")
        return None


def open_work(
    folder: Path | None,
    what: str,
    model: Model,
    texts: Sequence[str],
    chunk: Chunk | None = None,
    queries: int | None = None,
    sharing: Sharing | None = None,
) -> Work:
    """Return the work on these texts, which are encoded unless the folder has their vectors.

    Args:
        folder: the work folder; ``None`` for a temporary one. The model needs an identity unless it is temporary.
        what: kind of the search.
        model: encodes the texts.
        texts: the texts, which should be distinct.
        chunk: how the windows of texts longer than the model reads are combined; ``None`` truncates such texts.
        queries: number of texts at the beginning that are queries, the others being documents; ``None`` if the model
            does not distinguish them.
        sharing: encodes the texts by many workers, which needs a folder; ``None`` encodes them in this process.

    Raises:
        OutputError: if the folder holds something else, or work on other texts or by another model, or another process
            works there.
        ModelError: if a vector is not finite or all zeros.
    """
    if folder is None:
        holder = ScratchFolder()
        scratch = Path(holder.name)
        dim = write_unit_vectors(model, texts, scratch / VECTORS, chunk=chunk, queries=queries)
        return Work(scratch, About(what, "", "", len(texts), dim), holder)
    if chunk is not None:
        what = f"{what}, {chunk} of windows"
    expected = {"what": what, "texts": rows_hash(texts), "model": json_hash(model.identity)}
    check_folder(folder)
    work = _finished(folder, expected, len(texts))
    if work is not None:
        model.look(texts if chunk is None else model.windows(texts).texts)  # warns of truncated texts
        return work
    if folder.exists() and (not folder.is_dir() or any(not _is_ours(path.name) for path in folder.iterdir())):
        raise OutputError(f"{folder} is not empty, and holds no vectors of ours. Give a folder of its own: `work`.")
    with only_writer(folder), remove_when_finished(folder / UNFINISHED):
        identity = model.identity if chunk is None else f"{model.identity} {chunk} of windows"
        if sharing is not None:
            dim = write_vectors_by_shards(sharing, texts, folder / VECTORS, chunk, queries)
        else:
            unfinished = UnfinishedEmbeddings(folder / UNFINISHED, identity, model.look)
            dim = write_unit_vectors(model, texts, folder / VECTORS, unfinished, chunk, queries)
        # Last, because a folder counts as finished once this file is there.
        write_json(folder / ABOUT, asdict(About(**expected, rows=len(texts), dim=dim)))
        remove_vector_shards(folder)
    return Work(folder, _read_about(folder, expected, len(texts)))


def _finished(folder: Path, expected: dict[str, str], rows: int) -> Work | None:
    """Return the work in a folder; ``None`` if there is none, or, after a warning, if it is damaged.

    OutputError if it is that of another search.
    """
    if not (folder / ABOUT).exists():
        return None
    try:
        work = Work(folder, _read_about(folder, expected, rows))
    except DataError as error:
        # Beside files of others nothing is deleted.
        if any(not _is_ours(path.name) for path in folder.iterdir()):
            raise
        logger.warning(f"{folder}: the vectors there are damaged, and are made again. {error}")
        # First the file by which the folder counts as finished.
        for name in (ABOUT, LINKS, VECTORS):
            (folder / name).unlink(missing_ok=True)
        remove_shards(folder)
        return None
    # Left by a process that was killed after it had written everything.
    remove_unfinished(folder / UNFINISHED)
    remove_vector_shards(folder)
    return work


def _is_ours(name: str) -> bool:
    return name in (ABOUT, LINKS, VECTORS, LOCK, UNFINISHED, SHARDED) or is_temporary(name)


def _read_about(folder: Path, expected: dict[str, str], rows: int) -> About:
    """Return the description of the work in a folder; OutputError if it is not as expected."""
    fix = "Give another folder, or delete this one."
    content = read_json(folder / ABOUT, fix)
    different = [name for name, value in expected.items() if content.get(name) != value]
    if different:
        key = different[0] if different[0] != "what" else "kind"
        raise OutputError(f"{folder} holds the vectors of another search: it differs in the {key}. {fix}")
    try:
        about = About(**content)
    except TypeError as error:
        raise DataError(f"{folder / ABOUT} is damaged: {error}. {fix}") from error
    if about.rows != rows or not isinstance(about.dim, int) or about.dim < 1:
        raise DataError(f"{folder / ABOUT} is damaged: {about}. {fix}")
    return about
