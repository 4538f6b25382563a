"""OpenVINO as an engine of exported folders: the vectors of torch, static int8 with its bound, and what is missing."""

import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import samesense
from samesense.encoder.cosine import unit
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, MissingExtraError, ModelError
from samesense.inference.models import backends
from samesense.inference.onnx import openvino_encoder, token_encoder
from samesense.inference.onnx.export import RANGE_TEXTS, RangeTexts, export
from samesense.inference.onnx.format import DESCRIPTION, GRAPHS, read_description
from samesense.inference.onnx.open_graph import open_graph
from samesense.inference.onnx.openvino_encoder import openvino_has_bfloat16
from samesense.inference.search.ties import noise_of
from tests.inference.exported import whitened

pytest.importorskip("openvino", reason="needs the extra openvino")

pytestmark = pytest.mark.slow  # the export imports and runs the exporter and NNCF

LONG = "the man walks by the river and " * 40
ODD = ["a", "", "  two   dogs\t", LONG, "unknown Words, Zürich!", LONG + "sea"]


EXPORT = """
import signal, sys
from functools import partial
from pathlib import Path
from samesense.data import read_pairs
from samesense.inference.onnx import export
from tests.inference.exported import copy_graph
model, pairs, output, exported = sys.argv[1:]
export.write_graph = partial(copy_graph, Path(exported))
export.export(model, output, int8=True, openvino_int8=True, pairs=read_pairs(pairs))
signal.signal(signal.SIGINT, lambda *_: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


@pytest.fixture(scope="module")
def exporting(tiny_trunk, toy_pairs, sentences, exported, tmp_path_factory):
    """A process that has exported the model of ``exported`` for OpenVINO too, and its folder."""
    pytest.importorskip("nncf", reason="needs the extra openvino-export")
    folder = tmp_path_factory.mktemp("openvino")
    save(whitened(tiny_trunk, sentences), folder / "trained")
    arguments = [folder / "trained", toy_pairs / "dev.tsv", folder / "model", exported]
    return subprocess.run([sys.executable, "-c", EXPORT, *map(str, arguments)], capture_output=True, text=True), folder


@pytest.fixture(scope="module")
def folder(exporting):
    done, folder = exporting
    assert done.returncode == 0, done.stderr
    return folder / "model"


@pytest.mark.parametrize("backend", ["openvino", "openvino-int8"])
def test_many_batches_in_parallel_have_the_vectors_of_one_after_another(folder, sentences, monkeypatch, backend):
    texts = [*sentences, *ODD]
    model = samesense.load(str(folder), backend=backend, threads=2)
    monkeypatch.setattr(token_encoder, "BATCH_TOKENS", 64)
    expected = model.encode(texts)
    monkeypatch.setattr(openvino_encoder, "PARALLEL_BATCHES", 1)
    np.testing.assert_allclose(model.encode(texts), expected, atol=1e-6)
    assert model._encoder._parallel is not None


def test_the_vectors_are_those_of_torch(folder, sentences):
    texts = [*sentences, *ODD]
    torch_rows = samesense.load(str(folder), backend="torch", precision="float32", device="cpu").encode(texts)
    model = samesense.load(str(folder), backend="openvino")
    assert model.backend == "openvino"
    rows = model.encode(texts)
    np.testing.assert_allclose(rows, torch_rows, atol=5e-6)
    np.testing.assert_allclose(np.concatenate([model.encode([text]) for text in texts]), torch_rows, atol=5e-6)
    assert read_description(folder).parity["openvino"].least_cosine > 0.99999


def test_int8_is_near_and_its_texts_are_on_record(folder, sentences):
    description = read_description(folder)
    rough = open_graph(folder, "openvino-int8").encode(sentences)
    exact = open_graph(folder, "openvino").encode(sentences)
    assert not np.array_equal(rough, exact)
    assert (rough * exact).sum(axis=1).min() > 0.999  # the map of a whitened model is not quantized
    assert description.graphs["openvino-int8"].bytes < description.graphs["onnx"].bytes
    assert description.ranges.source == "dev.tsv" and 0 < description.ranges.texts <= RANGE_TEXTS
    assert {"openvino", "openvino-int8"} <= set(description.drift.points)
    assert "ranges of openvino-int8 from" in str(description)


def test_bfloat16_is_near_where_the_processor_has_it(folder, sentences):
    if not openvino_has_bfloat16():
        with pytest.raises(ConfigError, match="Take the backend openvino"):
            open_graph(folder, "openvino-bfloat16")
        return
    rough = samesense.load(str(folder), backend="openvino-bfloat16")
    exact = open_graph(folder, "openvino").encode(sentences)
    rows = rough.encode(sentences, normalize=True)
    assert rough.backend == "openvino-bfloat16" and "openvino-bfloat16" in rough.protocol
    assert not np.array_equal(rows, exact) and (rows * unit(exact.astype(np.float64))).sum(axis=1).min() > 0.999
    assert "openvino-bfloat16" in read_description(folder).drift.points


@pytest.mark.parametrize("name", ["openvino", "openvino-int8"])
def test_other_texts_of_a_batch_change_a_cosine_by_less_than_the_noise(folder, sentences, name):
    encoder = open_graph(folder, name)
    together = unit(encoder.encode(sentences).astype(np.float64))
    alone = unit(np.concatenate([encoder.encode([text]) for text in sentences]).astype(np.float64))
    assert np.abs(together @ together.T - alone @ alone.T).max() < noise_of(encoder.protocol)


def test_the_folder_opens_without_nncf(folder):
    code = (
        "import sys, samesense; sys.modules['nncf'] = None; "
        f"model = samesense.load({str(folder)!r}, backend='openvino-int8'); model.encode(['a dog']); "
        "print(model.backend, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openvino-int8", "False"]


@pytest.mark.parametrize("name", ["openvino", "openvino-int8"])
def test_deterministic_bits_are_those_of_the_text_alone(folder, sentences, name):
    encoder = open_graph(folder, name, deterministic=True, threads=3)
    texts = [*sentences, *ODD]
    rows = encoder.encode(texts)
    np.testing.assert_array_equal(encoder.encode(texts[::-1])[::-1], rows)
    np.testing.assert_array_equal(open_graph(folder, name, deterministic=True, threads=1).encode(texts), rows)


def test_a_signal_arrives_once_encoders_are_gone(folder):
    """Two OpenVINO cores that ended in turn left a freed stack for the next signal."""
    code = (
        "import gc, signal, samesense\n"
        f"first, second = (samesense.load({str(folder)!r}, backend='openvino') for _ in range(2))\n"
        "del first; gc.collect(); del second; gc.collect()\n"
        "signal.signal(signal.SIGINT, lambda *_: print('handled'))\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


def test_a_signal_arrives_after_an_export(exporting):
    assert "handled" in exporting[0].stdout, exporting[0].stderr


def test_a_pickled_encoder_opens_its_folder_again(folder, sentences):
    encoder = open_graph(folder, "openvino-int8")
    again = pickle.loads(pickle.dumps(encoder))
    assert again.identity == encoder.identity != open_graph(folder, "openvino").identity
    np.testing.assert_allclose(again.encode(sentences), encoder.encode(sentences), atol=1e-6)


def test_damaged_weights_are_named(folder, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    weights = (damaged / GRAPHS["openvino-int8"]).with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    with pytest.raises(ModelError, match="is not the graph that was exported and checked"):
        open_graph(damaged, "openvino-int8")


def with_drift(folder, points):
    """Write another drift into a description, as if on many pairs."""
    content = json.loads((folder / DESCRIPTION).read_text())
    content["drift"] = {"data": "d", "pairs": 1000, "reference": 80.0, "points": points}
    (folder / DESCRIPTION).write_text(json.dumps(content))


@pytest.mark.parametrize(("points", "chosen"), [(0.1, "openvino-int8"), (-0.11, "openvino")])
def test_auto_measures_what_is_installed_within_the_bound_and_remembers(
    folder, tmp_path, monkeypatch, sentences, points, chosen
):
    monkeypatch.setenv("SAMESENSE_CACHE", str(tmp_path / "cache"))
    copied = tmp_path / "model"
    shutil.copytree(folder, copied)
    with_drift(copied, {"onnx-int8": 1.0, "openvino-int8": points, "torch-bfloat16": 1.0})
    speeds = {"onnx": 100.0, "torch-float32": 90.0, "openvino": 110.0, "openvino-int8": 200.0}
    calls = []

    def measure(encoders, texts):
        calls.append(list(encoders))
        return {name: speeds[name] for name in encoders}

    monkeypatch.setattr(backends, "measure", measure)
    sample = [f"text {number}" for number in range(backends.MEASURE_FROM)]
    first = samesense.load(str(copied), sample=sample)
    assert first.choice.backend == chosen and len(calls) == 1
    assert "onnx-int8" not in calls[0]
    again = samesense.load(str(copied), sample=sentences)
    assert (again.choice.backend, again.choice.reason) == (chosen, "measured on this machine before")
    assert len(calls) == 1


def test_the_server_uses_it(folder):
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from samesense.inference.serve.opening import open_models

    (served,) = open_models(str(folder), backend="openvino-int8")
    rows = served.encode(["a dog eats"])
    np.testing.assert_allclose(rows, open_graph(folder, "openvino-int8").encode(["a dog eats"]), atol=1e-6)
    assert served.tokens.count(["a dog eats"]) == [5]


def test_a_collection_is_searched_with_the_engine_that_built_it(folder, tmp_path, sentences):
    (tmp_path / "texts.txt").write_text("\n".join(sentences) + "\n")
    model = samesense.load(str(folder), backend="openvino-int8")
    samesense.build_index(tmp_path / "index", tmp_path / "texts.txt", model=model)
    opened = samesense.open_index(tmp_path / "index", model=str(folder))
    assert opened.query(sentences[3], top=1)[0].text == sentences[3]
    assert opened.collection.about()["precision"] == "openvino-int8"


def test_a_missing_package_is_named_with_its_extra(folder, tmp_path, tiny_trunk, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"samesense\[openvino\]"):
        samesense.load(str(folder), backend="openvino")
    with pytest.raises(MissingExtraError, match=r"openvino is needed here.*samesense\[openvino-export\]"):
        export(str(tiny_trunk), tmp_path / "out", openvino_int8=True)
    sample = [f"text {number}" for number in range(3)]
    assert samesense.load(str(folder), sample=sample).choice.backend == "onnx"


def test_a_folder_without_the_graph_says_the_flag(folder, tmp_path, tiny_trunk):
    copied = tmp_path / "model"
    shutil.copytree(folder, copied)
    content = json.loads((copied / DESCRIPTION).read_text())
    del content["graphs"]["openvino-int8"]
    (copied / DESCRIPTION).write_text(json.dumps(content))
    with pytest.raises(ModelError, match="Export the model again with --openvino-int8"):
        samesense.load(str(copied), backend="openvino-int8")
    with pytest.raises(ModelError, match=r"opens exported folders only.*--openvino-int8"):
        samesense.load(str(tiny_trunk), backend="openvino-int8")
    with pytest.raises(ConfigError, match="eight bits"):
        samesense.load(str(folder), backend="openvino-int8", precision="float32")
    with pytest.raises(ConfigError, match="`range_texts` are for `openvino_int8`"):
        samesense.export(str(tiny_trunk), output=tmp_path / "out", range_texts=["a", "b"])


def test_range_texts_are_spread_over_all():
    texts = RangeTexts.spread([f"text {number % 1000}" for number in range(5000)], "file")
    assert len(texts.texts) == len(set(texts.texts)) == RANGE_TEXTS
    assert texts.texts[0] == "text 0" and texts.texts[150] == "text 500"
