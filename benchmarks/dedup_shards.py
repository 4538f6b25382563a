"""Near-duplicates of synthetic vectors by one process and by many workers: seconds of each, and whether they agree.

python benchmarks/dedup_shards.py --rows 100000 --workers 2
python benchmarks/dedup_shards.py --rows 100000 --address auto

Half of the rows are random directions, and each other row is one of these with noise. No text is encoded: vectors are
looked up in a file.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import samesense


def write_vectors(path: Path, rows: int, dim: int) -> list[str]:
    random = np.random.default_rng(0)
    originals = random.normal(size=(rows - rows // 2, dim)).astype(np.float32)
    copies = originals[random.integers(len(originals), size=rows // 2)]
    vectors = np.concatenate([originals, copies + 0.3 * random.normal(size=copies.shape).astype(np.float32)])
    texts = [f"text {row}" for row in range(rows)]
    np.savez(path, texts=np.array(texts), embeddings=vectors[random.permutation(rows)])
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--address")
    arguments = parser.parse_args()
    sharing: dict[str, Any] = {"workers": arguments.workers}
    if arguments.address is not None:
        sharing = {"executor": "ray", "address": arguments.address}
    results = []
    with TemporaryDirectory() as folder:
        texts = write_vectors(Path(folder) / "vectors.npz", arguments.rows, arguments.dim)
        for way, options in (("one process", {}), ("many workers", sharing)):
            started = time.perf_counter()
            result = samesense.dedup(
                texts,
                model=f"vectors:{folder}/vectors.npz",
                threshold=0.9,
                search="approximate",
                work=Path(folder) / way,
                **options,
            )
            seconds = time.perf_counter() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{way}: {result}; {seconds:.1f} s, peak of this process so far {peak} MiB", flush=True)
            results.append(result)
    one, many = results
    agree = np.array_equal(one.kept_by, many.kept_by) and np.array_equal(one.scores, many.scores)
    print(f"the same rows, kept rows and scores: {agree}; the same recall: {one.recall == many.recall}")


if __name__ == "__main__":
    main()
