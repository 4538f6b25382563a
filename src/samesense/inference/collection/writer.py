"""The changes of a collection, one writer at a time: everything is written first, and then the manifest is swapped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from samesense.errors import DataError, ModelError, OutputError
from samesense.files import LOCK, is_temporary, only_writer, write_array
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import LARGEST_ID, Entry, record_line
from samesense.inference.collection.manifest import (
    MANIFEST,
    SEGMENTS,
    Approximate,
    Manifest,
    SegmentNote,
    leftovers,
    read_manifest,
    swap_manifest,
    tidy,
)
from samesense.inference.collection.segment import SegmentWriter
from samesense.inference.collection.state import State, with_graph
from samesense.inference.search.hnsw import check_usearch

BLOCK_TEXTS = 2048
"""Texts encoded and written at once."""

MOST_SEGMENTS = 64
"""Segments from which on a change puts them all into one."""

WAIT = 60.0
"""Seconds for which a writer waits for another."""


def check_model(manifest: Manifest, model: Embedder, folder: Path) -> None:
    """Raise ModelError for a model whose vectors do not belong to the collection, saying which it was built with."""
    if model.identity != manifest.identity:
        raise ModelError(
            f"A collection is used with the model it was built with; {folder} was built with {manifest.model!r} in "
            f"{manifest.precision}, received {model.name!r} in {model.precision}, which differs in weights, "
            "settings or precision. Use that model, or build the collection anew."
        )


def build(
    folder: Path,
    entries: Iterable[Entry],
    model: Embedder,
    dtype: Literal["float32", "float16"],
    approximate: Approximate,
    overwrite: bool,
    on_progress: Callable[[int], None] | None,
) -> None:
    """See :meth:`~samesense.inference.collection.collection.Collection.build`."""
    if not model.identity:
        raise ModelError("A collection is kept for a model with an identity; received an empty one.")
    if approximate == "always":
        check_usearch()
    _check_place(folder, overwrite)
    with only_writer(folder, WAIT):
        old = _check_place(folder, overwrite)
        tidy(folder, old)
        generation = 1 if old is None else old.generation + 1
        with SegmentWriter(folder / SEGMENTS / f"{generation:06d}", dtype) as writer:
            dim, next_id = _write(writer, entries, model, 0, None, on_progress)
            note = writer.finish()
        manifest = Manifest(
            generation=generation,
            model=model.name,
            identity=model.identity,
            precision=model.precision,
            dim=dim,
            dtype=dtype,
            approximate=approximate,
            next_id=next_id,
            segments=(note,),
        )
        _commit(folder, manifest)


def add(folder: Path, entries: Iterable[Entry], model: Embedder, on_progress: Callable[[int], None] | None) -> int:
    """See :meth:`~samesense.inference.collection.collection.Collection.add`."""
    check_model(read_manifest(folder), model, folder)
    with only_writer(folder, WAIT):
        state = _begin(folder)
        old = state.manifest
        check_model(old, model, folder)
        generation = old.generation + 1
        with SegmentWriter(folder / SEGMENTS / f"{generation:06d}", old.dtype) as writer:
            dim, next_id = _write(writer, entries, model, old.next_id, state, on_progress)
            if dim != old.dim:
                raise ModelError(f"The collection holds vectors of {old.dim} numbers; the model gave {dim}.")
            note = writer.finish()
        changed = {"generation": generation, "next_id": next_id, "segments": (*old.segments, note)}
        _commit(folder, old.model_copy(update=changed))
        return note.rows


def delete(folder: Path, ids: Sequence[int], where: Mapping[str, Sequence[str]]) -> int:
    """Delete texts by id, or by metadata; see :meth:`~samesense.inference.collection.collection.Collection.delete`."""
    with only_writer(folder, WAIT):
        state = _begin(folder)
        state.check_names(where)
        doomed = [np.flatnonzero(mask) for mask in state.masks(where)] if where else _rows_of(state, ids)
        count = sum(map(len, doomed))
        if not count:
            return 0
        old = state.manifest
        generation = old.generation + 1
        notes = []
        for segment, rows in zip(state.segments, doomed, strict=True):
            if not len(rows):
                notes.append(segment.note)
                continue
            dead = np.union1d(np.flatnonzero(~segment.live), rows)
            path = folder / f"deleted-{generation:06d}-{segment.note.name}.npy"
            write_array(path, dead, sync=True)
            notes.append(segment.note.model_copy(update={"deleted": len(dead), "tombstones": path.name}))
        _commit(folder, old.model_copy(update={"generation": generation, "segments": tuple(notes)}))
        return count


def compact(folder: Path) -> None:
    """Write all live texts into one segment, in their order, and make the approximate index anew."""
    with only_writer(folder, WAIT):
        old = _begin(folder).manifest
        _commit(folder, old.model_copy(update={"generation": old.generation + 1, "graph": None}), whole=True)


def _check_place(folder: Path, overwrite: bool) -> Manifest | None:
    """Return the collection that is replaced, if there is one; refuse a folder with anything else in it."""
    if (folder / MANIFEST).exists():
        if not overwrite:
            raise OutputError(f"{folder} holds a collection. Add to it, or replace it with `overwrite`.")
        return read_manifest(folder)
    if folder.exists():
        if not folder.is_dir():
            raise OutputError(f"A collection is a folder; {folder} is a file. Give another place.")
        ours = {path.name for path in leftovers(folder, None)} | {LOCK, SEGMENTS}
        others = sorted(one.name for one in folder.iterdir() if one.name not in ours and not is_temporary(one.name))
        if others:
            raise OutputError(f"{folder} is not empty: it holds {', '.join(others[:5])}. Give a folder of its own.")
    return None


def _begin(folder: Path) -> State:
    """Remove what earlier writers left, and open the state that is changed."""
    tidy(folder, read_manifest(folder))
    return State.open(folder, with_graph=False)


def _commit(folder: Path, manifest: Manifest, *, whole: bool = False) -> None:
    """Make a manifest the state, after putting its segments into one if asked for, if they are many, or half dead."""
    rows = sum(note.rows for note in manifest.segments)
    if whole or len(manifest.segments) > MOST_SEGMENTS or 2 * manifest.live < rows:
        manifest = manifest.model_copy(update={"segments": _merged(folder, manifest), "graph": None})
    swap_manifest(folder, with_graph(folder, manifest))
    tidy(folder, read_manifest(folder))


def _merged(folder: Path, manifest: Manifest) -> tuple[SegmentNote, ...]:
    """Write the live rows of all segments into a new one; none if nothing lives."""
    if not manifest.live:
        return ()
    state = State(folder, manifest, with_graph=False)
    with SegmentWriter(folder / SEGMENTS / f"{manifest.generation:06d}-whole", manifest.dtype) as writer:
        for segment in state.segments:
            rows = np.flatnonzero(segment.live)
            for start in range(0, len(rows), BLOCK_TEXTS):
                part = rows[start : start + BLOCK_TEXTS]
                writer.append([segment.entry(int(r)) for r in part], segment.ids[part].tolist(), segment.vectors[part])
        return (writer.finish(),)


def _write(
    writer: SegmentWriter,
    entries: Iterable[Entry],
    model: Embedder,
    next_id: int,
    state: State | None,
    on_progress: Callable[[int], None] | None,
) -> tuple[int, int]:
    """Encode and write all entries; return the numbers of a vector and the id that comes next."""
    dim = 0
    seen: set[int] = set()
    for block in _blocks(entries):
        ids: list[int] = []
        for entry in block:
            record_line(entry, f"text {len(writer.ids) + len(ids) + 1}")
            ids.append(next_id if entry.id is None else entry.id)
            next_id = max(next_id, ids[-1] + 1)
        _check_ids(ids, seen, state)
        vectors = model.unit([entry.text for entry in block])
        if dim not in (0, vectors.shape[1]):
            raise ModelError(f"A model must give vectors of one width; it gave {dim} and {vectors.shape[1]} numbers.")
        dim = vectors.shape[1]
        writer.append(block, ids, vectors)
        if on_progress is not None:
            on_progress(len(block))
    if not len(writer.ids):
        raise DataError("There is no text to keep; at least one is needed.")
    return dim, next_id


def _blocks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    source = iter(entries)
    while block := list(islice(source, BLOCK_TEXTS)):
        yield block


def _check_ids(ids: list[int], seen: set[int], state: State | None) -> None:
    """Refuse ids that come twice, or are in the collection; and remember them."""
    for number in ids:
        if number > LARGEST_ID - 1:
            raise DataError(f"Ids must leave room for the next one; received {number}.")
        if number in seen:
            raise DataError(f"Every text has an id of its own; {number} comes twice. Correct the column id.")
        seen.add(number)
    if state is not None:
        there = state.find(np.array(ids, dtype=np.int64))[0]
        if there.any():
            number = ids[int(np.argmax(there))]
            raise DataError(
                f"Every text has an id of its own; {number} is in the collection ({int(there.sum())} such texts in "
                "this block). Delete it first to replace it."
            )


def _rows_of(state: State, ids: Sequence[int]) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Return the rows with the ids in each segment; DataError if one is not there."""
    for number in ids:
        if not 0 <= number <= LARGEST_ID:
            raise DataError(f"An id is a whole number from 0 to 2**63 - 1; received {number}. Nothing was deleted.")
    numbers = np.unique(np.array(ids, dtype=np.int64))
    there, homes, rows = state.find(numbers)
    if not there.all():
        missing = numbers[~there]
        raise DataError(
            f"The collection holds no text with the id {missing[0]} ({len(missing)} of {len(numbers)} ids are not "
            "there). Nothing was deleted."
        )
    return [rows[homes == number] for number in range(len(state.segments))]
