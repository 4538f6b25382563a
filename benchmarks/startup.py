"""Processor time of commands that are over in a moment: help, and the similarity of two texts, beside
sentence-transformers doing the same from Python.

python benchmarks/startup.py
python benchmarks/startup.py --run runs/mine --exported exported --cross-encoder runs/cross
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from alternate import alternate, report

TEXTS = ("A man is eating.", "Someone has a meal.")

BASELINE = "sentence-transformers, similarity of the default model"

PEER = """
import sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
vectors = model.encode(sys.argv[2:])
print(model.similarity(vectors[0], vectors[1]))
"""

OURS = """
import sys
import samesense
print(samesense.load(sys.argv[1]).similarity(*sys.argv[2:]))
"""

PEER_CROSS = """
import sys
from sentence_transformers import CrossEncoder
print(CrossEncoder(sys.argv[1], device="cpu").predict([tuple(sys.argv[2:])]))
"""

COMMAND = "import sys; from samesense.cli.main import main; main(sys.argv[1:])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="output of samesense train, an encoder")
    parser.add_argument("--exported", help="output of samesense export")
    parser.add_argument("--cross-encoder", help="folder of a cross-encoder, which needs torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", help="ignored: the default model is measured")
    parser.add_argument("--data", help="ignored: two texts are compared")
    args = parser.parse_args()

    from samesense.encoder.names import default_folder

    ways: dict[str, Callable[[], float]] = {
        BASELINE: lambda: processor_seconds(PEER, str(default_folder()), *TEXTS),
        "samesense similarity default": lambda: processor_seconds(COMMAND, "similarity", "default", *TEXTS),
        "samesense from Python, similarity of the default model": lambda: processor_seconds(OURS, "default", *TEXTS),
        "import sentence_transformers": lambda: processor_seconds("import sentence_transformers"),
        "import samesense": lambda: processor_seconds("import samesense"),
        "samesense --help": lambda: processor_seconds(COMMAND, "--help"),
        "samesense train --help": lambda: processor_seconds(COMMAND, "train", "--help"),
    }
    for name, folder, peer in (
        ("a trained encoder", args.run, PEER),
        ("an exported folder", args.exported, None),
        ("a cross-encoder", args.cross_encoder, PEER_CROSS),
    ):
        if folder is not None:
            ways |= similarity_of(name, folder, peer)
    report("start-up, processor time", alternate(ways, args.rounds), 1, "starts", BASELINE)


def similarity_of(name: str, folder: str, peer: str | None) -> dict[str, Callable[[], float]]:
    """Return the ways of comparing two texts with the model of a folder."""
    ways = {f"samesense similarity, {name}": lambda: processor_seconds(COMMAND, "similarity", folder, *TEXTS)}
    if peer is not None:
        inner = Path(folder) / "model"  # in the folder of a run
        model_folder = str(inner) if inner.is_dir() else folder
        ways[f"sentence-transformers, {name}"] = lambda: processor_seconds(peer, model_folder, *TEXTS)
    return ways


def processor_seconds(code: str, *arguments: str) -> float:
    """Return the processor seconds of a Python process; wall time depends on the other load of the machine."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments[:2]} failed")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
