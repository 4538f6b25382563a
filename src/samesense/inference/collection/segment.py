"""The rows that were added to a collection together: files that are written once, and read by memory mapping.

vectors.bin    unit vectors, row after row
ids.npy        the id of each row
records.jsonl  text and metadata, a line a row; offsets.npy says where each begins
fields.json    names of metadata with their values; field_rows.npy and field_codes.npy say which row has which value
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.files import sync_file, sync_folder
from samesense.inference.collection.entries import Entry, canonical, record_line
from samesense.inference.collection.manifest import SegmentNote
from samesense.inference.search.exact import BLOCK_ROWS, Block, Ids

Mask = npt.NDArray[np.bool_]


class SegmentWriter:
    """Writes a new segment to a new folder; nothing counts before a manifest names it."""

    def __init__(self, folder: Path, dtype: str) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._dtype = dtype
        self._vectors = (folder / "vectors.bin").open("wb")
        self._records = (folder / "records.jsonl").open("wb")
        self._offsets = array("q", [0])
        self.ids = array("q")
        self._fields: dict[str, tuple[dict[str, int], array[int], array[int]]] = {}

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._vectors.close()
        self._records.close()

    def append(self, entries: Sequence[Entry], ids: Sequence[int], vectors: npt.NDArray[np.floating]) -> None:
        """Add rows: entries and ids ``(rows,)``, unit vectors ``(rows, dim)``."""
        self._vectors.write(np.ascontiguousarray(vectors, dtype=self._dtype).tobytes())
        for number, entry in zip(ids, entries, strict=True):
            for name, value in entry.metadata.items():
                values, rows, codes = self._fields.setdefault(name, ({}, array("q"), array("q")))
                rows.append(len(self.ids))
                codes.append(values.setdefault(canonical(value), len(values)))
            line = record_line(entry, f"text {len(self.ids) + 1}")
            self._records.write(line)
            self._offsets.append(self._offsets[-1] + len(line))
            self.ids.append(number)

    def finish(self) -> SegmentNote:
        """Write the rest, wait until everything is on the disk, and return what a manifest says of it."""
        self._vectors.close()
        self._records.close()
        notes, rows, codes = [], array("q"), array("q")
        for name, (values, its_rows, its_codes) in self._fields.items():
            notes.append({"name": name, "start": len(rows), "values": list(values)})
            rows += its_rows
            codes += its_codes
        (self._folder / "fields.json").write_text(json.dumps(notes, ensure_ascii=False), encoding="utf-8")
        for name, numbers in (
            ("ids", self.ids),
            ("offsets", self._offsets),
            ("field_rows", rows),
            ("field_codes", codes),
        ):
            np.save(self._folder / f"{name}.npy", np.array(numbers, dtype=np.int64))
        for path in self._folder.iterdir():
            sync_file(path)
        sync_folder(self._folder)
        sync_folder(self._folder.parent)
        return SegmentNote(name=self._folder.name, rows=len(self.ids))


class Segment:
    """An existing segment. What it needs is mapped when it is opened, so that it outlives its files.

    ``vectors`` are ``(rows, dim)``, ``ids`` and ``live``, which are not deleted, ``(rows,)``. FileNotFoundError if a
    file is not there, DataError if files do not fit together.
    """

    def __init__(self, folder: Path, note: SegmentNote, dim: int, dtype: str, tombstones: Path | None) -> None:
        self.note = note
        self._folder = folder
        try:
            self.vectors: npt.NDArray[np.floating] = np.memmap(
                folder / "vectors.bin", dtype=dtype, mode="r", shape=(note.rows, dim)
            )
            self.ids: Ids = np.load(folder / "ids.npy", mmap_mode="r", allow_pickle=False)
            self._records = np.memmap(folder / "records.jsonl", dtype=np.uint8, mode="r")
            self._offsets: Ids = np.load(folder / "offsets.npy", mmap_mode="r", allow_pickle=False)
            self._about = np.memmap(folder / "fields.json", dtype=np.uint8, mode="r")
            self._field_rows: Ids = np.load(folder / "field_rows.npy", mmap_mode="r", allow_pickle=False)
            self._field_codes: Ids = np.load(folder / "field_codes.npy", mmap_mode="r", allow_pickle=False)
            self.live: Mask = np.ones(note.rows, dtype=np.bool_)
            if tombstones is not None:
                self.live[np.load(tombstones, allow_pickle=False)] = False
        except (ValueError, EOFError, IndexError) as error:
            raise _damaged(folder) from error
        if len(self.ids) != note.rows or len(self._offsets) != note.rows + 1 or self._offsets[-1] != len(self._records):
            raise _damaged(folder)
        if int(self.live.sum()) != note.rows - note.deleted:
            raise _damaged(folder)
        self._fields: dict[str, tuple[dict[str, int], int, int]] | None = None

    def entry(self, row: int) -> Entry:
        """Return what a row holds."""
        line = self._records[self._offsets[row] : self._offsets[row + 1]].tobytes()
        record: dict[str, Any] = json.loads(line)
        return Entry(record["text"], int(self.ids[row]), record["metadata"])

    def fields(self) -> dict[str, tuple[dict[str, int], int, int]]:
        """Return names of metadata, with the codes of their values, and where their rows begin and end."""
        if self._fields is None:
            notes = json.loads(self._about.tobytes())
            starts = [*(note["start"] for note in notes), len(self._field_rows)]
            self._fields = {
                note["name"]: ({value: code for code, value in enumerate(note["values"])}, note["start"], end)
                for note, end in zip(notes, starts[1:], strict=True)
            }
        return self._fields

    def matching(self, where: Mapping[str, Sequence[str]]) -> Mask:
        """Return which rows are live and have for every name one of the values, given as JSON text; ``(rows,)``."""
        mask = self.live.copy()
        for name, values in where.items():
            codes, start, end = self.fields().get(name, ({}, 0, 0))
            wanted = [codes[value] for value in values if value in codes]
            chosen = np.zeros(self.note.rows, dtype=np.bool_)
            chosen[self._field_rows[start:end][np.isin(self._field_codes[start:end], wanted)]] = True
            mask &= chosen
        return mask

    def blocks(self, mask: Mask) -> Iterator[Block]:
        """Yield ids and vectors of the rows of a mask, at most ``BLOCK_ROWS`` at a time."""
        for start in range(0, self.note.rows, BLOCK_ROWS):
            part = mask[start : start + BLOCK_ROWS]
            if part.all():
                yield self.ids[start : start + BLOCK_ROWS], self.vectors[start : start + BLOCK_ROWS]
            elif part.any():
                rows = start + np.flatnonzero(part)
                yield self.ids[rows], self.vectors[rows]


def _damaged(folder: Path) -> DataError:
    return DataError(
        f"The collection is damaged: the files of {folder} do not fit together. Build it anew from its texts."
    )
