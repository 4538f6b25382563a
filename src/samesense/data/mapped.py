"""Texts that memory need not hold: in a file that is mapped, where there are many."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from samesense.failures import imported, writing
from samesense.hashes import text_digest

MOST_IN_MEMORY = 1_000_000
"""Texts that a list holds; more are put into a file."""

BLOCK = 10_000
"""Texts that are written at a time."""

COLUMN = "sentence"

_PLACES: list[TemporaryDirectory[str]] = []
"""Folders of such files, which are deleted when the process ends."""


def gathered(texts: Iterable[str], *, once: bool) -> Sequence[str]:
    """Return texts in their order, of equal ones the first where they shall be there ``once``.

    More than :data:`MOST_IN_MEMORY` are a column of a ``datasets.Dataset``, mapped from a file among the temporary ones
    of this machine; OutputError if that has no room.
    """
    every = iter(texts)
    first = list(islice(every, MOST_IN_MEMORY + 1))
    if len(first) <= MOST_IN_MEMORY:
        return list(dict.fromkeys(first)) if once else first
    return _mapped(chain(first, every), once)


def is_mapped(texts: Sequence[Any]) -> bool:
    """Return whether texts stand in a file; their dataset is then ``texts.source``."""
    return hasattr(texts, "source")


def taken(texts: Any, rows: Iterable[int]) -> list[str]:
    """Return the texts of these rows, in the order given."""
    chosen = [int(row) for row in rows]
    found: list[str] = texts[chosen] if is_mapped(texts) else [texts[row] for row in chosen]
    return found


def each(texts: Sequence[str]) -> Iterator[str]:
    """Yield all texts, those of a file block by block: one by one takes several times as long."""
    if not is_mapped(texts):
        return iter(texts)
    return chain.from_iterable(texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK))


def _mapped(texts: Iterator[str], once: bool) -> Sequence[str]:
    import pyarrow as pa

    datasets = imported("datasets", "train")
    _PLACES.append(TemporaryDirectory(prefix="samesense-", ignore_cleanup_errors=True))
    path, schema = Path(_PLACES[-1].name) / "texts.arrow", pa.schema([(COLUMN, pa.large_string())])
    digests = array("Q")  # 64 bits: of 100 million texts, two differ and have one digest with a probability of 0.0003
    with writing(path), pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while block := list(islice(texts, BLOCK)):
            digests.extend(int.from_bytes(text_digest(text)[:8]) for text in block if once)
            writer.write_batch(pa.record_batch([pa.array(block, pa.large_string())], schema=schema))
    found = datasets.Dataset.from_file(str(path))
    if once:
        rows = np.sort(np.unique(np.frombuffer(digests, np.uint64), return_index=True)[1])
        found = found if len(rows) == len(found) else found.select(rows).flatten_indices()
    column: Sequence[str] = found[COLUMN]
    return column
