"""Embeddings of a corpus by a teacher, computed once and stored on disk, one row per sentence.

A store is a folder named by the hash of everything that decides its vectors: the teacher, the texts in their order, and
the dtype. So epochs, runs and processes share it, and it cannot be confused with the store of another text or model. It
is written under a temporary name, block by block, and renamed when it is complete; a killed process loses one block.
One process writes a store while the others wait for it.

    NAME/vectors.npy   unit vectors (sentences, dim)
    NAME/teacher.json  teacher, texts and dtype
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

from samesense.data.mapped import take_texts
from samesense.data.sentences import Sentences
from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.files import replacing, write_json
from samesense.hashes import json_hash
from samesense.locks import locked
from samesense.losses.cosine import unit
from samesense.schemas import Record, read_checked
from samesense.types import Embeddings, Encode

logger = logging.getLogger(__name__)

Dtype = Literal["float16", "float32"]
"""Dtype of a store. In float16 cosines are off by about 1e-5, in half the space."""

BLOCK_TEXTS = 2048
"""Texts encoded and written at a time; a killed run loses at most this many."""

_FORMAT = 1
"""Version of the format; stores of another version are not read."""


@dataclass(frozen=True)
class Teacher:
    """A model, or another source of embeddings, to distil from."""

    name: str  # as the user named it
    identity: str  # everything that decides its vectors, except the texts on which a map is fitted
    # takes the texts of a corpus and a folder for intermediate results, and returns the function that embeds them
    encode: Callable[[Sequence[str], Path], Encode]


class TeacherRecord(Record):
    """The description of a store in ``teacher.json``."""

    sentences: int
    name: str
    teacher: str


class TeacherStore:
    """The vectors of one teacher, of dimension ``dim``, for every sentence of a corpus, read from disk row by row.

    ``name`` is the teacher's name when the store was written. ModelError if the folder is damaged.
    """

    def __init__(self, folder: Path) -> None:
        try:
            about = read_checked(folder / "teacher.json", TeacherRecord)
            self._vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
            if len(self._vectors) != about.sentences:
                raise ValueError(f"{len(self._vectors)} rows for {about.sentences} sentences")
        except (DataError, OSError, ValueError, KeyError, EOFError) as error:
            raise ModelError(
                f"A store of teacher vectors is damaged: {folder} ({error}). Delete it; it will be made again."
            ) from error
        self.folder = folder
        self.name = about.name
        self.identity = about.teacher
        self.dim: int = self._vectors.shape[1]

    def __len__(self) -> int:
        return len(self._vectors)

    def rows(self, numbers: Tensor | npt.NDArray[np.integer]) -> Tensor:
        """Return the unit vectors of the sentences with these numbers, float32 ``(numbers, dim)``, on the CPU.

        ``numbers`` are positions in the corpus ``(n,)``, in any order; they may be repeated.
        """
        indices = np.asarray(numbers.cpu() if isinstance(numbers, Tensor) else numbers)
        # numpy has no minimum of nothing.
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self)):
            raise ValueError(
                f"The rows of this store are 0 to {len(self) - 1}; received {indices.min()} to {indices.max()}. "
                "It belongs to another corpus, or the labels are no row numbers."
            )
        # Rounded to float16, stored vectors are no longer quite of unit length.
        return unit(torch.from_numpy(self._vectors[indices].astype(np.float32)))


def teacher_store(teacher: Teacher, sentences: Sentences, folder: Path, *, dtype: Dtype = "float16") -> TeacherStore:
    """Return the embeddings of a corpus by a teacher; they are computed now unless they are stored already.

    Args:
        teacher: see :func:`samesense.recipes.teachers.open_teacher`.
        sentences: the corpus; row i of the store belongs to sentence i.
        folder: folder of the stores of all teachers and corpora.
        dtype: ``"float16"`` or ``"float32"``.

    Raises:
        ConfigError: if the dtype is unknown.
        ModelError: if a vector of the teacher is not finite or all zeros.
    """
    if dtype not in ("float16", "float32"):
        raise ConfigError(f"Teacher vectors are kept as float16 or float32; received {dtype!r}.")
    about: dict[str, Any] = {
        "form": _FORMAT,
        "teacher": teacher.identity,
        "texts": sentences.sha256,
        "sentences": len(sentences),
        "dtype": dtype,
    }
    store = folder / json_hash(about)[:32]
    if store.is_dir():
        logger.info(f"teacher {teacher.name}: vectors of {len(sentences):,} sentences found in {store}")
        return TeacherStore(store)
    folder.mkdir(parents=True, exist_ok=True)
    path = store.with_suffix(".lock")
    wait_message = (
        f"teacher {teacher.name}: waiting for another process that encodes the same sentences (it holds {path})"
    )
    with locked(path, on_wait=lambda: logger.info(wait_message)):
        if not store.is_dir():  # the process before may have written it
            _make(store, teacher, sentences, about)
    return TeacherStore(store)


def _make(store: Path, teacher: Teacher, sentences: Sentences, about: dict[str, Any]) -> None:
    """Encode the sentences that are missing in the unfinished store, and rename it to ``store``."""
    unfinished = store.with_suffix(".part")
    unfinished.mkdir(exist_ok=True)
    # texts of equal length together need little padding
    order = np.argsort([-len(text) for text in sentences.texts], kind="stable")
    blocks = [order[start : start + BLOCK_TEXTS] for start in range(0, len(order), BLOCK_TEXTS)]
    done = _open_array(unfinished / "done.npy", (len(blocks),), "uint8")
    done_sentences = sum(len(block) for block, flag in zip(blocks, done, strict=True) if flag)
    logger.info(
        f"teacher {teacher.name}: encoding {len(sentences) - done_sentences:,} of {len(sentences):,} sentences, "
        f"into {store}"
    )
    encode = teacher.encode(sentences.texts, unfinished / "work")
    with progress_bar(f"teacher {teacher.name}", "sentence", len(sentences), initial=done_sentences) as bar:
        for number in np.flatnonzero(done == 0):
            rows = blocks[number]
            vectors = _encode_normalised(encode, take_texts(sentences.texts, rows))
            stored = _open_array(unfinished / "vectors.npy", (len(sentences), vectors.shape[1]), about["dtype"])
            stored[rows] = vectors
            stored.flush()
            done[number] = 1  # only after the vectors are on disk
            bar.update(len(rows))
    write_json(unfinished / "teacher.json", {"name": teacher.name, **about})
    shutil.rmtree(unfinished / "work", ignore_errors=True)
    unfinished.rename(store)  # complete: from here on other processes read it
    (store / "done.npy").unlink()


def _encode_normalised(encode: Encode, texts: list[str]) -> Embeddings:
    """Return the vectors of ``texts`` at unit length, so that none is too large for float16."""
    vectors = nonzero_rows(checked_rows(np.asarray(encode(texts)), texts), texts)
    scaled: Embeddings = unit(torch.from_numpy(np.array(vectors, dtype=np.float32))).numpy()
    return scaled


def _open_array(path: Path, shape: tuple[int, ...], dtype: str) -> np.memmap[Any, Any]:
    """Open the array of a file; a missing file is created with zeros."""
    if not path.exists():
        with replacing(path) as temporary:
            np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape).flush()
    array: np.memmap[Any, Any] = np.lib.format.open_memmap(path, mode="r+")
    if array.shape != shape:
        raise ModelError(f"{path} should be of shape {shape} and is {array.shape}. Delete its folder.")
    return array
