"""Build, query and change a collection of random unit vectors; prints one line of JSON.

OMP_NUM_THREADS=1 python benchmarks/collection.py --rows 200000 --dim 384

To compare two versions, run it in turns with PYTHONPATH at the ``src`` of either.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry

WORDS = ("rain", "train", "late", "news", "sport", "home", "river", "stone")


def entries(rows: int) -> Iterable[Entry]:
    for i in range(rows):
        text = f"text {i} {WORDS[i % 8]} {WORDS[i // 8 % 8]} {WORDS[i // 64 % 8]}"
        yield Entry(text, metadata={"topic": WORDS[i % 7], "n": i % 1000})


def seconds(act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def median_ms(act: Callable[[int], Any]) -> float:
    return 1000 * statistics.median(seconds(lambda i=i: act(i)) for i in range(20))


def measured(folder: Path, vectors: np.ndarray, queries: np.ndarray) -> Iterable[tuple[str, float]]:
    model = Embedder(lambda texts: vectors[[int(text.split()[1]) for text in texts]], "made", "made")
    started = time.process_time()
    yield "build s", seconds(lambda: Collection.build(folder, entries(len(vectors)), model, approximate="never"))
    yield "build CPU s", time.process_time() - started
    yield "open and first query ms", 1000 * seconds(lambda: Collection.open(folder).search(queries[:1]))
    collection = Collection.open(folder)
    collection.search(queries[:1])
    yield "numpy ms", median_ms(lambda i: np.argpartition(vectors @ queries[i], -10)[-10:])
    yield "query ms", median_ms(lambda i: collection.search(queries[i : i + 1]))
    yield "20 queries at once ms", 1000 * seconds(lambda: collection.search(queries))
    yield "first query, 1 of 7 meet ms", 1000 * seconds(lambda: collection.search(queries[:1], where={"topic": "rain"}))
    yield "query, 1 of 7 meet ms", median_ms(lambda i: collection.search(queries[i : i + 1], where={"topic": "rain"}))
    yield "query, 1 of 1000 meet ms", median_ms(lambda i: collection.search(queries[i : i + 1], where={"n": 5}))
    if hasattr(collection, "text_search"):
        found_texts = [f"{777 * i} rain stone" for i in range(20)]
        yield "words ms", median_ms(lambda i: collection.text_search([found_texts[i]]))
        found_texts = [f"text {i} rain" for i in range(20)]
        yield (
            "hybrid, a word of all texts ms",
            median_ms(lambda i: collection.query([found_texts[i]], model, hybrid=True)),
        )
    yield "delete 1 of 100 s", seconds(lambda: collection.delete(range(0, len(vectors), 100)))
    collection.search(queries[:1])
    yield "query among deleted ms", median_ms(lambda i: collection.search(queries[i : i + 1]))
    yield "add one s", seconds(lambda: collection.add([Entry("text 1 again")], model))
    yield "compact s", seconds(collection.compact)
    yield "MB", sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=384)
    chosen = parser.parse_args()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((chosen.rows, chosen.dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = random.standard_normal((20, chosen.dim), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        figures = dict(measured(Path(folder) / "made", vectors, queries))
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
