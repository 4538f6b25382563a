"""Unusual but valid model folders open; folders damaged in unusual ways are refused with a message."""

import json
import math

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from transformers import AutoConfig, BertForMaskedLM, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.model_files import check_model_files
from samesense.errors import ModelError

TEXTS = ["a cat eats", "the dog runs"]


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def check_same_vectors(folder):
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(build(str(folder), device="cpu").encode(TEXTS), theirs, atol=1e-6)


def test_adapters_over_a_base_without_a_pooler(tiny_trunk, tmp_path):
    peft = pytest.importorskip("peft")
    BertForMaskedLM(AutoConfig.from_pretrained(tiny_trunk)).save_pretrained(tmp_path / "base")
    PreTrainedTokenizerFast.from_pretrained(tiny_trunk).save_pretrained(tmp_path / "base")
    first = Transformer(str(tmp_path / "base"))
    model = SentenceTransformer(modules=[first, Pooling(first.get_embedding_dimension())], device="cpu")
    model.add_adapter(peft.LoraConfig(r=2, target_modules=["query", "value"], task_type="FEATURE_EXTRACTION"))
    model.save(str(tmp_path / "adapted"))
    check_same_vectors(tmp_path / "adapted")


def test_a_special_token_without_a_role_needs_no_vector(tiny_trunk, tmp_path, tiny):
    tiny.save(str(tmp_path))
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    rows = AutoConfig.from_pretrained(tiny_trunk).vocab_size
    token = {"content": "<img>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append({"id": rows, "special": True, **token})
    write_json(tmp_path / "tokenizer.json", tokenizer)
    settings["added_tokens_decoder"] = {str(rows): {"special": True, **token}}
    write_json(tmp_path / "tokenizer_config.json", settings)
    check_same_vectors(tmp_path)


def test_static_words_beside_a_configuration_of_their_tokenizer(tiny_trunk, tmp_path):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tiny_trunk, model_max_length=int(1e30))
    words = StaticEmbedding(tokenizer.backend_tokenizer, embedding_dim=4)
    SentenceTransformer(modules=[words], device="cpu").save(str(tmp_path))
    tokenizer.save_pretrained(tmp_path)
    check_same_vectors(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", {"model_type": "gemma3n_text", "vocab_size_per_layer_input": 262144, "hidden_size": 2048}),
        (
            "config.json",
            {"model_type": "gemma3n_text", "intermediate_size": [8192, 8192], "num_attention_heads": [4, 8]},
        ),
        ("tokenizer_config.json", {"model_max_length": math.inf}),
        ("sentence_bert_config.json", {"max_seq_length": int(1e30), "do_lower_case": None}),
    ],
)
def test_what_others_write_is_no_damage(tmp_path, name, content):
    write_json(tmp_path / name, content)
    check_model_files(tmp_path)


@pytest.mark.parametrize("path", [".", "./.", ""])
def test_a_router_that_holds_itself_is_refused(tmp_path, path):
    router = "sentence_transformers.models.Router"
    write_json(tmp_path / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": router}])
    write_json(tmp_path / "router_config.json", {"types": {path: router}, "structure": {}})
    with pytest.raises(ModelError, match="a router must not hold itself"):
        check_model_files(tmp_path)


def test_a_path_that_no_disk_holds_is_refused(tmp_path):
    module = {"idx": 0, "name": "0", "path": "x" * 5000, "type": "sentence_transformers.models.Pooling"}
    write_json(tmp_path / "modules.json", [module])
    with pytest.raises(ModelError, match="longer than a disk can hold"):
        check_model_files(tmp_path)


def test_a_trunk_that_cannot_compute_is_a_model_error(tiny_trunk, tmp_path):
    sizes = {"vocab_size": 100, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0)).save_pretrained(tmp_path)
    PreTrainedTokenizerFast.from_pretrained(tiny_trunk).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["decoder_start_token_id"]
    write_json(tmp_path / "config.json", config)
    with pytest.raises(ModelError, match="Cannot open"):
        build_cross(str(tmp_path))
