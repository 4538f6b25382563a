"""Build, query and change the same random unit vectors in three embedded stores; prints a line of JSON for each.

OMP_NUM_THREADS=1 python benchmarks/stores.py --rows 200000 --dim 384

Each runs in a separate process. LanceDB is a dependency of development; sqlite-vec is not (``pip install sqlite-vec
apsw``: the interpreter's own sqlite3 often cannot load extensions).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from collection import seconds

TOPICS = 7
TOP = 10


def metadata(row: int) -> dict[str, int]:
    """Return the fields of a row; conditions on them select a seventh or a thousandth of the rows."""
    return {"topic": row % TOPICS, "n": row % 1000}


class Store(Protocol):
    """The interface that is measured; a query returns numbers of rows, the nearest first."""

    def __init__(self, folder: Path, vectors: np.ndarray) -> None: ...
    def build(self) -> None: ...
    def query(self, vector: np.ndarray, where: tuple[str, int] | None = None) -> list[int]: ...
    def approximate(self) -> Callable[[np.ndarray], list[int]] | None: ...  # called instead of build
    def add(self, vector: np.ndarray) -> None: ...
    def delete(self, rows: list[int]) -> None: ...


class Ours:
    """A collection of samesense."""

    def __init__(self, folder: Path, vectors: np.ndarray) -> None:
        from samesense.inference.collection.embedder import Embedder

        self.folder = folder
        self.vectors = vectors
        self.model = Embedder(lambda texts: self.vectors[[int(text) for text in texts]], "made", "made")

    def build(self) -> None:
        self.collection = self._built(self.folder / "exact", "never")

    def _built(self, folder: Path, approximate: Any) -> Any:
        from samesense.inference.collection.collection import Collection
        from samesense.inference.collection.entries import Entry

        entries = (Entry(str(row), metadata=metadata(row)) for row in range(len(self.vectors)))
        return Collection.build(folder, entries, self.model, approximate=approximate)

    def query(self, vector: np.ndarray, where: tuple[str, int] | None = None) -> list[int]:
        conditions = dict([where]) if where else None
        return [hit.id for hit in self.collection.search(vector[None], top=TOP, where=conditions)[0]]

    def approximate(self) -> Callable[[np.ndarray], list[int]]:
        collection = self._built(self.folder / "graph", "always")
        return lambda vector: [hit.id for hit in collection.search(vector[None], top=TOP)[0]]

    def add(self, vector: np.ndarray) -> None:
        from samesense.inference.collection.entries import Entry

        self.vectors = np.vstack([self.vectors[:1], vector[None]])
        self.collection.add([Entry("1", metadata=metadata(0))], self.model)

    def delete(self, rows: list[int]) -> None:
        self.collection.delete(rows)


class SqliteVec:
    """sqlite-vec: a virtual table of SQLite that reads every vector."""

    def __init__(self, folder: Path, vectors: np.ndarray) -> None:
        import apsw
        import sqlite_vec

        folder.mkdir()
        self.vectors = vectors
        self.db = apsw.Connection(str(folder / "made.db"))
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        self.db.execute("pragma journal_mode = wal")

    def build(self) -> None:
        columns = f"vector float[{self.vectors.shape[1]}] distance_metric=cosine, topic integer, n integer, +text text"
        self.db.execute(f"create virtual table made using vec0({columns})")
        rows = ((row, vector.tobytes(), *metadata(row).values(), str(row)) for row, vector in enumerate(self.vectors))
        with self.db:
            self.db.executemany("insert into made(rowid, vector, topic, n, text) values (?, ?, ?, ?, ?)", rows)

    def query(self, vector: np.ndarray, where: tuple[str, int] | None = None) -> list[int]:
        condition, values = (f" and {where[0]} = ?", [where[1]]) if where else ("", [])
        statement = f"select rowid, text, distance from made where vector match ? and k = {TOP}{condition}"
        return [row for row, _, _ in self.db.execute(statement, [vector.tobytes(), *values])]

    def approximate(self) -> None:
        return None  # sqlite-vec has no approximate search

    def add(self, vector: np.ndarray) -> None:
        self.db.execute("insert into made(vector, topic, n, text) values (?, 0, 0, '')", [vector.tobytes()])

    def delete(self, rows: list[int]) -> None:
        with self.db:
            self.db.executemany("delete from made where rowid = ?", ([row] for row in rows))


class Lance:
    """LanceDB: exact without an index, approximate by the graph that it recommends for recall."""

    def __init__(self, folder: Path, vectors: np.ndarray) -> None:
        import lancedb

        self.vectors = vectors
        self.db = lancedb.connect(str(folder))

    def _rows(self) -> Any:
        import pyarrow as pa

        fields = [metadata(row) for row in range(len(self.vectors))]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self.vectors.ravel()), self.vectors.shape[1])
        columns = {name: [row_fields[name] for row_fields in fields] for name in fields[0]}
        numbers = range(len(self.vectors))
        return pa.table({"id": numbers, "vector": vectors, "text": list(map(str, numbers)), **columns})

    def build(self) -> None:
        self.table = self.db.create_table("made", self._rows())

    def query(self, vector: np.ndarray, where: tuple[str, int] | None = None) -> list[int]:
        search = self.table.search(vector).distance_type("cosine").limit(TOP)
        if where:
            search = search.where(f"{where[0]} = {where[1]}", prefilter=True)
        return [row["id"] for row in search.select(["id", "text", "_distance"]).to_list()]

    def approximate(self) -> Callable[[np.ndarray], list[int]]:
        self.build()
        self.table.create_index(metric="cosine", index_type="IVF_HNSW_SQ", vector_column_name="vector")
        return self.query

    def add(self, vector: np.ndarray) -> None:
        self.table.add([{"id": len(self.vectors), "vector": vector, "text": "", **metadata(0)}])

    def delete(self, rows: list[int]) -> None:
        self.table.delete(f"id in ({', '.join(map(str, rows))})")


STORES: dict[str, type[Store]] = {"samesense": Ours, "sqlite-vec": SqliteVec, "LanceDB": Lance}


def median_ms(act: Callable[[np.ndarray], Any], queries: np.ndarray) -> float:
    act(queries[0])
    return 1000 * statistics.median(seconds(lambda query=query: act(query)) for query in queries)


def recall(act: Callable[[np.ndarray], list[int]], queries: np.ndarray, right: list[set[int]]) -> float:
    """Return the share of the true nearest rows among the results."""
    return float(np.mean([len(nearest & set(act(query))) / TOP for nearest, query in zip(right, queries, strict=True)]))


def measured(name: str, folder: Path, rows: int, dim: int, *, exact: bool) -> Iterator[tuple[str, float]]:
    vectors, queries = made(rows, dim)
    right = [set(np.argpartition(-(vectors @ query), TOP)[:TOP].tolist()) for query in queries]
    store = STORES[name](folder, vectors)
    yield "build s", seconds(store.build)
    yield "MB", sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    yield "query ms", median_ms(store.query, queries)
    yield "recall", recall(store.query, queries, right)
    topics = [seconds(lambda topic=topic: store.query(queries[topic], ("topic", topic))) for topic in range(TOPICS - 1)]
    yield "1 of 7 meet, first time ms", 1000 * statistics.median(topics)
    yield "1 of 7 meet ms", median_ms(lambda query: store.query(query, ("topic", TOPICS - 1)), queries)
    yield "1 of 1000 meet ms", median_ms(lambda query: store.query(query, ("n", 5)), queries)
    yield "add one ms", 1000 * statistics.median(seconds(lambda: store.add(queries[0])) for _ in range(3))
    yield "delete 1 of 100 s", seconds(lambda: store.delete(list(range(0, rows, 100))))
    yield "query after ms", median_ms(store.query, queries)
    yield "peak MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    if exact:
        return
    started = time.perf_counter()
    near = STORES[name](folder / "near", vectors)
    quick = near.approximate()
    if quick is not None:
        yield "approximate build s", time.perf_counter() - started
        yield "approximate query ms", median_ms(quick, queries)
        yield "approximate recall", recall(quick, queries, right)


def made(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors in clusters, as texts are, and 20 queries among them."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(2, rows // 100), dim), dtype=np.float32)
    vectors = centres[random.integers(len(centres), size=rows + 20)]
    vectors += 0.7 * random.standard_normal(vectors.shape, dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors[:rows], vectors[rows:]


def figures(name: str, folder: Path, rows: int, dim: int, *, exact: bool) -> dict[str, float]:
    """Return all figures of a store."""
    return dict(measured(name, folder, rows, dim, exact=exact))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--exact", action="store_true", help="leave out approximate search, whose graphs take long")
    chosen = parser.parse_args()
    for name in chosen.stores:
        with tempfile.TemporaryDirectory() as folder:
            store_folder = Path(folder) / "made"
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                measures = process.submit(
                    figures, name, store_folder, chosen.rows, chosen.dim, exact=chosen.exact
                ).result()
        print(json.dumps({"store": name} | {what: round(value, 3) for what, value in measures.items()}), flush=True)


if __name__ == "__main__":
    main()
