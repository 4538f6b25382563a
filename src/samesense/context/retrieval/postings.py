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
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.corpus import spans
from samesense.context.corpus.words import Keys, key, words
from samesense.errors import DataError
from samesense.execution.progress import progress_bar
from samesense.files import append, map_array, write_array, write_json
from samesense.schemas import Record, read_checked
from samesense.types import Floats, Indices

BLOCK_CHUNKS = 4096
"""Chunks counted at a time: what a killed build may lose."""

RANGE_POSTINGS = 4_000_000
"""The approximate number of postings merged at a time."""

_POSTING = np.dtype([("key", np.uint64), ("chunk", np.int32), ("count", np.float32)])

FORMAT = 2
"""Changes when the same text gets other keys, so that no older index is read with them."""

# 2^64 over the golden ratio, and a prime of xxHash: odd constants that make the order of two words count.
_FIRST = np.uint64(0x9E3779B97F4A7C15)
_SECOND = np.uint64(0xC2B2AE3D27D4EB4F)

# The words of a corpus repeat, and a look-up is faster than a hash in Python.
_word_key = lru_cache(maxsize=1 << 18)(key)

DECIMALS = 9
"""Decimals to which scores are compared: their last bits depend on the other scores of the batch."""


def term_weights(counts: npt.NDArray[Any]) -> Floats:
    """Return the weight of terms by how often they come in a text: 1 + ln(count)."""
    weights: Floats = 1.0 + np.log(counts, dtype=np.float64)
    return weights


def inverse_frequencies(chunks: int, frequencies: npt.NDArray[Any]) -> Floats:
    """Return ln((1 + chunks) / (1 + frequency)) + 1, ``frequency`` being in how many chunks a term comes."""
    return np.log((1.0 + chunks) / (1.0 + frequencies)) + 1.0


class PostingsRecord(Record):
    """What the manifest of an index holds."""

    chunks: int
    terms: int
    postings: int


class Postings:
    """A finished index over ``chunks`` chunks; ``norms`` ``(chunks,)`` are the lengths of their TF-IDF vectors."""

    def __init__(self, folder: Path) -> None:
        manifest = read_checked(folder / "manifest.json", PostingsRecord)
        self.folder = folder
        self.chunks = manifest.chunks
        self._keys: Keys = map_array(folder / "keys.bin", np.uint64, manifest.terms)
        self._ends: Indices = map_array(folder / "ends.bin", np.int64, manifest.terms)
        self._chunks = map_array(folder / "chunks.bin", np.int32, manifest.postings)
        self._counts = map_array(folder / "counts.bin", np.float32, manifest.postings)
        self.norms: Floats = map_array(folder / "norms.bin", np.float64, self.chunks)

    def find(self, keys: Keys) -> tuple[npt.NDArray[np.bool_], Indices, Indices]:
        """Return which terms are known, and of the known ones where their postings start and end."""
        rows = np.searchsorted(self._keys, keys)
        hits = np.zeros(len(keys), dtype=np.bool_)
        # A key beyond the last one has no row to be compared with.
        inside = rows < len(self._keys)
        hits[inside] = self._keys[rows[inside]] == keys[inside]
        rows = rows[hits]
        # For the first term the row before is -1, and its value is not used.
        return hits, np.where(rows > 0, self._ends[rows - 1], 0), np.asarray(self._ends[rows])

    def read(self, starts: Indices, ends: Indices) -> tuple[npt.NDArray[np.int32], Floats]:
        """Return chunks and weights of postings, one span after the other."""
        rows = spans(starts, ends)
        chunks = self._chunks[rows]
        if len(chunks) and not 0 <= chunks.min() <= chunks.max() < self.chunks:
            raise DataError(f"{self.folder} is damaged: it names chunks that the corpus has not. Delete the folder.")
        return chunks, term_weights(self._counts[rows])


