"""The links of a work folder, searched by many workers in shards that can be resumed.

    sharded/lists/    the centres of the lists, and for each shard of rows its closest lists
    sharded/links/    recall, the lists that each row is searched in, and for each range of lists its links

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
from samesense.execution.sharded import Shard, ShardedJob, sharded_job
from samesense.execution.tasks import Executor
from samesense.files import map_array, replacing
from samesense.inference.duplicates.links import LINKS_PER_ROW, Links, links_in_lists, merge_links
from samesense.inference.duplicates.vector_shards import LINK_SHARDS, LIST_SHARDS, SHARDED
from samesense.inference.duplicates.work import VECTORS, Work
from samesense.inference.search.lists import (
    PROBES,
    RANGE_PAIRS,
    Lists,
    choose_probes,
    closest_lists,
    cut_lists,
    list_centres,
)
from samesense.types import Embeddings

ROWS_A_SHARD = 32_768
"""Rows of a shard whose closest lists are found in one task; a multiple of the rows that one process compares."""

CENTRES = "centres.npy"
ALL_PROBES = "probes.bin"
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
            flat = map_array(self.path, self.dtype, self.rows * self.columns)
        except DataError as error:
            raise DataError(
                f"Every worker reads the work folder, and {self.path} is not the same on this machine ({error}) Put "
                "the folder on a disk that all machines see at the same path."
            ) from error
        return flat.reshape(self.rows, self.columns)


@dataclass(frozen=True)
class ListsWork:
    """Finds the closest lists of a shard of rows; it can be pickled."""

    vectors: Matrix
    centres: Embeddings
    rows_a_shard: int

    def __call__(self, shard: int) -> Shard:
        """Return the closest lists of the rows of this shard, ``(rows, lists)``, as an npy file."""
        started = time.perf_counter()
        rows = self.vectors.open()[shard * self.rows_a_shard : (shard + 1) * self.rows_a_shard]
        with threadpool_limits(1, user_api="blas"):
            probes = closest_lists(rows, self.centres, PROBES[-1], "")
        sink = io.BytesIO()
        np.save(sink, probes)
        return Shard(sink.getvalue(), len(rows), time.perf_counter() - started)


@dataclass(frozen=True)
class LinksWork:
    """Finds the links of a range of lists; it can be pickled."""

    vectors: Matrix
    probes: Matrix
    ranges: tuple[range, ...]
    floor: float

    def __call__(self, shard: int) -> Shard:
        """Return the links of the range of this number, as an npz file."""
        started = time.perf_counter()
        lists = opened_lists(self.vectors.open(), self.probes.open())
        with threadpool_limits(1, user_api="blas"):
            links = links_in_lists(lists, self.ranges[shard], self.floor, LINKS_PER_ROW)
        # Most rows have no link that was left out.
        crowded = np.flatnonzero(links.beyond > -np.inf)
        sink = io.BytesIO()
        np.savez(
            sink,
            first=links.first,
            second=links.second,
            scores=links.scores,
            crowded=crowded,
            beyond=links.beyond[crowded],
        )
        return Shard(sink.getvalue(), len(self.ranges[shard]), time.perf_counter() - started)


def opened_lists(vectors: Embeddings, probes: npt.NDArray[np.int32], recall: float = np.nan, sampled: int = 0) -> Lists:
    """Return the lists of rows ``(rows, dim)`` that are each searched in the lists ``(rows, probes)``."""
    # A row belongs to its closest list; a copy, as it is read often and the table is large.
    return Lists(vectors, probes, vectors, probes[:, 0].copy(), True, recall, sampled)


def links_by_shards(executor: Executor, work: Work, floor: float) -> Links:
    """Return the links of :func:`~samesense.inference.duplicates.links.approximate_links`, found by many workers.

    Args:
        executor: does the tasks.
        work: the vectors in a folder; finished shards are kept in it, so that the same call resumes.
        floor: lowest cosine of a link.

    Raises:
        OutputError: if the folder has unfinished shards of another search or floor, or another process writes to it.
        DataError: if a worker does not see the folder.
        SamesenseError: if shards failed after all retries; finished ones are kept.

    Example:
        >>> links_by_shards(OnRay("auto"), work, 0.8)  # doctest: +SKIP
    """
    folder = work.folder.resolve()
    vectors = work.vectors
    matrix = Matrix(folder / VECTORS, "float32", *vectors.shape)
    search = asdict(work.about)
    with sharded_job(folder / SHARDED / LIST_SHARDS, "lists", ".npy") as job:
        job.begin(search=search, settings={"rows_a_shard": ROWS_A_SHARD})
        probes = _closest_lists(job, executor, matrix, vectors)
    settings = {"floor": floor, "links_per_row": LINKS_PER_ROW, "range_pairs": RANGE_PAIRS}
    with sharded_job(folder / SHARDED / LINK_SHARDS, "links", ".npz") as job:
        job.begin(search=search, settings=settings)
        lists, matrix_of_probes = _lists(job, vectors, probes, floor)
        ranges = tuple(cut_lists(lists))
        links_work = LinksWork(matrix, matrix_of_probes, ranges, floor)
        job.make(links_work, executor, [len(numbers) for numbers in ranges], unit="list")
        return merge_links(_read_links(job, len(ranges), len(vectors)), lists, floor, LINKS_PER_ROW)


def _closest_lists(job: ShardedJob, executor: Executor, matrix: Matrix, vectors: Embeddings) -> npt.NDArray[np.int32]:
    """Return the closest lists of all rows ``(rows, lists)``, memory-mapped from a file of the job."""
    if not job.folder.exists(CENTRES):
        sink = io.BytesIO()
        np.save(sink, list_centres(vectors))
        job.folder.write(CENTRES, sink.getvalue())
    centres = np.load(io.BytesIO(job.folder.read(CENTRES)))
    starts = range(0, len(vectors), ROWS_A_SHARD)
    sizes = [min(ROWS_A_SHARD, len(vectors) - start) for start in starts]
    job.make(ListsWork(matrix, centres, ROWS_A_SHARD), executor, sizes, unit="row")
    shape = Matrix(Path(job.folder.path(ALL_PROBES)), "int32", len(vectors), min(PROBES[-1], len(centres)))
    if not job.folder.exists(ALL_PROBES):
        with replacing(shape.path) as beside, beside.open("wb") as stream:
            for shard in range(len(sizes)):
                stream.write(np.load(job.path(shard)).tobytes())
    return shape.open()


def _lists(job: ShardedJob, vectors: Embeddings, probes: npt.NDArray[np.int32], floor: float) -> tuple[Lists, Matrix]:
    """Return the lists with as many probes as the recall needs, and the file of these probes."""
    path = Path(job.folder.path(ALL_PROBES))
    if not job.folder.exists(RECALL):
        lists = choose_probes(vectors, probes, vectors, probes[:, 0].copy(), floor, LINKS_PER_ROW)
        with replacing(path) as beside:
            lists.probes.tofile(beside)
        measured = {"probes": lists.probes.shape[1], "recall": lists.recall, "sampled": lists.sampled}
        # Last, because the search counts as chosen once this file is there; NaN is read back as such.
        job.folder.write(RECALL, json.dumps(measured).encode())
    measured = json.loads(job.folder.read(RECALL))
    matrix = Matrix(path, "int32", len(vectors), measured["probes"])
    return opened_lists(vectors, matrix.open(), measured["recall"], measured["sampled"]), matrix


def _read_links(job: ShardedJob, ranges: int, rows: int) -> Iterator[Links]:
    """Yield the links of each range, in order."""
    for shard in range(ranges):
        with np.load(job.path(shard)) as arrays:
            beyond = np.full(rows, -np.inf)
            beyond[arrays["crowded"]] = arrays["beyond"]
            yield Links(arrays["first"], arrays["second"], arrays["scores"], beyond, -1.0)
