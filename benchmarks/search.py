"""Search, mining and clustering against plain numpy and sentence-transformers' way, in one process, in turns.

OMP_NUM_THREADS=1 python benchmarks/search.py --rows 50000

Vectors are synthetic and clustered, so that neighbours exist; no model is loaded.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from alternate import RESULTS, alternate, report

from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.search.mining import mine


def clumps(rows: int, dim: int) -> np.ndarray:
    random = np.random.default_rng(0)
    centres = random.normal(size=(max(1, rows // 20), dim))
    vectors = centres[random.integers(len(centres), size=rows)] + 0.7 * random.normal(size=(rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--approximate", default="always", choices=["always", "never"])
    chosen = parser.parse_args()
    vectors = clumps(chosen.rows, chosen.dim)
    model = Embedder(lambda texts: vectors[[int(text) for text in texts]], "made clumps", "made")
    queries = vectors[:: chosen.rows // chosen.queries][: chosen.queries]
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        entries = (Entry(str(i)) for i in range(chosen.rows))
        collection = Collection.build(Path(folder) / "made", entries, model, approximate=chosen.approximate)
        built = time.process_time() - started

        def full() -> None:
            for query in queries:
                np.argsort(-(vectors @ query), kind="stable")[:10]

        def ours(exact: bool) -> None:
            for query in queries:
                collection.search(query[None], exact=exact)

        ways = {"a full product, sorted": full, "exact": lambda: ours(True)}
        if "recall_at_10" in collection.about():
            ways["approximate"] = lambda: ours(False)
        seconds = alternate(ways, chosen.rounds)
        about = {"rows": chosen.rows, "dim": chosen.dim, "build_cpu_seconds": round(built, 1), **collection.about()}
        report("search", seconds, len(queries), "queries", "a full product, sorted", about=about)
    started = time.process_time()
    mine(vectors[:20_000], top=1000)
    line = {
        "benchmark": "mining",
        "rows": min(20_000, chosen.rows),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    print(json.dumps(line))
    with (RESULTS / "speed.jsonl").open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
