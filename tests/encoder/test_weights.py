"""Weights that do not fit their configuration are refused by name, or read without a wrapper's prefix."""

import json
import logging
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertForSequenceClassification

from samesense.context.generator.language_models import open_language_model
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import load_cross_encoder
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError
from samesense.inference.models.load import load
from samesense.inference.onnx.export import export
from samesense.training.masked_lm import open_masked_lm
from tests.context.worlds import small_causal

TEXTS = ["a dog runs", "the man reads a book at night"]


def rewritten(source, folder, change, file="model.safetensors"):
    """Copy a folder and apply ``change`` to its weights."""
    shutil.copytree(source, folder)
    weights = change(load_file(folder / file))
    save_file({name: weight.clone() for name, weight in weights.items()}, folder / file, {"format": "pt"})
    return str(folder)


def under(prefix):
    return lambda weights: {f"{prefix}{name}": weight for name, weight in weights.items()}


def without(fragment):
    return lambda weights: {name: weight for name, weight in weights.items() if fragment not in name}


def messages(caplog):
    return [record.message for record in caplog.records if record.name.startswith("samesense")]


@pytest.fixture(scope="module")
def whole(tiny_trunk, tmp_path_factory):
    """A saved bi-encoder with a dense layer."""
    model = build(str(tiny_trunk), device="cpu")
    torch.manual_seed(0)
    model.append(Dense(32, 8))
    return save(model, tmp_path_factory.mktemp("weights") / "whole")


@pytest.fixture(scope="module")
def classifier(tiny_trunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights") / "classifier"
    torch.manual_seed(0)
    BertForSequenceClassification(BertConfig.from_pretrained(tiny_trunk, num_labels=1)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def masked(tiny_trunk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights") / "masked"
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig.from_pretrained(tiny_trunk)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "encoder_model.", "0.auto_model.", "module._orig_mod.bert."]
)
@pytest.mark.parametrize("kind", ["whole", "tiny_trunk"])
def test_one_name_before_all_weights_is_left_out_and_said_once(request, tmp_path, caplog, prefix, kind):
    source = request.getfixturevalue(kind)
    folder = rewritten(source, tmp_path / "m", under(prefix))
    with caplog.at_level(logging.WARNING):
        vectors = load(folder, device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(vectors, load(str(source), device="cpu").encode(TEXTS))
    (message,) = messages(caplog)
    assert "begin with" in message
    assert prefix.removesuffix("bert.") in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("layer.1."), r"16 of 55 are missing: encoder\.layer\.1\.attention"),
        (without("embeddings.LayerNorm"), r"2 of 55 are missing: embeddings\.LayerNorm\.bias, embeddings\.LayerNorm"),
        (without("position_embeddings"), r"1 of 55 are missing: embeddings\.position_embeddings\.weight"),
        (lambda old: under("x.")(without("layer.1.")(old)) | {"y.z": torch.ones(1)}, r"missing.*; 40 are unexpected"),
        (
            lambda old: old | {name.replace("layer.2", "layer.3"): old[name] for name in old if "layer.2" in name},
            r"16 are unexpected: encoder\.layer\.3\.attention",
        ),
        (
            lambda old: {key: weight[..., :16] for key, weight in old.items()},
            r"have another shape: .* \(64×16 in the file",
        ),
        (lambda old: old | {"embeddings.word_embeddings.weight": torch.ones(4, 32)}, r"1 have another shape.*4×32"),
    ],
)
@pytest.mark.parametrize("opening", [load, build_cross, open_masked_lm, export], ids=lambda function: function.__name__)
def test_weights_that_do_not_fit_are_named(whole, tiny_trunk, tmp_path, change, words, opening):
    bare = opening in (build_cross, open_masked_lm)
    folder = rewritten(tiny_trunk if bare else whole, tmp_path / "m", change)
    with pytest.raises(ModelError, match=r"The weights in .* must be those that its config\.json describes") as error:
        opening(folder, tmp_path / "out") if opening is export else opening(folder)
    if opening is load:
        error.match(words)


