"""The systems of ``search.py``: each builds an index over the same unit vectors and answers the same queries.

    python benchmarks/search_systems.py JOB.json

One process measures one system at one size, and prints a line of JSON for each width of its search. Packages are
imported by the system that needs them, so that peers run in an environment without samesense. Graphs have the same
connectivity (16) and the same candidates when they are built (128); all use the number of threads of the job. An index
gives row numbers; samesense, sqlite-vec and LanceDB read them from disk, samesense with the texts.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

TOP = 10

CONNECTIVITY, CANDIDATES = 16, 128
"""M and ef_construction of HNSW."""

WIDTHS = (16, 32, 64, 128, 256, 512)
"""Candidates of a search in a graph, or lists that are read."""

BLOCK = 50_000
"""Rows that are read at once."""

Rows = np.ndarray
Answer = Callable[[np.ndarray], Rows]
"""Gives the row numbers ``(queries, 10)`` of queries ``(queries, dim)``; -1 where there is none."""


@dataclass(frozen=True)
class Job:
    """What is measured."""

    vectors: np.ndarray  # unit rows, mapped from disk
    folder: Path  # for what is written
    threads: int

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the first row number and the vectors of each block."""
        for start in range(0, len(self.vectors), BLOCK):
            yield start, np.array(self.vectors[start : start + BLOCK])


@dataclass(frozen=True)
class Built:
    """An index: how it answers at each width (0 where it has none)."""

    stores: str  # how vectors are kept
    answers: dict[int, Answer]