def build_postings(folder: Path, chunks: int, texts: Callable[[int], Sequence[str]], *, unigrams: bool) -> None:
    """Index chunks into a new folder."""
    beside = folder.with_name(f".{folder.name}-building")
    merged = beside / "merged"
    # A merge appends to its files, so that one that was killed begins again, unlike the blocks.
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    blocks = []
    with progress_bar("index", "chunk", chunks, leave=False) as bar:
        for start in range(0, chunks, BLOCK_CHUNKS):
            # The name holds the size, so that blocks of another size are not taken up.
            path = beside / f"{start}-{BLOCK_CHUNKS}.npy"
            end = min(chunks, start + BLOCK_CHUNKS)
            # A build that was killed goes on with the blocks that it left.
            if not path.exists():
                _write_block(path, start, [texts(chunk) for chunk in range(start, end)], unigrams)
            blocks.append(np.load(path, mmap_mode="r", allow_pickle=False))
            bar.update(end - start)
        _merge(merged, blocks, chunks)
    # Last, so that a folder with this name is complete.
    merged.rename(folder)
    shutil.rmtree(beside)


def _write_block(path: Path, first: int, chunks: Sequence[Sequence[str]], unigrams: bool) -> None:
    blocks = []
    for chunk, texts in enumerate(chunks, first):
        keys, counts = counted(texts, unigrams)
        postings = np.empty(len(keys), dtype=_POSTING)
        postings["key"] = keys
        postings["chunk"] = chunk
        postings["count"] = counts
        blocks.append(postings)
    block = np.concatenate(blocks)
    # By key and, as the sort is stable, by chunk.
    write_array(path, block[np.argsort(block["key"], kind="stable")])


def _merge(folder: Path, blocks: Sequence[npt.NDArray[Any]], chunks: int) -> None:
    total = sum(map(len, blocks))
    ranges = 1 + total // RANGE_POSTINGS
    # Keys are hashes, so that ranges of equal width have about equally many postings.
    edges = np.array([(1 << 64) * index // ranges for index in range(1, ranges)], dtype=np.uint64)
    cuts = [[0, *np.searchsorted(block["key"], edges), len(block)] for block in blocks]
    squares = np.zeros(chunks)
    terms = 0
    postings = 0
    for index in range(ranges):
        rows = np.concatenate([b[bounds[index] : bounds[index + 1]] for b, bounds in zip(blocks, cuts, strict=True)])
        rows = rows[np.argsort(rows["key"], kind="stable")]
        keys, frequencies = np.unique(rows["key"], return_counts=True)
        weights = term_weights(rows["count"]) * np.repeat(inverse_frequencies(chunks, frequencies), frequencies)
        squares += np.bincount(rows["chunk"], weights**2, minlength=chunks)
        append(folder / "keys.bin", keys)
        append(folder / "ends.bin", (postings + np.cumsum(frequencies)).astype(np.int64))
        append(folder / "chunks.bin", rows["chunk"])
        append(folder / "counts.bin", rows["count"])
        terms = terms + len(keys)
        postings = postings + len(rows)
    append(folder / "norms.bin", np.sqrt(squares))
    write_json(folder / "manifest.json", {"chunks": chunks, "terms": terms, "postings": postings})


def term_keys(text: str, unigrams: bool) -> Keys:
    """Return the keys of the terms of one sentence ``(terms,)``: pairs, then words, each as often as it comes.

    The pair of two words is hashed in order. Keys of 64 bits collide with a chance of 3 in 100 million among a million
    terms.
    """
    text_words = words(text)
    single = np.fromiter((_word_key(word) for word in text_words), dtype=np.uint64, count=len(text_words))
    pairs = _mixed(single[:-1] * _FIRST + _mixed(single[1:] ^ _SECOND))
    if not unigrams:
        return pairs
    return np.concatenate([pairs, single])


def counted(texts: Iterable[str], unigrams: bool) -> tuple[Keys, npt.NDArray[np.int64]]:
    """Return the distinct terms of some sentences, ascending, and how often each comes; no pair crosses sentences."""
    keys = np.concatenate([np.zeros(0, dtype=np.uint64), *(term_keys(text, unigrams) for text in texts)])
    return np.unique(keys, return_counts=True)


def _mixed(keys: Keys) -> Keys:
    """Spread every bit of a key over all others (the finaliser of splitmix64, Steele et al. 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def top_k(scores: Floats, most: int) -> Indices:
    """Return the indices of at most ``most`` highest scores, highest first, ties by index."""
    scores = scores.round(DECIMALS)
    indices = np.arange(len(scores))
    if most < len(scores):
        # All that tie with the last one stay, so that the index decides and not the partition.
        indices = np.flatnonzero(scores >= np.partition(scores, -most)[-most])
    return indices[np.argsort(-scores[indices], kind="stable")][:most]