def test_a_pooler_that_no_one_reads_may_be_missing(whole, tmp_path, caplog):
    folder = rewritten(whole, tmp_path / "m", without("pooler"))
    with caplog.at_level(logging.INFO):
        vectors = load(folder, device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(vectors, load(str(whole), device="cpu").encode(TEXTS))
    assert not messages(caplog)


@pytest.mark.parametrize("fragment", ["classifier", "pooler", "layer.0"])
def test_a_cross_encoder_without_its_head_is_refused(classifier, tmp_path, fragment):
    load_cross_encoder(str(classifier), device="cpu")
    folder = rewritten(classifier, tmp_path / "m", without(fragment))
    with pytest.raises(ModelError, match=f"are missing: .*{fragment}"):
        load(folder, device="cpu")


def test_a_new_head_is_told(tiny_trunk, classifier, caplog):
    with caplog.at_level(logging.INFO):
        build_cross(str(classifier), device="cpu")
    assert not messages(caplog)
    with caplog.at_level(logging.INFO):
        build_cross(str(tiny_trunk), device="cpu")
    new = "classifier.bias, classifier.weight"
    expected = f"{tiny_trunk} has no head that gives one score: {new} are new and start at random."
    assert messages(caplog) == [expected]


def test_heads_of_masked_language_models_may_be_new_and_trunks_may_not(masked, tiny_trunk, tmp_path):
    assert open_masked_lm(str(masked))[1] is False
    assert open_masked_lm(str(tiny_trunk))[1] is True
    assert open_masked_lm(str(masked), layers=2)[1] is False
    assert open_masked_lm(rewritten(masked, tmp_path / "headless", without("cls.")))[1] is True
    with pytest.raises(ModelError, match="are missing: "):
        open_masked_lm(rewritten(masked, tmp_path / "m", without("layer.1.")))


def test_language_models_need_all_weights(tmp_path):
    model = small_causal(tmp_path / "causal")
    open_language_model(str(model))
    with pytest.raises(ModelError, match="are missing: "):
        open_language_model(rewritten(model, tmp_path / "m", without(".0.")))


@pytest.mark.parametrize("change", [without("bias"), under("module."), lambda old: old | {"more": torch.ones(1)}])
def test_a_dense_layer_whose_weights_do_not_fit_is_refused(whole, tmp_path, change):
    folder = rewritten(whole, tmp_path / "m", change, "2_Dense/model.safetensors")
    with pytest.raises(ModelError, match=r"(Missing|Unexpected) key\(s\).*(linear|more)"):
        load(folder, device="cpu")


def test_shards_and_pickled_weights_are_checked_too(tiny_trunk, tmp_path):
    model = SentenceTransformer(str(tiny_trunk), device="cpu")[0].model
    expected = load(str(tiny_trunk), device="cpu").encode(TEXTS)
    for name, change in (("sharded", without("none")), ("lacking", without("layer.1.")), ("wrapped", under("module."))):
        folder = tmp_path / name
        shutil.copytree(tiny_trunk, folder)
        (folder / "model.safetensors").unlink()
        weights = change(model.state_dict())
        names = sorted(weights)
        files = {"model-1.safetensors": names[:20], "model-2.safetensors": names[20:]}
        for file, keys in files.items():
            save_file({key: weights[key].clone() for key in keys}, folder / file, {"format": "pt"})
        index = {"metadata": {}, "weight_map": {key: file for file, keys in files.items() for key in keys}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        pickled = tmp_path / f"{name}-bin"
        shutil.copytree(tiny_trunk, pickled)
        (pickled / "model.safetensors").unlink()
        torch.save(weights, pickled / "pytorch_model.bin")
        for source in (folder, pickled):
            if name == "lacking":
                with pytest.raises(ModelError, match=r"16 of 55 are missing: encoder\.layer\.1"):
                    load(str(source), device="cpu")
            else:
                np.testing.assert_array_equal(load(str(source), device="cpu").encode(TEXTS), expected)


def test_adapters_that_do_not_fit_are_refused(tiny_trunk, tmp_path):
    peft = pytest.importorskip("peft")
    model = SentenceTransformer(str(tiny_trunk), device="cpu")
    torch.manual_seed(0)
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    model[0].model.add_adapter(config)
    model[0].model.peft_config["default"].base_model_name_or_path = str(tiny_trunk)
    model.save(str(tmp_path / "lora"))
    expected = load(str(tmp_path / "lora"), device="cpu").encode(TEXTS)
    assert np.abs(expected - load(str(tiny_trunk), device="cpu").encode(TEXTS)).max() > 1e-3
    file = "adapter_model.safetensors"
    wrapped = rewritten(tmp_path / "lora", tmp_path / "wrapped", under("module."), file)
    np.testing.assert_allclose(load(wrapped, device="cpu").encode(TEXTS), expected, atol=1e-6)
    for name, change in (
        ("lacking", without("layer.1.")),
        ("deeper", lambda old: old | {key.replace("layer.0", "layer.9"): weight for key, weight in old.items()}),
        ("other", lambda old: {f"other.{index}": weight for index, weight in enumerate(old.values())}),
        ("wider", lambda old: {key: torch.cat([weight, weight]) for key, weight in old.items()}),
    ):
        with pytest.raises(ModelError, match="The weights in"):
            load(rewritten(tmp_path / "lora", tmp_path / name, change, file), device="cpu")


def test_masks_and_numbers_of_positions_in_old_files_are_no_weights(tiny_trunk, tmp_path, caplog):
    old = {
        "embeddings.position_ids": torch.arange(64)[None],
        "encoder.version": torch.tensor([3.0]),
        "encoder.layer.0.attention.self.bias": torch.ones(1, 1, 64, 64),
    }
    folder = rewritten(tiny_trunk, tmp_path / "m", lambda weights: weights | old)
    expected = load(str(tiny_trunk), device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(load(folder, device="cpu").encode(TEXTS), expected)
    assert not messages(caplog)


def test_weights_that_are_not_read_are_told_or_refused(tiny_trunk, tmp_path, caplog):
    additional = {"encoder.rel_pos.weight": torch.ones(3, 3)}
    load(rewritten(tiny_trunk, tmp_path / "m", lambda weights: weights | additional), device="cpu")
    (message,) = messages(caplog)
    assert "are not read" in message
    assert "encoder.rel_pos.weight" in message
    llama = small_causal(tmp_path / "causal")
    with pytest.raises(ModelError, match="unexpected"):
        biased = {"model.layers.0.self_attn.q_proj.bias": torch.ones(16)}
        open_language_model(rewritten(llama, tmp_path / "biased", lambda weights: weights | biased))
