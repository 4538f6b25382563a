"""Near-duplicates or matches of a file of vectors, found by many workers; as a program, one such search.

An accident is a file beside the vectors: ``dies-now`` kills the next worker that begins a task of the stage that it
names; ``slow`` holds seconds that a task takes. Each task that begins adds a line to ``tasks``.
"""

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from samesense.execution.shards.executors import choose_executor
from samesense.inference.duplicates import link_shards, vector_shards
from samesense.inference.duplicates.dedup import dedup
from samesense.inference.duplicates.match import match
from samesense.inference.duplicates.vector_shards import Sharing
from samesense.inference.models.load import load
from samesense.inference.search import lists

STAGES = {"vectors": "EncodeWork", "lists": "ListsWork", "links": "LinksWork"}
"""The work of each stage, in order; its shards are in a subfolder of the stage's name."""


@dataclass(frozen=True)
class Struck:
    """Work that meets the accidents of a folder."""

    work: Any
    folder: Path

    def __call__(self, task):
        stage = type(self.work).__name__
        with (self.folder / "tasks").open("a") as stream:
            stream.write(f"{stage} {task}\n")
        dies = self.folder / "dies-now"
        if dies.exists() and dies.read_text() == stage:
            dies.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (self.folder / "slow").exists():
            time.sleep(float((self.folder / "slow").read_text()))
        return self.work(task)


@dataclass(frozen=True)
class Accidents:
    """An executor whose tasks meet the accidents of a folder."""

    executor: Any
    folder: Path

    def run(self, work, tasks):
        return self.executor.run(Struck(work, self.folder), tasks)


def world(folder, rows=3000, seed=0):
    """Make a folder of texts and vectors: groups of near ones, chains, and one text of many that are equal."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    centres = random.normal(size=(rows // 5, 24))
    vectors = centres[random.integers(len(centres), size=rows)] + 0.4 * random.normal(size=(rows, 24))
    # More equal rows than links of a row, some of which are left out.
    vectors[rows - 60 :] = vectors[0]
    texts = [f'text {row}\u2028 "{"ä文😀"[row % 3]}"' for row in range(rows)]
    np.savez(folder / "vectors.npz", texts=np.array(texts), embeddings=vectors.astype(np.float32))
    return texts


def use_small_shards():
    """Make the work of all stages several shards, and as many rows a product in one process as in a shard."""
    vector_shards.BLOCK_TEXTS = 500
    link_shards.ROWS_A_SHARD = lists.BLOCK_ROWS = 512
    link_shards.RANGE_PAIRS = lists.RANGE_PAIRS = 30_000


def search(folder, work, sharing=None, threshold=0.9, what="dedup", **options):
    """Return the near-duplicates of a world, or the matches of its first rows with others, some of them the same."""
    use_small_shards()
    model = load(f"vectors:{folder}/vectors.npz")
    with np.load(folder / "vectors.npz") as arrays:
        texts = arrays["texts"].tolist()
    options |= {"search": "approximate", "work": work, "sharing": sharing}
    if what == "match":
        return match(texts[:1200], texts[1100:], model, threshold, **options)
    return dedup(texts, model, threshold, **options)


def make(folder, work, *, executor="embedded", workers=None, address=None, **options):
    """Return the near-duplicates of a world, found by many workers."""
    where = Accidents(choose_executor(executor, workers=workers, address=address), folder)
    return search(folder, work, Sharing(where, f"vectors:{folder}/vectors.npz"), **options)


def tasks(folder):
    """Return the tasks that were begun, each as its work and number."""
    return (folder / "tasks").read_text().splitlines()


if __name__ == "__main__":
    folder, work, options = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    make(folder, work, **options)
