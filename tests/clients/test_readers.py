"""Other programs open our folders: each kind of model gives the same rows there, or is known not to, and why.

Known failures must fail in the documented way, so that the table of the results stays true.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import samesense
from tests.clients.folders import EXPORTED, OPENVINO, TRUNKS, kinds

pytestmark = pytest.mark.clients

SCRIPTS = Path(__file__).with_name("readers")

ALL = tuple(kind.name for kind in kinds())
ENCODERS = tuple(kind.name for kind in kinds() if not kind.pairs and kind.name not in ("router", "cnn"))
MEAN = ("mean", "more-tokens", *(kind.name for kind in kinds() if kind.name in TRUNKS and not kind.forwards))
NO_ROUTES = {"router": ("Router", "this version has no routes")}
ORDER = {"mean-cls": ("unexpected keyword", "its settings cannot say the order")}


@dataclass(frozen=True)
class Reader:
    """A program, its environment, and the kinds it cannot open: kind to a fragment of its error, or none, and why."""

    name: str
    environment: str | None  # None is that of the tests
    script: str
    names: tuple[str, ...]
    cannot: dict[str, tuple[str, str]] = field(default_factory=dict)
    setting: str = ""  # what has to be set or done
    backend: str = ""  # of exported folders
    unit: bool = False  # it scales vectors to unit length
    long_texts: bool = True  # whether texts that are longer than the model reads are tried
    tolerance: float = 1e-5


BY_HAND = "prompts are put before texts by hand"
LAYERS = {"first-last": ("all_layer_embeddings", "it has the states of the last layer only")}
POOLED_HERE = {"prompt-left-out": ("", "it pools the prompt too")}

READERS = [
    Reader(
        "sentence-transformers 3.4", "sentence-transformers-3.4", "sentence_transformers_torch", ALL, NO_ROUTES | ORDER
    ),
    Reader(
        "sentence-transformers 4.1", "sentence-transformers-4.1", "sentence_transformers_torch", ALL, NO_ROUTES | ORDER
    ),
    Reader("sentence-transformers 5.3", "sentence-transformers-5.3", "sentence_transformers_torch", ALL, ORDER),
    Reader("sentence-transformers 5.7", "sentence-transformers-5.7", "sentence_transformers_torch", ALL),
    Reader("sentence-transformers 6.2", None, "sentence_transformers_torch", ALL),
    Reader(
        "Infinity",
        "sentence-transformers-3.4",
        "infinity",
        ENCODERS,
        ORDER
        | POOLED_HERE
        | dict.fromkeys(("static", "static-normalized"), ("config.json", "it opens transformers only")),
        setting=f"{BY_HAND}; vectors have unit length",
        unit=True,
    ),
    Reader(
        "transformers 4.57",
        "sentence-transformers-5.3",
        "transformers_torch",
        MEAN,
        {"t5": ("", "`AutoModel` has its decoder too")},
        setting="pooling by hand",
    ),
    Reader(
        'sentence-transformers 5.3 with `backend="onnx"`',
        "sentence-transformers-5.3",
        "sentence_transformers_onnx",
        EXPORTED,
        LAYERS,
        backend="onnx",
    ),
    Reader(
        'sentence-transformers 6.2 with `backend="openvino"`, eight bits',
        "openvino",
        "sentence_transformers_openvino",
        OPENVINO,
        setting='`model_kwargs={"file_name": "openvino_model_qint8_quantized.xml"}`; one text at a time',
        backend="openvino-int8",
        tolerance=1e-3,
    ),
    Reader(
        "optimum",
        "sentence-transformers-5.3",
        "optimum_onnx",
        ("mean", "prompt", "xlm-roberta"),
        setting=f"pooling by hand; {BY_HAND}",
        backend="onnx",
    ),
    Reader(
        "fastembed",
        "apis",
        "fastembed_local",
        EXPORTED,
        {"static": ("tokenizer_config.json", "it opens transformers only")},
        setting=f"`add_custom_model` with `PoolingType.DISABLED`; {BY_HAND}",
        backend="onnx",
    ),
    Reader(
        "transformers.js",
        "node",
        "transformers_js",
        EXPORTED,
        {"static": ("config.json", "it opens transformers only")},
        setting=f"output `sentence_embedding`, or `pooling` of the pipeline; {BY_HAND}; texts that are cut differ",
        backend="onnx",
        long_texts=False,
    ),
    Reader(
        'transformers.js with `dtype: "q8"`',
        "node",
        "transformers_js",
        ("mean", "whitened"),
        setting="one text at a time",
        backend="onnx-int8",
        long_texts=False,
        tolerance=1e-3,
    ),
]


def jobs_of(reader, home, exports):
    """Yield the jobs of a reader: each kind with its folder, inputs and expected rows."""
    for name in reader.names:
        job = json.loads((home / f"{name}.json").read_text(encoding="utf-8"))
        folder = exports if reader.backend else home
        job |= {"folder": str(folder / name), "backend": reader.backend, "pooling": name}
        if reader.backend.endswith("int8"):
            job |= {"rows": int8_rows(folder / name, reader.backend, job["inputs"]), "batch": 1}
        if not reader.long_texts:
            job |= {"inputs": job["inputs"][:-1], "rows": job["rows"][:-1]}
        yield job


def int8_rows(folder, backend, texts):
    return samesense.load(folder, backend=backend, deterministic=True).encode(texts).tolist()


def run(script, jobs, folder, environments, environment):
    """Run a script on its jobs, and return its answers and the versions of its packages."""
    (folder / "asked.json").write_text(json.dumps(jobs), encoding="utf-8")
    arguments = [str(folder / "asked.json"), str(folder / "answers.json")]
    if environment == "node":
        command = ["node", str(SCRIPTS / f"{script}.mjs"), *arguments, str(environments / "node")]
    else:
        python = sys.executable if environment is None else str(environments / environment / "bin" / "python")
        command = [python, str(SCRIPTS / f"{script}.py"), *arguments]
    apart = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env={**apart, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    output = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    return output["rows"], output["versions"]


def difference(job, answer, unit):
    """Return the largest absolute difference; infinity where the shapes differ."""
    expected, rows = (np.array(array, dtype=np.float64) for array in (job["rows"], answer["rows"]))
    if unit:
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    return float(np.abs(expected - rows).max()) if expected.shape == rows.shape else float("inf")


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_reader(reader, home, request, tmp_path, environments, results):
    exports = request.getfixturevalue("exports") if reader.backend else None
    jobs = list(jobs_of(reader, home, exports))
    answers, versions = run(reader.script, jobs, tmp_path, environments, reader.environment)
    wrong = {}
    groups = {}
    for job in jobs:
        answer = answers[job["name"]]
        name = job["name"]
        message, why = reader.cannot.get(name, (None, ""))
        apart = None if "error" in answer else difference(job, answer, reader.unit)
        opens = apart is not None and apart <= reader.tolerance
        if opens != (message is None) or (message and message not in answer.get("error", "")):
            wrong[name] = answer.get("error", apart)
        outcome = "same" if opens else f"{'fails' if 'error' in answer else 'other vectors'}, as {why}"
        groups.setdefault(job["group"], {})[name] = outcome
    assert not wrong
    results[reader.name] = {"versions": versions, "setting": reader.setting, "groups": groups}
