"""What teachers make of a corpus, encoded once and kept: vectors on disk, one row a sentence.

A store is a folder named by the hash of all that decides its vectors: the teacher, the texts in their order, and the
type of number. So it is shared by epochs, runs and processes, and a store of another text or model cannot be taken for
it. It is made beside its place, block by block, and renamed when it is whole; a killed process loses one block. One
process makes a store, and others wait for it.

    NAME/vectors.npy   unit vectors (sentences, dim)
    NAME/teacher.json  what it was made of
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from samesense.data.mapped import taken
from samesense.data.sentences import Sentences
from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.files import locked, replacing, write_json
from samesense.hashes import json_hash
from samesense.losses.cosine import unit
from samesense.schemas import Record, read_object
from samesense.types import Embeddings, Encode

logger = logging.getLogger(__name__)

Dtype = Literal["float16", "float32"]
"""Numbers of a store. In float16 a cosine is off by some 1e-5, in half the space."""

BLOCK_TEXTS = 2048
"""Texts encoded, and written, at a time: what a killed run may lose."""

_FORM = 1
"""Raised when stores made before must not be read any more."""


@dataclass(frozen=True)
class Teacher:
    """Something that embeds, to be learnt from."""

    name: str  # as it was asked for
    identity: str  # everything that decides its vectors, but for the texts on which a map of it is fitted
    # from the texts of a corpus, and a folder for what a killed run need not compute again, to the function
    # that embeds them
    encode: Callable[[Sequence[str], Path], Encode]


class TeacherRecord(Record):
    """What a store of a teacher's vectors says of itself."""

    sentences: int
    name: str
    teacher: str


class TeacherStore:
    """The vectors of one teacher, of width ``dim``, for every sentence of a corpus, read from disk row by row.

    ``name`` is that of the teacher as it was asked for when the store was made. ModelError if the folder is damaged.
    """

    def __init__(self, folder: Path) -> None:
        try:
            about = read_object(folder / "teacher.json", TeacherRecord)
            self._vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
            if len(self._vectors) != about["sentences"]:
                raise ValueError(f"{len(self._vectors)} rows for {about['sentences']} sentences")
        except (DataError, OSError, ValueError, KeyError, EOFError) as error:
            raise ModelError(
                f"A store of teacher vectors is damaged: {folder} ({error}). Delete it; it will be made anew."
            ) from error
        self.folder = folder
        self.name: str = about["name"]
        self.identity: str = about["teacher"]
        self.dim: int = self._vectors.shape[1]

    def __len__(self) -> int:
        return len(self._vectors)

    def rows(self, numbers: Tensor | npt.NDArray[np.integer]) -> Tensor:
        """Return the unit vectors of the sentences with these numbers, float32 ``(numbers, dim)``, on the CPU.

        ``numbers`` are positions in the corpus ``(n,)``, in any order and repeated at will.
        """
        wanted = np.asarray(numbers.cpu() if isinstance(numbers, Tensor) else numbers)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < len(self)):
            raise ValueError(
                f"The rows of this store are 0 to {len(self) - 1}; received {wanted.min()} to {wanted.max()}. "
                "It belongs to another corpus, or the labels are no row numbers."
            )
        return unit(torch.from_numpy(self._vectors[wanted].astype(np.float32)))


def teacher_store(teacher: Teacher, sentences: Sentences, folder: Path, *, dtype: Dtype = "float16") -> TeacherStore:
    """Return what a teacher makes of a corpus; encoded here, unless that has been done before.

    Args:
        teacher: see :func:`samesense.recipes.teachers.open_teacher`.
        sentences: the corpus; row i of the store belongs to sentence i.
        folder: where stores are, of any teachers and corpora.
        dtype: ``"float16"`` or ``"float32"``.

    Raises:
        ConfigError: if the type of number is unknown.
        ModelError: if the teacher gives vectors that are not finite or all zeros.
    """
    if dtype not in ("float16", "float32"):
        raise ConfigError(f"Teacher vectors are kept as float16 or float32; received {dtype!r}.")
    about: dict[str, Any] = {
        "form": _FORM,
        "teacher": teacher.identity,
        "texts": sentences.sha256,
        "sentences": len(sentences),
        "dtype": dtype,
    }
    place = folder / json_hash(about)[:32]
    if place.is_dir():
        logger.info(f"teacher {teacher.name}: vectors of {len(sentences):,} sentences found in {place}")
        return TeacherStore(place)
    folder.mkdir(parents=True, exist_ok=True)
    path = place.with_suffix(".lock")
    waiting = f"teacher {teacher.name}: waiting for another process that encodes the same sentences (it holds {path})"
    with locked(path, on_wait=lambda: logger.info(waiting)):
        if not place.is_dir():  # who had the lock before may have made it
            _make(place, teacher, sentences, about)
    return TeacherStore(place)


def _make(place: Path, teacher: Teacher, sentences: Sentences, about: dict[str, Any]) -> None:
    """Encode what is not yet there, beside ``place``, and rename it."""
    part = place.with_suffix(".part")
    part.mkdir(exist_ok=True)
    order = np.argsort([-len(text) for text in sentences.texts], kind="stable")  # equal lengths meet: little padding
    blocks = [order[start : start + BLOCK_TEXTS] for start in range(0, len(order), BLOCK_TEXTS)]
    done = _array(part / "done.npy", (len(blocks),), "uint8")
    before = sum(len(block) for block, flag in zip(blocks, done, strict=True) if flag)
    logger.info(
        f"teacher {teacher.name}: encoding {len(sentences) - before:,} of {len(sentences):,} sentences, into {place}"
    )
    encode = teacher.encode(sentences.texts, part / "work")
    with progress_bar(f"teacher {teacher.name}", "sentence", len(sentences), initial=before) as bar:
        for number in np.flatnonzero(done == 0):
            rows = blocks[number]
            vectors = _embedded(encode, taken(sentences.texts, rows))
            kept = _array(part / "vectors.npy", (len(sentences), vectors.shape[1]), about["dtype"])
            kept[rows] = vectors
            kept.flush()
            done[number] = 1
            bar.update(len(rows))
    write_json(part / "teacher.json", {"name": teacher.name, **about})
    shutil.rmtree(part / "work", ignore_errors=True)
    part.rename(place)
    (place / "done.npy").unlink()


def _embedded(encode: Encode, texts: list[str]) -> Embeddings:
    """Return the vectors of ``texts``, of unit length, so that none is too large for float16."""
    vectors = nonzero_rows(checked_rows(np.asarray(encode(texts)), texts), texts)
    scaled: Embeddings = unit(torch.from_numpy(np.array(vectors, dtype=np.float32))).numpy()
    return scaled


def _array(path: Path, shape: tuple[int, ...], dtype: str) -> np.memmap[Any, Any]:
    """Return the array of a file, which is made of zeros where there is none."""
    if not path.exists():
        with replacing(path) as beside:
            np.lib.format.open_memmap(beside, mode="w+", dtype=dtype, shape=shape).flush()
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="r+")
    if array.shape != shape:
        raise ModelError(f"{path} should be of shape {shape} and is {array.shape}. Delete its folder.")
    return array
