"""Runs that are killed at random moments, up to three times, and restarted: they end as an uninterrupted run does."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from tests.context.worlds import some_documents
from tests.hostile.conftest import figures, rounds
from tests.recipes.test_context import ORIGIN

STEPS = ("--dev", "pairs.tsv", "--max-steps", "6", "--eval-steps", "2", "--batch-size", "8", "--precision", "float32")
# precision is fixed: a run killed early would measure again which precision is faster
RUNS = {
    "cosent": ("train", "pairs.tsv", *STEPS, "--model", "STATIC", "--output", "out"),
    "mse": ("train", "pairs.tsv", *STEPS, "--loss", "mse", "--model", "TINY", "--output", "out"),
    "cross": ("train", "pairs.tsv", *STEPS, "--encoder", "cross", "--model", "TINY", "--output", "out"),
    "supmpn": ("train", "tuples.jsonl", *STEPS, "--method", "supmpn", "--model", "TINY", "--output", "out"),
    "simcse": ("train", "texts.txt", *STEPS, "--method", "simcse", "--model", "TINY", "--output", "out"),
    "rankcse": ("train", "texts.txt", *STEPS, "--teacher", "STATIC", "--model", "TINY", "--output", "out"),
    "distil": ("distil", "texts.txt", *STEPS, "--teacher", "TINY", "--student", "layers:1", "--output", "out"),
    "pretrain": (
        *("pretrain", "documents.jsonl", "--model", "TINY", "--max-steps", "6", "--eval-steps", "2"),
        *("--batch-size", "4", "--max-seq-length", "16", "--precision", "float32", "--output", "out"),
    ),
    "encode": ("encode", "STATIC", "texts.txt", "--shard-size", "4", "--workers", "1", "--output", "out"),
    "encode-tables": (
        *("encode", "STATIC", "pairs.tsv", "pairs.tsv", "--columns", "sentence1", "--keep", "score", "--workers", "2"),
        *("--vectors", "int8", "--format", "parquet", "--shard-size", "7", "--output", "out"),
    ),
    "index": ("index", "build", "out", "texts.txt", "--model", "STATIC", "--overwrite"),
    "export": ("export", "STATIC", "--output", "out", "--overwrite"),
    "whiten": ("whiten", "STATIC", "texts.txt", "--output", "out", "--overwrite"),
    "compare": (
        *("compare", "STATIC", "TINY", "--data", "pairs.tsv", "--cache", "out", "--no-speed"),
        *("--output", "page.html", "--markdown", "page.md"),
    ),
    "sweep": ("sweep", "sweep.toml", "--output", "out"),
    "harvest": (
        *("harvest", "--origin", "origin", "--output", "out", "--pairs", "60", "--unit", "6", "--shard-size", "10"),
        *("--spacings", "4"),
    ),
    "dedup": (
        *("dedup", "texts.txt", "--model", "STATIC", "--threshold", "0.9", "--search", "approximate"),
        *("--work", "out", "--output", "kept.txt"),
    ),
    "dedup-workers": (
        *("dedup", "texts.txt", "--model", "STATIC", "--threshold", "0.9", "--search", "approximate"),
        *("--work", "out", "--output", "kept.txt", "--workers", "2"),
    ),
}
GOES_ON = ("train", "pretrain", "distil")
"""Commands that resume with ``--resume``; the others resume with the same arguments."""


@pytest.fixture
def prepared(here, static_model, tiny_trunk):
    rows = [
        {"anchor": "a man", "positive": ["a child"], "negative": ["a dog", "the sea"]},
        {"anchor": "rain", "positive": ["snow"], "negative": ["music", "a car"]},
    ]
    (here / "tuples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 12))
    sentences = (here / "texts.txt").read_text().splitlines()
    (here / "documents.jsonl").write_text(json.dumps({"sentences": sentences}) + "\n")
    (here / "sweep.toml").write_text(
        f'seeds = [1]\n[base]\nmodel = "{static_model}"\nmax_steps = 4\neval_steps = 2\n'
        '[[case]]\nloss = "cosent"\n[[case]]\nloss = "mse"\n'
        '[[data]]\nname = "d"\ntrain = "pairs.tsv"\ndev = "pairs.tsv"\ntest = "pairs.tsv"\n'
    )
    return {"STATIC": str(static_model), "TINY": str(tiny_trunk)}


@pytest.fixture
def origin(here):
    """A folder of contexts to harvest by."""
    rows = [json.dumps({"sections": sections}) for sections in some_documents(12)]
    (here / "world.jsonl").write_text("\n".join(rows) + "\n")
    flags = [word for name, value in ORIGIN.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert ended(began(("origin", "world.jsonl", "--config", "scaled", *flags, "--output", "origin"))) == 0


def began(words):
    """Start a command in a separate process."""
    return subprocess.Popen([sys.executable, "-m", "samesense", *words], stdout=subprocess.DEVNULL)


def ended(child):
    return child.wait()


def command(name, models, here):
    words = [models.get(word, word) for word in RUNS[name]]
    if words[0] in GOES_ON and (here / "out" / "manifest.json").exists():
        words.append("--resume")
    return words


def outcome(name, models, here):
    """Return the output of a run that must be reproducible."""
    out = here / "out"
    if name == "index":
        from samesense.inference.collection.collection import Collection

        collection = Collection.open(out)
        return [(entry.id, entry.text) for entry in collection] + [sorted(path.suffix for path in out.iterdir())[:2]]
    if name == "compare":
        return (here / "page.md").read_text()
    if name in ("dedup", "dedup-workers"):
        return (here / "kept.txt").read_text()
    if name == "harvest":
        return [pq.read_table(path).to_pylist() for path in sorted(out.glob("shards/*.parquet"))]
    if name == "sweep":
        return [
            [json.loads(line)["value"] for line in path.read_text().splitlines()]
            for path in sorted(out.glob("runs/*/results.jsonl"))
        ]
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.suffix in (".safetensors", ".npy", ".onnx", ".parquet")
    }


@pytest.mark.posix
@pytest.mark.long  # every run is a process that imports torch
@pytest.mark.parametrize("name", RUNS)
def test_a_killed_run_ends_as_one_that_was_not(prepared, here, name, request):
    if name == "harvest":
        request.getfixturevalue("origin")
    started = time.monotonic()
    assert ended(began(command(name, prepared, here))) == 0
    seconds = time.monotonic() - started
    expected = outcome(name, prepared, here)
    assert expected
    draw = random.Random(name)
    kills = 0
    for _ in range(rounds(short=1, long=8)):
        shutil.rmtree(here / "out")
        for output in ("page.md", "kept.txt"):
            (here / output).unlink(missing_ok=True)
        for _ in range(draw.randint(1, 3)):
            child = began(command(name, prepared, here))
            time.sleep(draw.uniform(0, seconds))
            child.kill()
            kills += ended(child) == -signal.SIGKILL
        code = ended(began(command(name, prepared, here)))
        whole = code == 2 and name in ("cosent", "mse", "cross", "supmpn", "simcse", "rankcse", "distil", "pretrain")
        assert code == 0 or whole, code  # a finished run is not trained again
        assert outcome(name, prepared, here) == expected
        assert not [path for path in here.glob(".*") if "-old-" in path.name]
    figures(f"kills, {name}", {"kills": kills})


PAIRED = {
    "encode": ("encode", "STATIC", "texts.txt", "--output", "out.npy"),
    "shards": RUNS["encode"],
    "index": RUNS["index"],
    "compare": RUNS["compare"],
    "evaluate": ("evaluate", "STATIC", "--data", "pairs.tsv", "--output", "results.jsonl"),
    "cosent": RUNS["cosent"],
    "sweep": RUNS["sweep"],
}


@pytest.mark.long  # every run is a process that imports torch
@pytest.mark.parametrize("name", PAIRED)
def test_two_at_once_both_end_well_or_one_is_told_to_wait(prepared, here, name):
    words = [prepared.get(word, word) for word in PAIRED[name]]
    for _ in range(rounds(short=1, long=5)):
        shutil.rmtree(here / "out", ignore_errors=True)
        codes = sorted(map(ended, [began(words), began(words)]))
        assert codes in ([0, 0], [0, 2]), codes
        left = [path.name for path in here.rglob(".*.part")]
        assert not left, left
