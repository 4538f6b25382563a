"""Fingerprints of what small runs compute, to show that a change of the code leaves every figure bit-equal.

    python -m tests.project.fingerprints before.json     # in the checkout before the change
    python -m tests.project.fingerprints after.json --against before.json

A run is a command line, so that both checkouts may name their functions as they like. Only runs on one machine with one
number of threads can be compared: other processors add up floating point numbers in another order.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from samesense.cli.main import main as run_command
from samesense.data import sample_path
from tests.conftest import WORDS, random_bert
from tests.context.worlds import small_worded_causal, some_documents, some_sentences

STEPS = ["--max-steps", "3", "--batch-size", "8", "--precision", "float32", "--no-report"]
WIDTHS = ["--max-seq-length", "16"]


def write_inputs(folder: Path) -> None:
    """Write models and data of all kinds into a folder."""
    random_bert(folder / "bert", WORDS)
    small_worded_causal(folder / "causal")
    texts = some_sentences(120, seed=11)
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    scored = [f"{texts[row]}\t{texts[row + 1]}\t{row % 6}" for row in range(0, 80)]
    (folder / "scored.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *scored]) + "\n", encoding="utf-8")
    anchors = [
        {"anchor": texts[row], "positives": texts[row + 1 : row + 3], "negatives": texts[row + 3 : row + 5]}
        for row in range(0, 100, 5)
    ]
    (folder / "anchors.jsonl").write_text("\n".join(map(json.dumps, anchors)) + "\n", encoding="utf-8")
    sections = some_documents(24, seed=12)
    documents = [
        {"sections": [document[0] for document in sections[row : row + 3]]} for row in range(0, len(sections), 3)
    ]
    (folder / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n", encoding="utf-8")


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the command line of each run by its name; ``OUTPUT`` stands for its output."""
    bert = ["--model", str(folder / "bert"), "--output", "OUTPUT"]
    scored, texts, documents = (str(folder / name) for name in ("scored.tsv", "texts.txt", "documents.jsonl"))
    labelled = ["train", scored, "--dev", str(sample_path("dev")), *bert, *STEPS, *WIDTHS]
    origin = ["--origin.language-model", str(folder / "causal"), "--origin.reference", "60"]
    origin += ["--origin.kept-words", "20", "--origin.dimensions", "8", "--origin.score-precision", "float32"]
    harvest = ["--harvest.pairs", "60", "--harvest.sentences", "200", "--held-out-share", "0.2"]
    distilled = ["--teacher", str(folder / "bert"), "--student", "layers:1", "--output", "OUTPUT"]
    return {
        "train cosent": labelled,
        "train cosent, mse": [*labelled, "--loss", "mse"],
        "train cosent, cross-encoder": [*labelled, "--encoder", "cross"],
        "train simcse": ["train", texts, "--method", "simcse", *bert, *STEPS, *WIDTHS],
        "train rankcse": [
            "train",
            texts,
            "--method",
            "rankcse",
            "--teacher",
            str(folder / "bert"),
            *bert,
            *STEPS,
            *WIDTHS,
        ],
        "train supmpn": ["train", str(folder / "anchors.jsonl"), "--method", "supmpn", *bert, *STEPS, *WIDTHS],
        "train sections": ["train", documents, "--method", "sections", *bert, *STEPS, *WIDTHS],
        "train mixed": ["train", scored, texts, *bert, *STEPS, *WIDTHS],
        "train context": ["train", documents, "--method", "context", *bert, *STEPS, *WIDTHS, *origin, *harvest],
        "distil": ["distil", texts, *distilled, *STEPS],
        "pretrain": ["pretrain", texts, *bert, *STEPS[:-1], *WIDTHS],  # which has no --no-report
        "encode": ["encode", str(folder / "bert"), texts, "--output", "OUTPUT.npy"],
        "evaluate": ["evaluate", str(folder / "bert"), "--data", str(sample_path("test")), "--json"],
        "dedup": ["dedup", texts, "--model", str(folder / "bert"), "--threshold", "0.95", "--output", "OUTPUT.txt"],
    }


def run(words: list[str], output: Path) -> str:
    """Run a command, and return the hash of what it computed: weights, vectors, rows and figures."""
    words = [word.replace("OUTPUT", str(output)) for word in words]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as messages:
        code = call(words)
    if code:
        raise SystemExit(f"samesense {' '.join(words)} ended with {code}:\n{messages.getvalue()[-2000:]}")
    digest = hashlib.sha256()
    weights = [path for path in sorted(output.rglob("*.safetensors")) if "checkpoint" not in str(path)]
    for path in [*weights, *sorted(output.parent.glob(f"{output.name}.*"))]:
        digest.update(path.read_bytes())
    if (output / "results.jsonl").is_file():
        for line in (output / "results.jsonl").read_text(encoding="utf-8").splitlines():
            digest.update(repr(figures(json.loads(line))).encode())
    for line in printed.getvalue().splitlines():
        if line.startswith("{"):
            digest.update(repr(figures(json.loads(line))).encode())
    return digest.hexdigest()


def call(words: list[str]) -> int:
    """Run the command line in this process, and return its exit code."""
    try:
        run_command(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def figures(row: dict) -> list[object]:
    """Return what a row of results says: data set, metric and value, without its time."""
    return [row.get(name) for name in ("task", "dataset", "subset", "metric", "value", "low", "high", "n")]


def fingerprints(names: list[str] | None = None) -> dict[str, str]:
    """Return the hash of every run, or of those named, by its name."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_inputs(folder)
        chosen = {name: words for name, words in commands(folder).items() if names is None or name in names}
        hashes = {}
        for number, (name, words) in enumerate(chosen.items()):
            np.random.seed(0)
            hashes[name] = run(words, folder / f"run{number}")
            sys.stderr.write(f"{name}: {hashes[name][:12]}\n")
        return hashes


def main() -> None:
    """Write the fingerprints into a file, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="JSON file to write")
    parser.add_argument("--against", type=Path, help="JSON file of another checkout; exit code 1 if a figure differs")
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    hashes = fingerprints()
    arguments.output.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")
    if arguments.against is not None:
        before = json.loads(arguments.against.read_text(encoding="utf-8"))
        different = [name for name in before if hashes.get(name) != before[name]]
        if different:
            raise SystemExit(f"not bit-equal: {', '.join(different)}")
        sys.stdout.write(f"bit-equal: {len(before)} runs\n")


if __name__ == "__main__":
    main()
