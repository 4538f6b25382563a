"""The folder of a search for near-duplicates: vectors of the texts, and the links that were found.

With them another threshold needs neither model nor search.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from samesense.encoder.embedding_cache import Unfinished, remove_unfinished, remove_when_finished
from samesense.encoder.windows import Chunk
from samesense.errors import DataError, OutputError
from samesense.failures import DAMAGED
from samesense.files import LOCK, is_temporary, map_array, only_writer, read_json, replacing, write_json
from samesense.hashes import json_hash, rows_hash
from samesense.inference.duplicates.links import Links
from samesense.inference.models.model import Model
from samesense.inference.stream import write_unit_vectors
from samesense.places import check_folder
from samesense.types import Embeddings

logger = logging.getLogger(__name__)

ABOUT, VECTORS, LINKS, UNFINISHED = "about.json", "vectors.bin", "links.npz", "unfinished"


@dataclass(frozen=True)
class About:
    """What a folder holds: ``texts`` and ``model`` are hashes, ``what`` says what the texts are to each other."""

    what: str
    texts: str
    model: str
    rows: int
    dim: int


class Work:
    """Vectors and links of texts in a folder; one that is temporary is removed with the object (``holder``)."""

    def __init__(self, folder: Path, about: About, holder: TemporaryDirectory[str] | None = None) -> None:
        self.folder, self._holder = folder, holder
        self.vectors: Embeddings = map_array(folder / VECTORS, np.float32, about.rows * about.dim).reshape(
            -1, about.dim
        )

    def links(self, floor: float, search: Callable[[Embeddings], Links]) -> Links:
        """Return the links with a cosine at a floor or above: those that are kept here, or new ones by ``search``."""
        path = self.folder / LINKS
        stored = _read(path) if path.exists() else None
        if stored is not None and stored.floor <= floor and len(stored.beyond) == len(self.vectors):
            return stored
        with only_writer(self.folder):
            stored = search(self.vectors)
            with replacing(path) as beside, beside.open("wb") as stream:
                np.savez(stream, **{name: value for name, value in vars(stored).items() if value is not None})
        return stored


def _read(path: Path) -> Links | None:
    """Return the links that are kept; ``None`` if they are damaged, which is said, so that they are searched again."""
    try:
        with np.load(path) as archive:
            arrays: dict[str, Any] = {
                name: archive[name] if archive[name].ndim else archive[name].item() for name in archive
            }
        links = Links(**arrays)
        len(links.beyond)  # says if it is no array
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
) -> Work:
    """Return the work on these texts, encoding them unless that is done; equal texts should be given once.

    Args:
        folder: where it is, or will be; ``None`` for a temporary one. Another may hold earlier work, so that the model
            needs an identity.
        what: kind of the search.
        model: encodes the texts.
        texts: they.
        chunk: what is taken of the windows of texts that are longer than what the model reads; ``None`` cuts them.
        queries: so many of the first texts are queries and the others documents; ``None`` makes no difference.

    Raises:
        OutputError: if the folder holds something else, or work on other texts or by another model, or another process
            works there.
        ModelError: if a vector is not finite or all zeros.
    """
    if folder is None:
        holder = TemporaryDirectory(prefix="samesense-")
        scratch = Path(holder.name)
        dim = write_unit_vectors(model, texts, scratch / VECTORS, chunk=chunk, queries=queries)
        return Work(scratch, About(what, "", "", len(texts), dim), holder)
    what = what if chunk is None else f"{what}, {chunk} of windows"
    expected = {"what": what, "texts": rows_hash(texts), "model": json_hash(model.identity)}
    check_folder(folder)
    work = _finished(folder, expected, len(texts))
    if work is not None:
        model.look(texts if chunk is None else model.windows(texts).texts)
        return work
    if folder.exists() and (not folder.is_dir() or any(not _is_ours(path.name) for path in folder.iterdir())):
        raise OutputError(f"{folder} is not empty, and holds no vectors of ours. Give a folder of its own: `work`.")
    with only_writer(folder), remove_when_finished(folder / UNFINISHED):
        identity = model.identity if chunk is None else f"{model.identity} {chunk} of windows"
        unfinished = Unfinished(folder / UNFINISHED, identity, model.look)
        dim = write_unit_vectors(model, texts, folder / VECTORS, unfinished, chunk, queries)
        write_json(folder / ABOUT, asdict(About(**expected, rows=len(texts), dim=dim)))
    return Work(folder, _earlier(folder, expected, len(texts)))


def _finished(folder: Path, known: dict[str, str], rows: int) -> Work | None:
    """Return the work that a folder holds; ``None`` if there is none, or it is damaged, which is said.

    OutputError if it is another's.
    """
    if not (folder / ABOUT).exists():
        return None
    try:
        work = Work(folder, _earlier(folder, known, rows))
    except DataError as error:
        if any(not _is_ours(path.name) for path in folder.iterdir()):
            raise
        logger.warning(f"{folder}: the vectors there are damaged, and are made anew. {error}")
        for name in (ABOUT, LINKS, VECTORS):
            (folder / name).unlink(missing_ok=True)
        return None
    remove_unfinished(folder / UNFINISHED)  # of a process that was killed after it had written all
    return work


def _is_ours(name: str) -> bool:
    return name in (ABOUT, LINKS, VECTORS, LOCK, UNFINISHED) or is_temporary(name)


def _earlier(folder: Path, known: dict[str, str], rows: int) -> About:
    """Return what a folder holds; OutputError if that is not what is asked for."""
    fix = "Give another folder, or delete this one."
    content = read_json(folder / ABOUT, fix)
    if any(content.get(name) != value for name, value in known.items()):
        key = next(name for name, value in known.items() if content.get(name) != value)
        raise OutputError(
            f"{folder} holds the vectors of another search: it differs in the {key if key != 'what' else 'kind'}. "
            "Give another folder, or delete this one."
        )
    try:
        about = About(**content)
    except TypeError as error:
        raise DataError(f"{folder / ABOUT} is damaged: {error}. {fix}") from error
    if about.rows != rows or not isinstance(about.dim, int) or about.dim < 1:
        raise DataError(f"{folder / ABOUT} is damaged: {about}. {fix}")
    return about
