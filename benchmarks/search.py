"""Search beside the libraries that people take for it: build, query, recall@10 and memory, at equal recall comparable.

    pip install faiss-cpu usearch hnswlib sqlite-vec apsw lancedb semhash  # into an environment for the peers
    python benchmarks/search.py --peers peers/bin/python --folder search
    python benchmarks/search.py --systems faiss-hnsw usearch samesense-graph --sizes 200000 --folder search

All systems get the same unit vectors and the same 1,000 queries, which are none of the rows, in a process of its own
each (``search_systems.py``); results go to ``results/search.jsonl`` line by line, and what is there is not measured
again. Recall is the share of the answers that score as high as the true tenth. ``single`` is the median of queries
asked one by one, ``batch`` a query of all of them at once, memory that which is not mapped from files.

Vectors are synthetic unless ``--vectors`` names a file: clusters in clusters, whose dimensions weigh less and less, as
those of embeddings do. Graphs do better or worse on real ones, so take these for a decision. A million real vectors:

    python benchmarks/dedup.py make FILES --rows 1001000 --output texts.txt
    samesense encode MODEL texts.txt --normalize --output vectors.npy
    python benchmarks/search.py --vectors vectors.npy --folder search
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from alternate import RESULTS
from search_systems import OURS, SYSTEMS, TOP

LOG = RESULTS / "search.jsonl"

QUERIES = 1_000

BLOCK = 20_000


def clusters(rows: int, dim: int) -> Iterator[np.ndarray]:
    """Yield blocks of unit vectors: topics, themes within them, and texts within these."""
    draw = np.random.default_rng(0)
    weights = (1 + np.arange(dim, dtype=np.float32)) ** -0.4
    topics = draw.standard_normal((max(2, rows // 5_000), dim), dtype=np.float32)
    themes = topics[draw.integers(len(topics), size=max(2, rows // 50))]
    themes = themes + 0.7 * draw.standard_normal(themes.shape, dtype=np.float32)
    for start in range(0, rows, BLOCK):
        block = themes[draw.integers(len(themes), size=min(BLOCK, rows - start))]
        block = (block + 0.7 * draw.standard_normal(block.shape, dtype=np.float32)) * weights
        yield block / np.linalg.norm(block, axis=1, keepdims=True)


def write_clusters(path: Path, rows: int, dim: int) -> None:
    """Write the vectors and, behind them, the queries."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dim))
    start = 0
    for block in clusters(rows, dim):
        array[start : start + len(block)] = block
        start += len(block)
    array.flush()


def write_truth(path: Path, vectors: np.ndarray, queries: np.ndarray) -> None:
    """Write the ten best scores of each query, in order."""
    best = np.full((len(queries), TOP), -np.inf, dtype=np.float32)
    for start in range(0, len(vectors), BLOCK):
        scores = queries @ np.array(vectors[start : start + BLOCK]).T
        both = np.concatenate([best, np.partition(scores, -TOP, axis=1)[:, -TOP:]], axis=1)
        best = np.partition(both, -TOP, axis=1)[:, -TOP:]
    np.save(path, -np.sort(-best, axis=1))


def prepared(args: argparse.Namespace, rows: int) -> dict[str, Any]:
    """Return the files of vectors, queries and truth of a size, made where they are missing."""
    path = args.vectors
    if path is None:
        path = args.folder / f"clusters-{rows}-{args.dim}.npy"
        if not path.is_file():
            part = path.with_suffix(".part.npy")
            write_clusters(part, rows + QUERIES, args.dim)
            part.rename(path)
    vectors = np.load(path, mmap_mode="r")
    if len(vectors) < rows + QUERIES:
        raise SystemExit(f"{path} has {len(vectors)} vectors; {rows} and {QUERIES} queries are needed.")
    names = {name: args.folder / f"{path.stem}-{rows}-{name}.npy" for name in ("queries", "truth")}
    if not names["truth"].is_file():
        queries = np.array(vectors[-QUERIES:], dtype=np.float32)
        np.save(names["queries"], queries)
        write_truth(names["truth"], vectors[:rows], queries)
    return {"vectors": str(path), **{name: str(file) for name, file in names.items()}}


def measured(args: argparse.Namespace, system: str, rows: int) -> list[dict[str, Any]]:
    """Return the figures of a system at each of its widths."""
    python = sys.executable if system in OURS else args.peers
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        job = prepared(args, rows) | {"system": system, "rows": rows, "threads": args.threads, "singles": args.singles}
        file = args.folder / "job.json"
        file.write_text(json.dumps(job | {"folder": folder}), encoding="utf-8")
        script = Path(__file__).with_name("search_systems.py")
        environment = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
        done = subprocess.run([python, str(script), str(file)], capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{system}, {rows}: failed\n{done.stderr[-1500:]}", file=sys.stderr, flush=True)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def mining() -> dict[str, Any]:
    """Return the processor's seconds of mining pairs among 20,000 vectors."""
    import time

    from samesense.inference.search.mining import mine

    vectors = np.concatenate(list(clusters(20_000, 384)))
    started = time.process_time()
    mine(vectors, top=1000)
    return {"benchmark": "mining", "rows": len(vectors), "cpu_seconds": round(time.process_time() - started, 1)}


def table(lines: list[dict[str, Any]], target: float) -> str:
    """Return the systems by size, each at the first width that reaches the recall, or else at its best."""
    header = "| vectors | system | width | recall@10 | build s | single ms | batch ms | memory MB | disk MB |"
    rows = [header, "|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
    for size in sorted({line["rows"] for line in lines}):
        for system in SYSTEMS:
            widths = [line for line in lines if (line["rows"], line["system"]) == (size, system)]
            if not widths:
                continue
            reached = [line for line in widths if line["recall"] >= target]
            chosen = reached[0] if reached else max(widths, key=lambda line: line["recall"])
            keys = ("width", "recall", "build_s", "single_ms", "batch_ms", "memory_mb", "disk_mb")
            rows.append(f"| {size:,} | {system} | {' | '.join(f'{chosen[key]:g}' for key in keys)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[200_000, 1_000_000])
    parser.add_argument("--dim", type=int, default=384, help="of synthetic vectors")
    parser.add_argument("--vectors", type=Path, help="a .npy file of unit vectors; the last 1,000 are the queries")
    scratch = Path(tempfile.gettempdir()) / "samesense-search"
    parser.add_argument("--folder", type=Path, default=scratch, help="for vectors and indexes, of several gigabytes")
    parser.add_argument("--peers", default=sys.executable, help="Python of an environment with the peers [this one]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--singles", type=int, default=200, help="queries that are asked one by one")
    parser.add_argument("--recall", type=float, default=0.95, help="of the width in the table")
    parser.add_argument("--mining", action="store_true", help="measure the mining of pairs instead")
    args = parser.parse_args()
    if args.mining:
        print(json.dumps(mining()))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    data = "clusters" if args.vectors is None else args.vectors.name
    setting = {"data": data, "dim": args.dim if args.vectors is None else None, "threads": args.threads}
    lines = [json.loads(line) for line in LOG.read_text(encoding="utf-8").splitlines()] if LOG.exists() else []
    lines = [line for line in lines if setting.items() <= line.items()]
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    for size in args.sizes:
        for system in args.systems:
            if any((line["rows"], line["system"]) == (size, system) for line in lines):
                continue
            for figures in measured(args, system, size):
                line = {"benchmark": "search", **setting, "rows": size, "system": system, **figures}
                print(json.dumps(line), flush=True)
                lines.append(line)
                with LOG.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line | {"machine": machine}) + "\n")
    print(table(lines, args.recall))


if __name__ == "__main__":
    main()
