"""Embeddings of a long task that may be stopped: on disk until it is done, so that it can resume."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from samesense.encoder.embedding_blocks import EmbeddingBlocks, Look, remove_blocks
from samesense.errors import OutputError
from samesense.types import Embeddings

logger = logging.getLogger(__name__)


class UnfinishedEmbeddings:
    """Vectors on disk of a task that may be stopped early, so that it can resume.

    The vectors are identified by model and text, so any other setting of the task may change in between.

    Args:
        folder: folder for the vectors, which :func:`remove_when_finished` removes; OutputError if it is a link.
        identity: everything besides the text that decides a vector.
        look: called with the texts that are found on disk.
    """

    def __init__(self, folder: Path, identity: str, look: Look | None = None) -> None:
        if folder.is_symlink():
            raise OutputError(f"{folder} is a link; vectors of unfinished work are kept in a folder. Delete the link.")
        self._folder = folder
        self._identity = identity
        self._look = look
        self._resumes = folder.is_dir()
        self._writes = self._resumes or not folder.exists()
        try:
            if self._resumes:
                # Opening the blocks makes their folder, and so finds a file that is in the way.
                self._blocks.find([])
        except (FileExistsError, NotADirectoryError):  # a file of another program is in the way
            self._writes = False
        if not self._writes:
            logger.warning(
                f"{folder} holds a file of others: vectors of this work are not kept while it is unfinished."
            )
        self._width: int | None = None  # of the model's vectors, once it is known

    def rows(self, texts: Sequence[str], encode: Callable[[list[str]], Embeddings], *, keep: bool = True) -> Embeddings:
        """Return the vectors of ``texts``, ``(texts, dim)``: the stored ones, and those of ``encode`` for the others.

        With ``keep`` the new ones are stored. If the stored ones have another width, they are all encoded again.
        """
        vectors = dict(self._stored(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        computed = encode(missing) if missing else self._no_vectors(vectors, encode)
        stale = [text for text, vector in vectors.items() if len(vector) != computed.shape[1]]
        if stale:
            self._discard_other_width(len(vectors[stale[0]]), computed.shape[1])
            missing += stale
            computed = np.concatenate([computed, encode(stale)])
        if missing and keep and self._writes:
            self._blocks.write(missing, computed)
        vectors.update(zip(missing, computed, strict=True))
        return np.stack([vectors[text] for text in texts])

    def _no_vectors(self, texts: Iterable[str], encode: Callable[[list[str]], Embeddings]) -> Embeddings:
        """Return an empty matrix of the model's width; the first call encodes one text to learn it."""
        if self._width is None:
            self._width = encode(list(islice(texts, 1))).shape[1]
        return np.empty((0, self._width), dtype=np.float32)

    def _discard_other_width(self, stored_width: int, width: int) -> None:
        logger.warning(
            f"{self._folder}: vectors of {stored_width} numbers are kept, and the model gives {width}: they are "
            "removed, and their texts encoded again."
        )
        self._blocks.remove()

    @cached_property
    def _blocks(self) -> EmbeddingBlocks:
        return EmbeddingBlocks(self._folder, self._identity)

    def _stored(self, texts: Sequence[str]) -> Iterator[tuple[str, Embeddings]]:
        if self._resumes and self._writes:
            for stored, rows in self._blocks.find(texts):
                if self._look is not None:
                    self._look(stored)
                yield from zip(stored, rows, strict=True)


@contextmanager
def remove_when_finished(folder: Path) -> Iterator[None]:
    """Remove the folder of :class:`UnfinishedEmbeddings` after a block that succeeds; on Ctrl-C say that it is kept."""
    try:
        yield
    except KeyboardInterrupt:
        if folder.exists():
            raise KeyboardInterrupt("What is encoded is kept: the same command goes on from there.") from None
        raise
    if not folder.is_symlink():
        remove_unfinished(folder)


def remove_unfinished(folder: Path) -> None:
    """Remove the folder of :class:`UnfinishedEmbeddings`, except files of other programs in it."""
    with suppress(OSError):
        for subfolder in list(folder.iterdir()):
            # only folders with the name of an identity are ours
            if re.fullmatch("[0-9a-f]{32}", subfolder.name) and not subfolder.is_symlink():
                remove_blocks(subfolder)
        # This fails, as intended, where files of others remain.
        folder.rmdir()
