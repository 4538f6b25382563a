"""Exported folders with files of different models."""

import json
import shutil

import numpy as np
import pytest

from samesense.errors import DataError, ModelError
from samesense.inference.models.load import load
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import DESCRIPTION, TOKENIZER, graph_file
from tests.hostile.conftest import write_json

GRAPH = "onnx/model.onnx"


@pytest.fixture
def folder(exported_static, tmp_path):
    return shutil.copytree(exported_static, tmp_path / "model")


@pytest.fixture
def other_graph(static_model, tmp_path):
    """The graph of a model with other weights."""
    from samesense.encoder.assembly.build import build
    from samesense.inference.onnx.graph import write_graph

    model = build(str(static_model), device="cpu")
    model[0].embedding.weight.data *= -1
    write_graph(model, tmp_path / "other.onnx")
    return tmp_path / "other.onnx"


def test_an_exchanged_graph_is_refused(folder, other_graph):
    shutil.copyfile(other_graph, folder / GRAPH)
    with pytest.raises(ModelError, match=r"model\.onnx is not the graph that was exported"):
        OnnxEncoder(folder)


def test_everything_that_decides_a_vector_is_in_the_identity(folder, other_graph):
    """Also where the description was changed to match."""
    identities = {OnnxEncoder(folder).identity}
    description = json.loads((folder / DESCRIPTION).read_text())
    for name, value in (("prompt", "a "), ("max_tokens", 3), ("special_tokens", True), ("padding_side", "left")):
        write_json(folder / DESCRIPTION, description | {name: value})
        identities.add(OnnxEncoder(folder).identity)
    shutil.copyfile(other_graph, folder / GRAPH)
    write_json(folder / DESCRIPTION, description | {"graphs": {"onnx": graph_file(folder / GRAPH).model_dump()}})
    identities.add(OnnxEncoder(folder).identity)
    assert len(identities) == 6


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dim", 7),
        ("dim", 9),
        ("dim", -1),
        ("dim", 10**30),
        ("max_tokens", 0),
        ("max_tokens", -5),
        ("pad_token", -1),
        ("max_tokens", 2**70),
        ("inputs", ["input_ids"]),
        ("inputs", []),
        ("inputs", ["text"]),
        ("graphs", {}),
        ("graphs", {"onnx": {"bytes": 1, "sha256": ""}}),
        ("padding_side", "up"),
        ("format", 2),
        ("prompt", None),
    ],
)
def test_a_description_that_is_not_of_its_graph_is_refused(folder, name, value):
    description = json.loads((folder / DESCRIPTION).read_text())
    write_json(folder / DESCRIPTION, description | {name: value})
    with pytest.raises(ModelError, match=str(folder)):
        load(str(folder)).encode(["a man"])


def test_a_tokenizer_of_another_model_is_refused_or_shows_in_the_identity(folder):
    before = OnnxEncoder(folder).identity
    content = json.loads((folder / TOKENIZER).read_text())
    content["model"]["vocab"]["man"] = 10**6
    write_json(folder / TOKENIZER, content)
    assert OnnxEncoder(folder).identity != before
    with pytest.raises(ModelError, match="belong together"):
        OnnxEncoder(folder).encode(["a man"])


def test_a_tokenizer_that_fails_in_use_is_named(folder):
    content = json.loads((folder / TOKENIZER).read_text())
    del content["model"]["vocab"]["[UNK]"]
    write_json(folder / TOKENIZER, content)
    with pytest.raises(ModelError, match=r"tokenizer of .* fails \("):
        OnnxEncoder(folder).encode(["an unknown word"])


@pytest.mark.posix
@pytest.mark.parametrize("name", [GRAPH, DESCRIPTION, TOKENIZER])
def test_a_link_out_of_the_folder_is_refused(folder, tmp_path, name):
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="leads out"):
        OnnxEncoder(folder)


@pytest.mark.posix
def test_the_folder_may_be_moved_and_linked_to(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    texts = ["a man", "two dogs in the rain"]
    rows = OnnxEncoder(folder).encode(texts)
    np.testing.assert_array_equal(OnnxEncoder(tmp_path / "link").encode(texts), rows)
