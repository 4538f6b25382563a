"""A harvest without torch: a real corpus and screening, made-up scores, and accidents; as a program, one run of it.

An accident is a file in the folder of the world: dies-3 kills the worker that is at shard 3, and is gone then.
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.context.harvest.scores import NO_COSINE, Scored
from samesense.context.retrieval.tfidf import Tfidf
from samesense.recipes.harvest.recipe import ShardWork, run
from samesense.recipes.harvest.settings import HarvestSettings
from tests.context.worlds import some_documents
from tests.messages import listen

SETTINGS = {"pairs": 240, "shard_size": 20, "unit": 6, "min_words": 1}


class MadeUp:
    """Scores by hash; a twentieth of the pairs has none. Slow, and struck by accidents, if its world says so."""

    def __init__(self, folder, device):
        self.folder = folder
        self.corpus = Corpus(folder / "corpus")
        self.tfidf = Tfidf(self.corpus, folder / "index")
        salt = (folder / "salt").read_text() if (folder / "salt").exists() else ""
        self.identity = {"corpus": self.corpus.sha256, "generator": "made up" + salt, "device": device}

    def score(self, pairs):
        for accident in sorted(self.folder.glob("dies-*")):
            accident.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if (self.folder / "slow").exists():
            time.sleep(float((self.folder / "slow").read_text()))
        drawn = np.array([int.from_bytes(hashlib.sha256(repr(pair).encode()).digest()[:4], "big") for pair in pairs])
        rows = np.flatnonzero(drawn % 20 > 0)
        undefined = {NO_COSINE: len(pairs) - len(rows)} if len(rows) < len(pairs) else {}
        return Scored(rows, drawn[rows] / 2**31 - 1, undefined, 10 * len(pairs))


def world(folder):
    """Make the folder of a fake Origin."""
    Corpus.build(folder / "corpus", some_documents(60))
    Tfidf(Corpus(folder / "corpus"), folder / "index")
    return folder


def make(world_folder, output, **changes):
    """Harvest from a world; return the summary and the messages."""
    lines = listen()
    settings = HarvestSettings(**{**SETTINGS, **changes})
    done = run(ShardWork(world_folder, settings, MadeUp), output, settings.choose_executor())
    return done, lines


def shards(output):
    """Content of every shard by name."""
    return {path.name: path.read_bytes() for path in sorted((output / "shards").iterdir())}


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]), workers=int(sys.argv[3]))
