"""Saved folders use only constructors, classes and setting names that older readers know."""

import json
import random
import shutil
from copy import deepcopy

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Router, Transformer
from sentence_transformers.sentence_transformer.modules import CNN, LayerNorm, Pooling, StaticEmbedding
from transformers import AutoConfig, AutoModel, AutoTokenizer

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.encode import encode
from samesense.encoder.saving.portable import POOLING_FLAGS
from samesense.encoder.saving.storage import save

KNOWN = {
    "Transformer": {"max_seq_length", "do_lower_case"},
    "Pooling": {"word_embedding_dimension", "include_prompt", *POOLING_FLAGS.values()},
    "WeightedLayerPooling": {"word_embedding_dimension", "layer_start", "num_hidden_layers"},
    "Dense": {"in_features", "out_features", "bias", "activation_function"},
    "LayerNorm": {"dimension"},
    "CNN": {"in_word_embedding_dimension", "out_channels", "kernel_sizes", "stride_sizes"},
    "Normalize": set(),
}
"""What the constructors of sentence-transformers 3.4 take, as a folder names it."""

FILES = {"Transformer": "sentence_bert_config.json", "CNN": "cnn_config.json"}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def settings_of(folder):
    """Return the kind and the keys of the settings of every module of a folder."""
    for entry in read(folder / "modules.json"):
        package, kind = entry["type"].rsplit(".", 1)
        assert package == "sentence_transformers.models"
        path = folder / entry["path"] / FILES.get(kind, "config.json")
        yield kind, set(read(path)) if path.is_file() and kind != "StaticEmbedding" else set()


