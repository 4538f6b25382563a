"""A job of nine shards of bytes, and accidents; as a program, one run of it, or killed at its file operations in turn.

An accident is a file in the folder of the world: ``dies-now`` kills the next worker that begins a shard; ``slow`` holds
seconds that a shard takes.
"""

import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from samesense.execution.shards.executors import choose_executor
from samesense.execution.shards.job import Shard, sharded_job
from tests.dying import dies_at

SIZES = [7] * 8 + [4]


@dataclass(frozen=True)
class Digits:
    """Makes shards of one digit."""

    world: Path

    def __call__(self, number):
        if (self.world / "dies-now").exists():
            (self.world / "dies-now").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (self.world / "slow").exists():
            time.sleep(float((self.world / "slow").read_text()))
        return Shard(str(number).encode() * SIZES[number], SIZES[number], 0.5, {"cells": 2 * SIZES[number]})


def make(work, output, *, workers=1, settings=None):
    """Make all shards, or resume; returns the cost."""
    with sharded_job(output, "digits", ".bin") as job:
        job.begin(settings=settings or {"seed": 1}, world={"name": str(work.world), "identity": "the one"})
        job.make(work, choose_executor("embedded", workers=workers), SIZES, "digit")
        return job.finish([{"rows": size} for size in SIZES], total=sum(SIZES))


def shards(output):
    """Return the content of every shard by name."""
    return {path.name: path.read_bytes() for path in sorted((output / "shards").iterdir())}


def manifest(output):
    """Return the content of the manifest."""
    return json.loads((output / "manifest.json").read_text())


def survive(folder, stride):
    """Die at one file operation after the other, and resume; return the number of deaths."""
    os.fsync = lambda handle: None  # fsync guards against power loss only, and is slow
    whole = folder / "whole"
    output = folder / "killed"
    step = 1
    make(Digits(folder), whole)
    while dies_at(step, lambda: make(Digits(folder), output), within=output):
        retained = shards(output) if (output / "shards").exists() else {}
        assert all(content == shards(whole)[name] for name, content in retained.items() if name[0] != "."), step
        make(Digits(folder), output)
        assert shards(output) == shards(whole), step
        assert manifest(output)["shards"] == manifest(whole)["shards"], step
        shutil.rmtree(output)
        step += stride
    return step // stride


if __name__ == "__main__":
    command = sys.argv[1]
    world = Path(sys.argv[2])
    number = int(sys.argv[3])
    if command == "killed":
        sys.stdout.write(f"{survive(world, number)}\n")
    else:
        make(Digits(world), world / command, workers=number)
