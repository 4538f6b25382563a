"""Files of text encoded into shards by a model that is made up; as a program, one such run.

An accident is a file beside the texts: ``dies-now`` kills the next worker that begins a shard; ``slow`` holds seconds
that a shard takes.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from samesense.execution.shards.executors import choose_executor
from samesense.inference.collection.embedder import Embedder
from samesense.inference.shards.encode import ShardSettings, encode_shards
from tests.inference.made_vectors import encode
from tests.messages import listen


def open_made_up(model, settings):
    """Vectors by hash; the model is a folder, its name a salt of its identity."""
    folder = Path(model)

    def struck(texts):
        if (folder / "dies-now").exists():
            (folder / "dies-now").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (folder / "slow").exists():
            time.sleep(float((folder / "slow").read_text()))
        return encode(texts)

    salt = (folder / "salt").read_text() if (folder / "salt").exists() else ""
    return Embedder(struck, f"made up {salt}", model)


def world(folder, rows=60):
    """Make a folder of texts: of all lengths, with other scripts, line ends and marks, and some twice."""
    folder.mkdir(parents=True)
    texts = [
        f"row {number} {'ä文😀'[number % 3] * (number % 5)}\u2028 {'x' * (number * 7 % 40)}" for number in range(rows)
    ]
    texts[7], texts[20], texts[41] = texts[3], "a\vb", "\ufeff inside"
    ends = ["\r\n" if number % 4 == 0 else "\n" for number in range(rows - 1)] + [""]
    content = "".join(text + end for text, end in zip(texts, ends, strict=True)).encode()
    (folder / "texts.txt").write_bytes(b"\xef\xbb\xbf" + content)
    return texts


def make(folder, output, *, source="texts.txt", executor="embedded", workers=None, address=None, **changes):
    """Encode the texts of a world; returns the summary and the lines said."""
    lines = listen()
    settings = ShardSettings(**{"shard_size": 7, **changes})
    where = choose_executor(executor, workers=workers, address=address)
    done = encode_shards(str(folder), [str(folder / source)], output, settings, where, open_as=open_made_up)
    return done, lines


def shards(output):
    """Content of every shard by name."""
    return {path.name: path.read_bytes() for path in sorted((output / "shards").iterdir())}


if __name__ == "__main__":
    folder, output, where, *changes = sys.argv[1:]
    execution = {"executor": "ray"} if where == "ray" else {"workers": int(where)}
    make(Path(folder), Path(output), **execution, **json.loads(changes[0] if changes else "{}"))
