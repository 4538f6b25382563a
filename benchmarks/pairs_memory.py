"""Memory and time of `samesense train` on many labelled pairs: reading, the doctor, the dev part, and a few steps.

    python benchmarks/pairs_memory.py --model MODEL --rows 2000000

Made-up pairs of 14 words a sentence, scored from 0 to 5 in steps of 0.2; each sentence is in one pair, or with --share
in two on average. Each number of rows runs in a separate process. Measured are the peaks of private memory (without
mapped files) and of resident memory, both minus the memory before the data are read. Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

MIB = 2**20


def write(path: Path, rows: int, shared: bool) -> None:
    drawn = random.Random(0)
    words = "the one two man woman child dog cat bird eats sleeps runs walks sings reads red blue big small old".split()

    def sentence(number: int) -> str:
        return " ".join(random.Random(number).choices(words, k=13)) + f" {number}"

    with path.open("w", encoding="utf-8") as stream:
        stream.write("sentence1\tsentence2\tscore\n")
        for row in range(rows):
            first, second = (drawn.randrange(rows) for _ in range(2)) if shared else (2 * row, 2 * row + 1)
            stream.write(f"{sentence(first)}\t{sentence(second)}\t{drawn.randrange(26) / 5:g}\n")


class Private(threading.Thread):
    """Notes the most private memory of this process, in MiB."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0.0

    def run(self) -> None:
        while True:
            status = Path("/proc/self/status").read_text().splitlines()
            private_kib = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
            self.most = max(self.most, private_kib / 1024)
            time.sleep(0.02)


def measure_run(data: Path, model: str, loss: str) -> dict[str, float]:
    from sentence_transformers import SentenceTransformer

    from samesense.recipes.planning.plan import plan
    from samesense.recipes.run import runner  # noqa: F401 - torch is loaded before

    SentenceTransformer(model)
    private = Private()
    private.start()
    time.sleep(0.1)
    before = private.most, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    settings = {"model": model, "max_steps": 3, "batch_size": 32, "precision": "float32", "loss": loss}
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        planned = plan(str(data), settings=settings)
        seconds["read and dev part"] = time.perf_counter() - started
        planned.lines()
        seconds["and the doctor"] = time.perf_counter() - started
        planned.run(Path(folder) / "run")
        seconds["and 3 steps"] = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"private MiB": private.most - before[0], "resident MiB": peak - before[1], **seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--loss", default="cosent")
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000])
    parser.add_argument("--share", action="store_true", help="a sentence stands in several pairs")
    parser.add_argument("--data", type=Path, default=None, help="a file of pairs, measured in this process")
    args = parser.parse_args()
    if args.data is not None:
        print(json.dumps(measure_run(args.data, args.model, args.loss)))
        return
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pairs.tsv"
            write(path, rows, args.share)
            command = [sys.executable, __file__, "--model", args.model, "--loss", args.loss, "--data", str(path)]
            figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
            texts = path.stat().st_size / MIB
            cells = ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())
            print(f"{rows:,} pairs of {texts:,.0f} MiB: {cells}", flush=True)


if __name__ == "__main__":
    main()
