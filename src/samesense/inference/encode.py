"""Encode texts with a progress bar, in memory or block by block into a file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from samesense.choices import Chunk
from samesense.encoder.cosine import checked_rows, nonzero_rows
from samesense.encoder.windows import describe_windows
from samesense.execution.progress import progress_bar
from samesense.files import replacing
from samesense.inference.search.exact import unit_rows
from samesense.types import Embeddings, TaskName

if TYPE_CHECKING:
    from samesense.encoder.unfinished import UnfinishedEmbeddings
    from samesense.inference.models.model import Model

logger = logging.getLogger(__name__)

BLOCK_TEXTS = 16384
"""Number of texts encoded and written at once."""


def encode_with_bar(
    model: Model, texts: list[str], *, normalize: bool, chunk: Chunk | None = None, task: TaskName | None = None
) -> Embeddings:
    """Return the embeddings of ``texts``, with a progress bar; ModelError if a number is not finite.

    ``chunk`` says how the windows of a text longer than the model reads are combined, which is logged; ``task`` whether
    the texts are queries or documents, if the model distinguishes them.
    """
    if chunk is not None:
        windows = model.windows(texts, task)
        logger.info(describe_windows(windows.figures, len(texts), chunk))
        return windows.join(encode_with_bar(model, windows.texts, normalize=normalize, task=task), chunk)
    with progress_bar("encode", "text", len(texts)) as bar:
        rows = model.encode(texts, normalize=normalize, on_progress=bar.update, task=task)
    checked_rows(rows, texts)
    return rows


def _blocks(texts: int, queries: int | None) -> Iterator[tuple[int, int, TaskName | None]]:
    """Yield start, end and task of blocks of texts; with ``queries``, no block has both queries and documents."""
    sections: list[tuple[int, int, TaskName | None]] = [(0, texts, None)]
    if queries is not None:
        sections = [(0, queries, "query"), (queries, texts, "document")]
    for first, last, task in sections:
        for start in range(first, last, BLOCK_TEXTS):
            yield start, min(last, start + BLOCK_TEXTS), task


def _encode(
    model: Model, texts: list[str], chunk: Chunk | None, task: TaskName | None, on_progress: Callable[[int], None]
) -> Embeddings:
    """Return the embeddings of texts, with ``chunk`` from the windows of long ones."""
    if chunk is None:
        return model.encode(texts, normalize=True, on_progress=on_progress, task=task)
    windows = model.windows(texts, task)
    return windows.join(model.encode(windows.texts, normalize=True, task=task), chunk)


def write_unit_vectors(
    model: Model,
    texts: Sequence[str],
    path: Path,
    unfinished: UnfinishedEmbeddings | None = None,
    chunk: Chunk | None = None,
    queries: int | None = None,
) -> int:
    """Write the unit vectors of texts to a file of raw float32, and return their dimensions.

    They are encoded block by block, unless they are in ``unfinished``; for ``chunk`` see :func:`encode_with_bar`. The
    first ``queries`` texts are queries and the others documents; ``None`` if the model does not distinguish them.
    ModelError if a vector is not finite or all zeros.
    """
    dim = 0
    with progress_bar("encode", "text", len(texts)) as bar, replacing(path) as beside, beside.open("wb") as stream:

        def encode(block: list[str], task: TaskName | None = None) -> Embeddings:
            rows = np.asarray(_encode(model, block, chunk, task, bar.update))
            return unit_rows(nonzero_rows(checked_rows(rows, block), block))

        for start, end, task in _blocks(len(texts), queries):
            block = list(texts[start:end])
            run = partial(encode, task=task)
            whole = len(block) == BLOCK_TEXTS
            # The cache is keyed by text alone, and a query may have another vector than the same text.
            if unfinished is None or task == "query":
                unit = run(block)
            else:
                unit = unfinished.rows(block, run, keep=whole)
            stream.write(unit.tobytes())
            dim = unit.shape[1]
            bar.update(start + len(block) - bar.n)  # the cached ones
    return dim
