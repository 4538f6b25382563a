"""An inverted index of terms over chunks, built in bounded memory and read by memory mapping.

Blocks of chunks are counted one by one, each a file that is there whole or not at all, so that a killed build goes on.
They are then merged by ranges of keys, which are hashes and so spread evenly. The folder of a finished index holds

    keys.bin      uint64: the distinct terms, ascending
    ends.bin      int64: where the postings of each term end
    chunks.bin    int32: the chunks of the postings, ascending within a term
    counts.bin    float32: how often the term comes in the chunk
    norms.bin     float64: length of the TF-IDF vector of each chunk; 0 where it has no term
    manifest.json counts
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.corpus import spans
from samesense.context.corpus.words import Keys
from samesense.context.retrieval.bigrams import counted
from samesense.files import append, map_array, read_json, write_array, write_json
from samesense.types import Floats

BLOCK_CHUNKS = 4096
"""Chunks counted at a time: what a killed build may lose."""

RANGE_POSTINGS = 4_000_000
"""About so many postings are merged at a time."""

Ids = npt.NDArray[np.int64]

_POSTING = np.dtype([("key", np.uint64), ("chunk", np.int32), ("count", np.float32)])


def term_weights(counts: npt.NDArray[Any]) -> Floats:
    """Return the weight of terms by how often they come in a text: 1 + ln(count)."""
    weights: Floats = 1.0 + np.log(counts, dtype=np.float64)
    return weights


def inverse_frequencies(chunks: int, frequencies: npt.NDArray[Any]) -> Floats:
    """Return ln((1 + chunks) / (1 + frequency)) + 1, ``frequency`` being in how many chunks a term comes."""
    inverse: Floats = np.log((1.0 + chunks) / (1.0 + frequencies)) + 1.0
    return inverse


class Postings:
    """A finished index.

    Attributes:
        chunks: how many chunks it covers.
        norms: length of the TF-IDF vector of each chunk ``(chunks,)``.

    Raises:
        DataError: if the index is damaged.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_json(folder / "manifest.json")
        self.chunks: int = manifest["chunks"]
        terms, postings = manifest["terms"], manifest["postings"]
        self._keys: Keys = map_array(folder / "keys.bin", np.uint64, terms)
        self._ends: Ids = map_array(folder / "ends.bin", np.int64, terms)
        self._chunks = map_array(folder / "chunks.bin", np.int32, postings)
        self._counts = map_array(folder / "counts.bin", np.float32, postings)
        self.norms: Floats = map_array(folder / "norms.bin", np.float64, self.chunks)

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Ids, Ids]:
        """Return which terms are known, and of the known ones where their postings start and end."""
        at = np.searchsorted(self._keys, keys)
        known = np.zeros(len(keys), dtype=np.bool_)
        inside = at < len(self._keys)
        known[inside] = self._keys[at[inside]] == keys[inside]
        at = at[known]
        return known, np.where(at > 0, self._ends[at - 1], 0), np.asarray(self._ends[at])

    def read(self, starts: Ids, ends: Ids) -> tuple[npt.NDArray[np.int32], Floats]:
        """Return chunks and weights of postings, one span after the other."""
        rows = spans(starts, ends)
        return self._chunks[rows], term_weights(self._counts[rows])


def build_postings(
    folder: Path,
    chunks: int,
    texts: Callable[[int], Sequence[str]],
    *,
    unigrams: bool,
    on_progress: Callable[[int], None] | None = None,
) -> None:
    """Index chunks into a new folder.

    Args:
        folder: the index; what is built goes into another folder beside it, which is renamed at the end.
        chunks: how many there are.
        texts: gives the sentences of a chunk.
        unigrams: see :func:`~samesense.context.retrieval.bigrams.term_keys`.
        on_progress: called with the number of chunks just counted.
    """
    beside = folder.with_name(f".{folder.name}-building")
    merged = beside / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    blocks = []
    for start in range(0, chunks, BLOCK_CHUNKS):
        path = beside / f"{start}-{BLOCK_CHUNKS}.npy"
        end = min(chunks, start + BLOCK_CHUNKS)
        if not path.exists():
            _write_block(path, start, [texts(chunk) for chunk in range(start, end)], unigrams)
            if on_progress is not None:
                on_progress(end - start)
        blocks.append(np.load(path, mmap_mode="r", allow_pickle=False))
    _merge(merged, blocks, chunks)
    merged.rename(folder)
    shutil.rmtree(beside)


def _write_block(path: Path, first: int, chunks: Sequence[Sequence[str]], unigrams: bool) -> None:
    parts = []
    for chunk, texts in enumerate(chunks, first):
        keys, counts = counted(texts, unigrams)
        part = np.empty(len(keys), dtype=_POSTING)
        part["key"], part["chunk"], part["count"] = keys, chunk, counts
        parts.append(part)
    block = np.concatenate(parts)
    write_array(path, block[np.argsort(block["key"], kind="stable")])


def _merge(folder: Path, blocks: Sequence[npt.NDArray[Any]], chunks: int) -> None:
    total = sum(map(len, blocks))
    ranges = 1 + total // RANGE_POSTINGS
    edges = np.array([(1 << 64) * part // ranges for part in range(1, ranges)], dtype=np.uint64)
    cuts = [[0, *np.searchsorted(block["key"], edges), len(block)] for block in blocks]
    squares = np.zeros(chunks)
    terms = postings = 0
    for part in range(ranges):
        rows = np.concatenate([b[cut[part] : cut[part + 1]] for b, cut in zip(blocks, cuts, strict=True)])
        rows = rows[np.argsort(rows["key"], kind="stable")]
        keys, frequencies = np.unique(rows["key"], return_counts=True)
        weights = term_weights(rows["count"]) * np.repeat(inverse_frequencies(chunks, frequencies), frequencies)
        squares += np.bincount(rows["chunk"], weights**2, minlength=chunks)
        append(folder / "keys.bin", keys)
        append(folder / "ends.bin", (postings + np.cumsum(frequencies)).astype(np.int64))
        append(folder / "chunks.bin", rows["chunk"])
        append(folder / "counts.bin", rows["count"])
        terms, postings = terms + len(keys), postings + len(rows)
    append(folder / "norms.bin", np.sqrt(squares))
    write_json(folder / "manifest.json", {"chunks": chunks, "terms": terms, "postings": postings})