def numpy_product(job: Job) -> Built:
    """The plain way: a product with all vectors, and the ten best of it."""
    vectors = np.array(job.vectors)

    def answer(queries: np.ndarray) -> Rows:
        scores = queries @ vectors.T
        best = np.argpartition(scores, -TOP, axis=1)[:, -TOP:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return Built("float32", {0: answer})


def _collection(job: Job, *, approximate: str) -> Built:
    from samesense.inference.collection.collection import Collection
    from samesense.inference.collection.embedder import Embedder
    from samesense.inference.collection.entries import Entry

    model = Embedder(lambda texts: job.vectors[[int(text) for text in texts]], "made", "made")
    entries = (Entry(str(row)) for row in range(len(job.vectors)))
    collection = Collection.build(job.folder / "collection", entries, model, approximate=approximate)

    def answer(queries: np.ndarray) -> Rows:
        hits = collection.search(queries, top=TOP, exact=approximate == "never")
        return np.array([[hit.id for hit in row] + [-1] * (TOP - len(row)) for row in hits])

    return Built(str(collection.about().get("precision", "")), {0: answer})


def samesense_exact(job: Job) -> Built:
    """A collection of samesense without a graph."""
    return _collection(job, approximate="never")


def samesense_graph(job: Job) -> Built:
    """A collection of samesense with a graph, at the width that it chose for its recall."""
    return _collection(job, approximate="always")


def _faiss(job: Job, index: Any, *, stores: str, widths: tuple[int, ...], name: str) -> Built:
    import faiss

    faiss.omp_set_num_threads(job.threads)
    if not index.is_trained:
        sample = np.random.default_rng(0).choice(len(job.vectors), size=min(len(job.vectors), 100_000), replace=False)
        index.train(np.array(job.vectors[np.sort(sample)]))
    for _, rows in job.blocks():
        index.add(rows)

    def at_width(width: int) -> Answer:
        def answer(queries: np.ndarray) -> Rows:
            if name == "hnsw":
                index.hnsw.efSearch = width
            elif name == "ivf":
                index.nprobe = width
            return index.search(queries, TOP)[1]

        return answer

    return Built(stores, {width: at_width(width) for width in widths})


def faiss_flat(job: Job) -> Built:
    import faiss

    return _faiss(job, faiss.IndexFlatIP(job.vectors.shape[1]), stores="float32", widths=(0,), name="flat")


def faiss_sq8(job: Job) -> Built:
    import faiss

    quantizer = faiss.ScalarQuantizer.QT_8bit
    index = faiss.IndexScalarQuantizer(job.vectors.shape[1], quantizer, faiss.METRIC_INNER_PRODUCT)
    return _faiss(job, index, stores="8 bits", widths=(0,), name="flat")


def faiss_hnsw(job: Job) -> Built:
    import faiss

    index = faiss.IndexHNSWFlat(job.vectors.shape[1], CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = CANDIDATES
    return _faiss(job, index, stores="float32", widths=WIDTHS, name="hnsw")


def faiss_ivf(job: Job) -> Built:
    import faiss

    dim = job.vectors.shape[1]
    lists = int(4 * len(job.vectors) ** 0.5)
    index = faiss.index_factory(dim, f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
    return _faiss(job, index, stores="float32", widths=(1, 4, *WIDTHS[:4]), name="ivf")


def usearch(job: Job) -> Built:
    from usearch.index import Index

    index = Index(
        ndim=job.vectors.shape[1],
        metric="ip",
        dtype="bf16",
        connectivity=CONNECTIVITY,
        expansion_add=CANDIDATES,
    )
    for start, rows in job.blocks():
        index.add(np.arange(start, start + len(rows), dtype=np.uint64), rows, threads=job.threads)

    def at_width(width: int) -> Answer:
        def answer(queries: np.ndarray) -> Rows:
            index.expansion_search = width
            keys = index.search(queries, TOP, threads=job.threads).keys
            return np.asarray(keys).reshape(len(queries), -1).astype(np.int64)

        return answer

    return Built("bfloat16", {width: at_width(width) for width in WIDTHS})


def hnswlib(job: Job) -> Built:
    import hnswlib as library

    index = library.Index(space="ip", dim=job.vectors.shape[1])
    index.init_index(max_elements=len(job.vectors), ef_construction=CANDIDATES, M=CONNECTIVITY)
    for start, rows in job.blocks():
        index.add_items(rows, np.arange(start, start + len(rows)), num_threads=job.threads)

    def at_width(width: int) -> Answer:
        def answer(queries: np.ndarray) -> Rows:
            index.set_ef(width)
            return index.knn_query(queries, k=TOP, num_threads=job.threads)[0].astype(np.int64)

        return answer

    return Built("float32", {width: at_width(width) for width in WIDTHS})


def sqlite_vec(job: Job) -> Built:
    """sqlite-vec reads every vector; queries are asked one by one."""
    import apsw
    import sqlite_vec as library

    db = apsw.Connection(str(job.folder / "vectors.db"))
    db.enable_load_extension(True)
    db.load_extension(library.loadable_path())
    db.execute("pragma journal_mode = wal")
    db.execute(f"create virtual table made using vec0(vector float[{job.vectors.shape[1]}] distance_metric=cosine)")
    with db:
        for start, rows in job.blocks():
            values = ((start + offset, row.tobytes()) for offset, row in enumerate(rows))
            db.executemany("insert into made(rowid, vector) values (?, ?)", values)

    def answer(queries: np.ndarray) -> Rows:
        statement = f"select rowid from made where vector match ? and k = {TOP}"
        return np.array([[row for (row,) in db.execute(statement, [query.tobytes()])] for query in queries])

    return Built("float32 on disk", {0: answer})


def _lance(job: Job) -> Any:
    import lancedb
    import pyarrow as pa

    dim = job.vectors.shape[1]

    def batches() -> Iterator[Any]:
        for start, rows in job.blocks():
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), dim)
            yield pa.record_batch({"id": pa.array(range(start, start + len(rows))), "vector": vectors})

    schema = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), dim))])
    return lancedb.connect(str(job.folder / "lance")).create_table("made", batches(), schema=schema)


def _lance_rows(search: Any) -> list[int]:
    return [row["id"] for row in search.distance_type("cosine").limit(TOP).select(["id", "_distance"]).to_list()]


def lancedb_exact(job: Job) -> Built:
    """LanceDB without an index; queries are asked one by one."""
    table = _lance(job)
    return Built(
        "float32 on disk", {0: lambda queries: np.array([_lance_rows(table.search(query)) for query in queries])}
    )


