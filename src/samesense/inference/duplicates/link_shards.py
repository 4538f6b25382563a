"""The links of a work folder, searched by many workers in shards that can be resumed.

    sharded/lists/    the centres of the lists, and for each shard of rows its closest lists
    sharded/links/    recall, the lists that each row is searched in, the rows of each list, and for each range of
                      lists its links

Workers read vectors and lists from the work folder, so that all machines must see it at the same path. They return
links to the one writer. All steps are those of one process, with the same result.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from samesense.errors import DataError
from samesense.execution.shards.job import Shard, ShardedJob, sharded_job
from samesense.execution.shards.tasks import Executor
from samesense.files import map_array, npy_bytes, replacing
from samesense.inference.duplicates.links import Links, ListSearch, RangeLinks
from samesense.inference.duplicates.vector_shards import LINK_SHARDS, LIST_SHARDS, SHARDED, Sharing
from samesense.inference.duplicates.work import VECTORS, Search, Work
from samesense.inference.search.lists import (
    PROBES,
    RANGE_PAIRS,
    Lists,
    RowsOfLists,
    choose_probes,
    closest_lists,
    cut_lists,
    list_centres,
    row_type,
)
from samesense.types import Embeddings

ROWS_A_SHARD = 32_768
"""Rows of a shard whose closest lists are found in one task; a multiple of the rows that one process compares."""

CENTRES = "centres.npy"
PROBE_LISTS = "probes.bin"
HOMES = "homes.bin"
PROBING = "probing"
MEMBERS = "members"
RECALL = "recall.json"


@dataclass(frozen=True)
class Matrix:
    """A file of raw numbers that every worker maps into memory: its path, type, rows and columns."""

    path: Path
    dtype: str
    rows: int
    columns: int

    def open(self) -> npt.NDArray[Any]:
        """Return the matrix ``(rows, columns)``; DataError if a worker does not see the file."""
        try:
            return map_array(self.path, self.dtype, self.rows, self.columns)
        except DataError as error:
            raise DataError(
                f"Every worker reads the work folder, and {self.path} is not the same on this machine ({error}) Put "
                "the folder on a disk that all machines see at the same path."
            ) from error


@dataclass(frozen=True)
class Rows:
    """The rows of a shard, and how many of their closest lists are needed: all that may be searched, or their own."""

    start: int
    stop: int
    lists: int


@dataclass(frozen=True)
class ListsWork:
    """Finds the closest lists of shards of rows; it can be pickled."""

    vectors: Matrix
    centres: Embeddings
    shards: tuple[Rows, ...]

    def __call__(self, shard: int) -> Shard:
        """Return the closest lists of the rows of this shard, ``(rows, lists)``, as an npy file."""
        started = time.perf_counter()
        chosen = self.shards[shard]
        rows = self.vectors.open()[chosen.start : chosen.stop]
        with threadpool_limits(1, user_api="blas"):
            closest = closest_lists(rows, self.centres, chosen.lists, "")
        return Shard(npy_bytes(closest), len(rows), time.perf_counter() - started)


@dataclass(frozen=True)
class ListFiles:
    """Vectors in lists, as files of a work folder that every worker reads; nothing of them is copied into memory.

    Attributes:
        vectors: unit vectors ``(rows, dim)``.
        probes: the lists in which each query is searched ``(queries, probes)``.
        homes: the list of each target ``(targets, 1)``; ``None`` where queries and targets are the same rows.
        probing: rows and starts of :attr:`~samesense.inference.search.lists.Lists.probing`.
        members: those of its ``members``.
    """

    vectors: Matrix
    probes: Matrix
    homes: Matrix | None
    probing: tuple[Matrix, Matrix]
    members: tuple[Matrix, Matrix]

    def open(self, search: ListSearch, recall: float = np.nan, sampled: int = 0) -> Lists:
        """Return the lists; DataError if a worker does not see a file."""
        queries, targets = search.sides(self.vectors.open())
        return Lists(
            queries=queries,
            probes=self.probes.open(),
            targets=targets,
            homes=(self.homes or self.probes).open()[:, 0],
            probing=RowsOfLists(*(matrix.open()[:, 0] for matrix in self.probing)),
            members=RowsOfLists(*(matrix.open()[:, 0] for matrix in self.members)),
            same=self.homes is None,
            recall=recall,
            sampled=sampled,
        )


@dataclass(frozen=True)
class LinksWork:
    """Finds the links of ranges of lists; it can be pickled."""

    files: ListFiles
    search: ListSearch
    ranges: tuple[range, ...]
    floor: float

    def __call__(self, shard: int) -> Shard:
        """Return the links of the range of this number, as an npz file."""
        started = time.perf_counter()
        lists = self.files.open(self.search)
        with threadpool_limits(1, user_api="blas"):
            links = self.search.find(lists, self.ranges[shard], self.floor, self.search.most)
        sink = io.BytesIO()
        np.savez(sink, **vars(links))
        return Shard(sink.getvalue(), len(self.ranges[shard]), time.perf_counter() - started)


def search_in_lists(work: Work, search: ListSearch, sharing: Sharing | None) -> Search:
    """Return the search for the links of a work folder in lists, by many workers where it is shared."""
    if sharing is None:
        return search.links
    return lambda _, floor: links_by_shards(sharing.executor, work, search, floor)


def links_by_shards(executor: Executor, work: Work, search: ListSearch, floor: float) -> Links:
    """Return the links of :meth:`~samesense.inference.duplicates.links.ListSearch.links`, found by many workers.

    Args:
        executor: does the tasks.
        work: the vectors in a folder; finished shards are kept in it, so that the same call resumes.
        search: which links are searched.
        floor: lowest cosine of a link.

    Raises:
        OutputError: if the folder has unfinished shards of another search or floor, or another process writes to it.
        DataError: if a worker does not see the folder.
        SamesenseError: if shards failed after all retries; finished ones are kept.

    Example:
        >>> links_by_shards(OnRay("auto"), work, list_search(), 0.8)  # doctest: +SKIP
    """
    folder = work.folder.resolve()
    vectors = Matrix(folder / VECTORS, "float32", *work.vectors.shape)
    about = asdict(work.about)
    with sharded_job(folder / SHARDED / LIST_SHARDS, "lists", ".npy") as job:
        job.begin(search=about, settings={"rows_a_shard": ROWS_A_SHARD})
        probes, homes = _make_lists(job, executor, vectors, search)
    settings = {"floor": floor, "links_per_row": search.most, "range_pairs": RANGE_PAIRS}
    with sharded_job(folder / SHARDED / LINK_SHARDS, "links", ".npz") as job:
        job.begin(search=about, settings=settings)
        files, lists = _choose_probes(job, vectors, probes, homes, search, floor)
        ranges = tuple(cut_lists(lists))
        job.make(LinksWork(files, search, ranges, floor), executor, [len(numbers) for numbers in ranges], unit="list")
        return search.merge(_read_links(job, len(ranges)), lists, floor, search.most)


def _make_lists(
    job: ShardedJob, executor: Executor, vectors: Matrix, search: ListSearch
) -> tuple[Matrix, Matrix | None]:
    """Return the closest lists of each query, more than are needed, and of each target, in files of the job."""
    targets = search.sides(vectors.open())[1]
    if not job.folder.exists(CENTRES):
        job.folder.write(CENTRES, npy_bytes(list_centres(targets)))
    centres = np.load(io.BytesIO(job.folder.read(CENTRES)))
    queries = vectors.rows if search.split is None else search.split
    probes = min(PROBES[-1], len(centres))
    shards = [*_cut_rows(0, queries, probes), *_cut_rows(queries, vectors.rows, 1)]
    job.make(ListsWork(vectors, centres, tuple(shards)), executor, [rows.stop - rows.start for rows in shards], "row")
    shards_of_queries = len(_cut_rows(0, queries, probes))
    homes = None
    if search.split is not None:
        homes = _joined(job, HOMES, range(shards_of_queries, len(shards)), vectors.rows - queries, 1)
    return _joined(job, PROBE_LISTS, range(shards_of_queries), queries, probes), homes


def _cut_rows(start: int, stop: int, lists: int) -> list[Rows]:
    return [Rows(first, min(first + ROWS_A_SHARD, stop), lists) for first in range(start, stop, ROWS_A_SHARD)]


def _joined(job: ShardedJob, name: str, shards: range, rows: int, columns: int) -> Matrix:
    """Return the matrices of some shards as one, in a file of the job."""
    matrix = Matrix(Path(job.folder.path(name)), "int32", rows, columns)
    if not job.folder.exists(name):
        with replacing(matrix.path) as beside, beside.open("wb") as stream:
            for shard in shards:
                stream.write(np.load(job.path(shard)).tobytes())
    return matrix


def _choose_probes(
    job: ShardedJob, vectors: Matrix, probes: Matrix, homes: Matrix | None, search: ListSearch, floor: float
) -> tuple[ListFiles, Lists]:
    """Return the lists with as many probes as the recall needs, as files and open."""
    queries, targets = search.sides(vectors.open())
    if not job.folder.exists(RECALL):
        homes_of_targets = (homes or probes).open()[:, 0]
        _write_lists(job, choose_probes(queries, probes.open(), targets, homes_of_targets, floor, search.most))
    measured = json.loads(job.folder.read(RECALL))
    files = ListFiles(
        vectors,
        Matrix(Path(job.folder.path(PROBE_LISTS)), "int32", probes.rows, measured["probes"]),
        homes,
        _rows_files(job, PROBING, len(queries), measured["probes"], measured["lists"]),
        _rows_files(job, MEMBERS, len(targets), 1, measured["lists"]),
    )
    return files, files.open(search, measured["recall"], measured["sampled"])


def _write_lists(job: ShardedJob, lists: Lists) -> None:
    """Write lists for the workers, and what was measured of them."""
    with replacing(job.folder.path(PROBE_LISTS)) as beside:
        lists.probes.tofile(beside)
    for name, rows_of_lists in ((PROBING, lists.probing), (MEMBERS, lists.members)):
        for part, array in vars(rows_of_lists).items():
            with replacing(_rows_file(job, name, part)) as beside:
                array.tofile(beside)
    measured = {
        "probes": lists.probes.shape[1],
        "recall": lists.recall,
        "sampled": lists.sampled,
        "lists": len(lists.members.sizes),
    }
    # Last, because the number of probes counts as chosen once this file is there; NaN is read back as such.
    job.folder.write(RECALL, json.dumps(measured).encode())


def _rows_file(job: ShardedJob, name: str, part: str) -> Path:
    return Path(job.folder.path(f"{name}-{part}.bin"))


def _rows_files(job: ShardedJob, name: str, rows: int, lists_of_row: int, lists: int) -> tuple[Matrix, Matrix]:
    """Return the files of the rows of each list, where each of ``rows`` rows is in ``lists_of_row`` lists."""
    return (
        Matrix(_rows_file(job, name, "rows"), row_type(rows), rows * lists_of_row, 1),
        Matrix(_rows_file(job, name, "starts"), "int64", lists + 1, 1),
    )


def _read_links(job: ShardedJob, ranges: int) -> Iterator[RangeLinks]:
    """Yield the links of each range, in order."""
    for shard in range(ranges):
        with np.load(job.path(shard)) as arrays:
            yield RangeLinks(**arrays)