def assert_opens(folder, model, sentences):
    """Check that the folder, opened again, gives the model's vectors, and that old constructors take its keys."""
    expected = encode(model, sentences, precision="float32")
    for reopened in (SentenceTransformer(str(folder), device="cpu"), build(str(folder), device="cpu")):
        np.testing.assert_allclose(encode(reopened.eval(), sentences, precision="float32"), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_only_keys_that_old_constructors_take(tiny_trunk, sentences, tmp_path, seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    trunk = Transformer(str(tiny_trunk))
    body = [trunk]
    if draw.random() < 0.3:
        body.append(CNN(32, 8, [1], [1]))
    width = body[-1].get_embedding_dimension()
    drawn = draw.sample(sorted(POOLING_FLAGS), draw.choice([1, 1, 2, 3]))
    modes = [mode for mode in POOLING_FLAGS if mode in drawn]
    body.append(Pooling(width, modes if len(modes) > 1 else modes[0]))
    width = body[-1].get_embedding_dimension()
    modules = [lambda: Normalize(), lambda: LayerNorm(width), lambda: Dense(width, width, bias=draw.random() < 0.5)]
    body += [draw.choice(modules)() for _ in range(draw.randint(0, 3))]
    model = SentenceTransformer(modules=body, device="cpu").eval()
    folder = save(model, tmp_path / "model")
    for kind, keys in settings_of(folder):
        assert keys <= KNOWN[kind], kind
    assert_opens(folder, model, sentences[:5])


def test_poolings_in_an_order_that_the_older_keys_cannot_say(tiny_trunk, sentences, tmp_path):
    model = SentenceTransformer(modules=[Transformer(str(tiny_trunk)), Pooling(32, ("mean", "cls"))], device="cpu")
    folder = save(model, tmp_path / "model")
    assert read(folder / "1_Pooling" / "config.json")["pooling_mode"] == ["mean", "cls"]
    assert_opens(folder, model, sentences[:5])


def test_settings_that_only_newer_versions_have_stay(tiny_trunk, tmp_path):
    model = SentenceTransformer(
        modules=[
            Transformer(str(tiny_trunk), processing_kwargs={"text": {"add_special_tokens": False}}),
            Pooling(32, "mean"),
            Dense(32, 32, use_residual=True),
        ],
        device="cpu",
    )
    folder = save(model, tmp_path / "model")
    assert read(folder / "sentence_bert_config.json")["processing_kwargs"] == {"text": {"add_special_tokens": False}}
    assert read(folder / "2_Dense" / "config.json")["use_residual"] is True
    assert_opens(folder, model, ["a dog runs"])


def test_static_words_have_a_folder_of_their_own(tiny_trunk, sentences, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny_trunk).backend_tokenizer
    words = StaticEmbedding(tokenizer, embedding_weights=torch.randn(tokenizer.get_vocab_size(), 8))
    model = SentenceTransformer(modules=[words, Normalize()], device="cpu")
    folder = save(model, tmp_path / "model")
    assert [entry["path"] for entry in read(folder / "modules.json")] == ["0_StaticEmbedding", "1_Normalize"]
    assert {path.name for path in (folder / "0_StaticEmbedding").iterdir()} == {"tokenizer.json", "model.safetensors"}
    assert_opens(folder, model, sentences[:5])
    again = save(build(str(folder), device="cpu"), tmp_path / "again")
    assert_opens(again, model, sentences[:5])


def test_routes(tiny_trunk, sentences, tmp_path):
    body = [Transformer(str(tiny_trunk)), Pooling(32, "mean")]
    router = Router.for_query_document([*body, Dense(32, 8)], [Transformer(str(tiny_trunk)), Pooling(32, "cls")])
    model = SentenceTransformer(modules=[router], device="cpu")
    folder = save(model, tmp_path / "model")
    content = read(folder / "router_config.json")
    assert set(content["parameters"]) == {"default_route", "allow_empty_key"}
    for name, kind in content["types"].items():
        assert kind.startswith("sentence_transformers.models.")
        keys = set(read(folder / name / FILES.get(kind.rsplit(".", 1)[1], "config.json")))
        assert keys <= KNOWN[kind.rsplit(".", 1)[1]]
    reopened = SentenceTransformer(str(folder), device="cpu")
    for task in ("query", "document"):
        expected = model.encode(sentences[:5], task=task)
        np.testing.assert_allclose(reopened.encode(sentences[:5], task=task), expected, atol=1e-5)


class Doubled(Normalize):
    """A module of a third party."""


def test_a_class_of_another_package_keeps_its_path(tiny_trunk, tmp_path):
    model = SentenceTransformer(modules=[Transformer(str(tiny_trunk)), Pooling(32), Doubled()], device="cpu")
    folder = save(model, tmp_path / "model")
    assert read(folder / "modules.json")[2]["type"] == f"{__name__}.Doubled"


def test_the_class_of_the_tokenizer_is_one_of_transformers_4(tiny_trunk, tmp_path):
    encoder = build(str(tiny_trunk), device="cpu")
    cross = build_cross(str(tiny_trunk), device="cpu")
    for name, model in (("encoder", encoder), ("cross", cross)):
        model.tokenizer.add_special_tokens({"extra_special_tokens": ["<topic>"]})
        model.tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
        folder = save(model, tmp_path / name)
        content = read(folder / "tokenizer_config.json")
        assert content["tokenizer_class"] == "PreTrainedTokenizerFast"
        assert content["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]
        assert content["additional_special_tokens"] == ["<topic>"]  # transformers 4 fails on a list under the newer key
        assert not {"extra_special_tokens", "is_local", "local_files_only"} & set(content)
        again = AutoTokenizer.from_pretrained(folder)
        pair = ("A dog <topic> runs", "no cat")
        assert again(*pair) == model.tokenizer(*pair)
        assert again.special_tokens_map == model.tokenizer.special_tokens_map
        assert again.extra_special_tokens == ["<topic>"]


def test_a_length_to_which_a_tokenizer_once_cut_is_not_saved(tiny_trunk, tmp_path):
    """all-MiniLM-L6-v2 reads 256 tokens, and its tokenizer.json cuts to 128: fastembed obeyed the shorter length."""
    cutting = shutil.copytree(tiny_trunk, tmp_path / "cutting")
    content = read(cutting / "tokenizer.json")
    content["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    (cutting / "tokenizer.json").write_text(json.dumps(content))
    model = build(str(cutting), max_seq_length=16, device="cpu")
    settings = read(save(model, tmp_path / "model") / "tokenizer_config.json")
    assert settings["model_max_length"] == 16
    assert "max_length" not in settings


SMALL = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
SCALED = {"rope_type": "linear", "factor": 4.0}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {"rope_theta": 5e5, "rope_scaling": SCALED}),
        ("qwen2", {"rope_theta": 1e6}),
        ("stablelm", {"rope_theta": 2e4, "partial_rotary_factor": 0.5}),
        ("gpt_neox", {"rotary_emb_base": 5e4, "rotary_pct": 0.5}),
        ("modernbert", {"global_rope_theta": 3e5, "local_rope_theta": 5e3, "cls_token_id": 2, "sep_token_id": 3}),
        ("gemma3_text", {"rope_theta": 3e6, "rope_local_base_freq": 2e4, "head_dim": 8, "rope_scaling": SCALED}),
    ],
)
def test_rotations_of_positions_are_said_as_transformers_4_reads_them(tiny_trunk, tmp_path, kind, settings):
    trunk = tmp_path / "trunk"
    AutoModel.from_config(AutoConfig.for_model(kind, **SMALL, **deepcopy(settings))).save_pretrained(trunk)
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(trunk)
    model = build(str(trunk), device="cpu")
    folder = save(model, tmp_path / "model")
    content = read(folder / "config.json")
    assert {key: content[key] for key in settings} == settings
    config = AutoConfig.from_pretrained(folder)
    assert config.rope_parameters == model[0].model.config.rope_parameters
    assert_opens(folder, model, ["a dog runs by the river"])


def test_a_rotation_that_transformers_4_cannot_be_told_is_said(tiny_trunk, tmp_path, caplog):
    from samesense.encoder.saving.portable import make_portable

    model = build(str(tiny_trunk), device="cpu")
    folder = tmp_path / "model"
    model.save(str(folder), create_model_card=False)
    layers = {"full_attention": {"rope_theta": 1.0}, "sliding_attention": {"rope_theta": 2.0}}
    content = read(folder / "config.json") | {"model_type": "brandnew", "rope_parameters": layers}
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    make_portable(model, folder)
    assert "transformers before 5 cannot be told how a model of type brandnew rotates positions" in caplog.text


@pytest.mark.parametrize("activation", [torch.nn.Identity(), torch.nn.Sigmoid()])
def test_old_readers_of_a_cross_encoder_are_told_how_a_logit_becomes_a_score(tiny_trunk, tmp_path, activation):
    model = build_cross(str(tiny_trunk), device="cpu")
    model.activation_fn = activation
    folder = save(model, tmp_path / "model")
    content = read(folder / "config.json")
    name = f"torch.nn.modules.{'linear' if isinstance(activation, torch.nn.Identity) else 'activation'}"
    assert content["sbert_ce_default_activation_function"] == f"{name}.{type(activation).__name__}"
    assert content["sentence_transformers"] == {"activation_fn": f"{name}.{type(activation).__name__}"}
    pairs = [("a dog", "no dog"), ("rain", "rain")]
    reopened = CrossEncoder(str(folder), device="cpu")
    assert type(reopened.activation_fn) is type(activation)
    np.testing.assert_allclose(reopened.predict(pairs), model.predict(pairs), atol=1e-6)
