"""What each reader of a folder demands, one rule broken at a time."""

import json

import pytest

from samesense.encoder.build import build
from samesense.encoder.storage import save
from samesense.errors import ModelError
from samesense.inference.onnx.compatibility import compatibility

READERS = [
    "samesense without torch", "sentence-transformers >= 5.4", "sentence-transformers < 5.4", "TEI, ONNX",
    "TEI, safetensors", "vLLM", "Infinity, torch",
]  # fmt: skip


@pytest.fixture
def folder(tiny, tmp_path):
    return save(tiny, tmp_path / "model", card=False)


def no(folder):
    """Readers that do not read it, and why."""
    return {one.reader: " ".join(one.reasons) for one in compatibility(folder) if not one.reads}


def changed(folder, file, **changes):
    path = folder / file
    content = json.loads(path.read_text())
    for key, value in changes.items():
        content.pop(key, None) if value is None else content.update({key: value})
    path.write_text(json.dumps(content))
    return no(folder)


def test_a_saved_model_is_read_by_all_that_need_no_graph(folder):
    assert [one.reader for one in compatibility(folder)] == READERS
    assert set(no(folder)) == {"samesense without torch", "TEI, ONNX"}
    assert all(one.reasons for one in compatibility(folder))


def test_without_the_older_pooling_keys(folder):
    flags = {
        key: None
        for key in json.loads((folder / "1_Pooling" / "config.json").read_text())
        if key.startswith("pooling_mode_")
    }
    against = changed(folder, "1_Pooling/config.json", **flags)
    assert "pooling_mode_cls_token" in against["TEI, safetensors"]
    assert "it would choose by itself" in against["vLLM"]
    assert "sentence-transformers < 5.4" in against and "sentence-transformers >= 5.4" not in against


def test_with_the_newer_class_paths(folder):
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    against = no(folder)
    assert {"vLLM", "Infinity, torch", "sentence-transformers < 5.4"} <= set(against)
    assert "TEI, safetensors" not in against
    modules[1]["type"] = "mine.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    assert "trust_remote_code" in no(folder)["sentence-transformers >= 5.4"]


def test_without_a_longest_input_or_a_tokenizer_or_weights(folder):
    against = changed(folder, "sentence_bert_config.json", max_seq_length=None)
    assert "lacks max_seq_length" in against["TEI, safetensors"]
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in no(folder)["TEI, safetensors"]
    (folder / "model.safetensors").unlink()
    assert set(no(folder)) == set(READERS)


def test_first_last_pooling_is_for_graphs_and_libraries(tiny_trunk, tmp_path):
    folder = save(build(str(tiny_trunk), device="cpu", pooling="first-last"), tmp_path / "model", card=False)
    against = no(folder)
    assert "WeightedLayerPooling" in against["vLLM"] and "WeightedLayerPooling" in against["TEI, safetensors"]
    assert "takes the first token" in against["TEI, safetensors"]
    assert "sentence-transformers < 5.4" not in against


def test_a_prompt_is_put_before_texts_by_libraries_alone(folder):
    assert not any("prompt" in reason for one in compatibility(folder) for reason in one.reasons)
    prompts = {"prompts": {"query": "query: ", "none": ""}, "default_prompt_name": "query"}
    against = changed(folder, "config_sentence_transformers.json", **prompts)
    assert {"vLLM", "Infinity, torch"} < set(against)
    assert "prompt 'query: '" in against["vLLM"] and "prompt 'query: '" in against["Infinity, torch"]
    said = {one.reader: " ".join(one.reasons) for one in compatibility(folder)}
    assert "start it with --default-prompt 'query: '" in said["TEI, safetensors"]
    for name in ("none", None):
        assert "vLLM" not in changed(folder, "config_sentence_transformers.json", default_prompt_name=name)


def test_sizes_under_other_names_are_unknown_to_teis_graphs(folder):
    """As in the config.json of a DistilBERT, which has dim and n_layers."""
    assert "hidden" not in no(folder)["TEI, ONNX"]
    against = changed(folder, "config.json", hidden_size=None, num_hidden_layers=None, dim=32, n_layers=3)
    assert "lacks hidden_size" in against["TEI, ONNX"] and "lacks num_hidden_layers" in against["TEI, ONNX"]
    assert "TEI, safetensors" not in against


def test_max_pooling_is_not_served(tiny_trunk, tmp_path):
    folder = save(build(str(tiny_trunk), device="cpu", pooling="max"), tmp_path / "model", card=False)
    assert "this model by max" in no(folder)["vLLM"] and "this model by max" in no(folder)["TEI, safetensors"]


def test_a_folder_without_modules_is_refused(tiny_trunk):
    with pytest.raises(ModelError, match="has none"):
        compatibility(tiny_trunk)