def lancedb_graph(job: Job) -> Built:
    """LanceDB's IVF_HNSW_SQ, by its lists read; the best forty are scored again by their whole vectors."""
    table = _lance(job)
    table.create_index(metric="cosine", index_type="IVF_HNSW_SQ", vector_column_name="vector")

    def at_width(width: int) -> Answer:
        def answer(queries: np.ndarray) -> Rows:
            searches = (table.search(query).nprobes(width).ef(4 * TOP).refine_factor(4) for query in queries)
            rows = [_lance_rows(search) for search in searches]
            return np.array([row + [-1] * (TOP - len(row)) for row in rows])

        return answer

    return Built("8 bits and float32 on disk", {width: at_width(width) for width in (1, 4, *WIDTHS[:3])})


def semhash(job: Job) -> Built:
    """The index of SemHash, which its deduplication asks."""
    from semhash.index import Index
    from vicinity import Backend

    rows = np.array(job.vectors)
    items = [[{"row": str(row)}] for row in range(len(rows))]
    index = Index.from_vectors_and_items(vectors=rows, items=items, backend_type=Backend.USEARCH)

    def answer(queries: np.ndarray) -> Rows:
        hits = index.query_top_k(queries, k=TOP, vectors_are_in_index=False)
        return np.array([list(numbers) + [-1] * (TOP - len(numbers)) for numbers, _ in hits], dtype=np.int64)

    return Built("float32", {0: answer})


SYSTEMS: dict[str, tuple[Callable[[Job], Built], str]] = {
    "numpy": (numpy_product, "numpy"),
    "samesense-exact": (samesense_exact, "samesense.inference.collection.collection"),
    "samesense-graph": (samesense_graph, "samesense.inference.collection.collection"),
    "faiss-flat": (faiss_flat, "faiss"),
    "faiss-sq8": (faiss_sq8, "faiss"),
    "faiss-ivf": (faiss_ivf, "faiss"),
    "faiss-hnsw": (faiss_hnsw, "faiss"),
    "usearch": (usearch, "usearch.index"),
    "hnswlib": (hnswlib, "hnswlib"),
    "sqlite-vec": (sqlite_vec, "apsw"),
    "lancedb-exact": (lancedb_exact, "lancedb"),
    "lancedb-graph": (lancedb_graph, "lancedb"),
    "semhash": (semhash, "semhash.index"),
}
"""Each system with the package that it loads, whose import is not timed."""

OURS = ("numpy", "samesense-exact", "samesense-graph")
"""Systems that run in the environment of samesense."""


def anonymous_mb() -> float:
    """Return the memory of this process without files that are mapped."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def recall(rows: Rows, queries: np.ndarray, vectors: np.ndarray, least: np.ndarray) -> float:
    """Return the share of the answers that score as high as the true tenth, so that ties are no misses."""
    hits = 0
    for numbers, query, bound in zip(rows, queries, least, strict=True):
        distinct = np.unique(numbers[numbers >= 0])
        hits += int((vectors[distinct] @ query >= bound - 1e-5).sum())
    return hits / (TOP * len(queries))


def measure(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the figures of a system at each width."""
    vectors = np.load(job["vectors"], mmap_mode="r")[: job["rows"]]
    queries = np.load(job["queries"])
    least = np.load(job["truth"])[:, -1]
    plan = Job(vectors, Path(job["folder"]), job["threads"])
    build_index, package = SYSTEMS[job["system"]]
    import_module(package)
    before = anonymous_mb()
    started = time.perf_counter()
    processor = time.process_time()
    built = build_index(plan)
    build = {
        "stores": built.stores,
        "build_s": round(time.perf_counter() - started, 2),
        "build_cpu_s": round(time.process_time() - processor, 2),
        "memory_mb": round(anonymous_mb() - before),
        "disk_mb": round(folder_mb(plan.folder)),
    }
    single = queries[: job["singles"]]
    for width, answer in built.answers.items():
        answer(queries[:1])
        times = []
        for query in single:
            begun = time.perf_counter()
            answer(query[None])
            times.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        rows = answer(queries)
        together = time.perf_counter() - begun
        yield build | {
            "width": width,
            "single_ms": round(1000 * statistics.median(times), 3),
            "batch_ms": round(1000 * together / len(queries), 3),
            "recall": round(recall(np.asarray(rows), queries, vectors, least), 4),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }


def main() -> None:
    for figures in measure(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))):
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
