"""What every pooling must obey: the definition, independence of padding and neighbours, a portable folder."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer, LlamaConfig, LlamaModel

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.pooling import POOLINGS, describe_pooling
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError

CASES = [*((name, "layer") for name in POOLINGS), ("first-last", "embeddings")]


def by_definition(folder, text, pooling, first):
    """One text alone through bare transformers, pooled as the table in pooling.py says."""
    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.inference_mode():
        states = AutoModel.from_pretrained(folder).eval()(**tokens, output_hidden_states=True).hidden_states
    layers = {
        "mean": [states[-1]],
        "cls": [states[-1]],
        "max": [states[-1]],
        "lasttoken": [states[-1]],
        "first-last": [states[1 if first == "layer" else 0], states[-1]],
        "last-2": [states[-2], states[-1]],
    }[pooling]
    tokens_vectors = (sum(layers) / len(layers))[0].double()
    if pooling in ("cls", "lasttoken"):
        return tokens_vectors[0 if pooling == "cls" else -1].numpy()
    return (tokens_vectors.max(dim=0).values if pooling == "max" else tokens_vectors.mean(dim=0)).numpy()


@pytest.mark.parametrize(("pooling", "first"), CASES)
def test_definition(tiny_trunk, sentences, pooling, first):
    model = build(str(tiny_trunk), pooling=pooling, first=first, device="cpu")
    vectors = encode(model, sentences[:6], precision="float32")
    expected = [by_definition(tiny_trunk, text, pooling, first) for text in sentences[:6]]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(("pooling", "first"), CASES)
def test_padding_neighbours_and_order_do_not_matter(tiny_trunk, sentences, pooling, first):
    model = build(str(tiny_trunk), pooling=pooling, first=first, device="cpu")
    alone = np.concatenate([encode(model, [text], precision="float32") for text in sentences])
    together = encode(model, sentences, precision="float32", batch_tokens=10**6)
    backwards = encode(model, sentences[::-1], precision="float32", batch_tokens=15)[::-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(backwards, alone, atol=1e-5)
    padded = model.preprocess(sentences[:3])
    extra = {"input_ids": 0, "attention_mask": 0, "token_type_ids": 0}
    padded.update({k: torch.nn.functional.pad(padded[k], (0, 9), value=v) for k, v in extra.items() if k in padded})
    with torch.inference_mode():
        np.testing.assert_allclose(model.eval()(padded)["sentence_embedding"].numpy(), alone[:3], atol=1e-5)


@pytest.mark.parametrize(("pooling", "first"), CASES)
def test_saved_folder_opens_everywhere(tiny_trunk, sentences, tmp_path, pooling, first):
    model = build(str(tiny_trunk), pooling=pooling, first=first, max_seq_length=48, device="cpu")
    folder = save(model, tmp_path / "model")
    plain = SentenceTransformer(str(folder), device="cpu")  # no trust_remote_code
    expected = encode(model, sentences, precision="float32")
    np.testing.assert_allclose(plain.encode(sentences), expected, atol=1e-5)
    again = build(str(folder), device="cpu")
    np.testing.assert_array_equal(encode(again, sentences, precision="float32"), expected)
    assert describe_pooling(again) == (pooling if first == "layer" else "first-last (first = embeddings)")
    assert plain.max_seq_length == 48
    modules = json.loads((folder / "modules.json").read_text())
    assert all(entry["type"].startswith("sentence_transformers.models.") for entry in modules)
    keys = json.loads(
        (folder / next(m["path"] for m in modules if m["type"].endswith(".Pooling")) / "config.json").read_text()
    )
    mode = pooling if pooling in ("mean", "cls", "max", "lasttoken") else "mean"
    assert keys["word_embedding_dimension"] == 32
    assert "pooling_mode" not in keys  # versions before 5.4 stop at a key that they do not know
    assert [name for name in keys if name.startswith("pooling_mode_") and keys[name]] == [
        {
            "mean": "pooling_mode_mean_tokens",
            "cls": "pooling_mode_cls_token",
            "max": "pooling_mode_max_tokens",
            "lasttoken": "pooling_mode_lasttoken",
        }[mode]
    ]
    settings = json.loads((folder / "sentence_bert_config.json").read_text())
    assert settings == {"max_seq_length": 48, "do_lower_case": False}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_of_a_language_model_on_either_side_of_the_padding(tiny_trunk, sentences, tmp_path, side):
    AutoTokenizer.from_pretrained(tiny_trunk, padding_side=side).save_pretrained(tmp_path)
    config = LlamaConfig(
        vocab_size=100,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    LlamaModel(config).save_pretrained(tmp_path)
    model = build(str(tmp_path), pooling="lasttoken", device="cpu")
    assert model.tokenizer.padding_side == side
    expected = [by_definition(tmp_path, text, "lasttoken", "layer") for text in sentences[:9]]
    np.testing.assert_allclose(encode(model, sentences[:9], precision="float32"), expected, atol=1e-5)


def test_layer_weights_stay_as_they_are(tiny_trunk, tmp_path):
    folder = save(build(str(tiny_trunk), pooling="first-last", device="cpu"), tmp_path / "model")
    trainable = [name for name, p in build(str(folder), device="cpu").named_parameters() if p.requires_grad]
    assert trainable
    assert not any("layer_weights" in name for name in trainable)


def test_changing_the_pooling_of_a_saved_model(tiny_trunk, sentences, tmp_path):
    folder = save(build(str(tiny_trunk), pooling="first-last", device="cpu"), tmp_path / "model")
    changed = build(str(folder), pooling="cls", device="cpu")
    fresh = build(str(tiny_trunk), pooling="cls", device="cpu")
    np.testing.assert_array_equal(encode(changed, sentences), encode(fresh, sentences))


def test_one_layer_has_one_first_and_last(tiny_trunk):
    from samesense.encoder.assembly.pooling import layer_weights

    assert layer_weights(1, "first-last", "layer") == [1.0]
    assert layer_weights(1, "first-last", "embeddings") == [1.0, 1.0]
    assert layer_weights(3, "first-last", "layer") == [1.0, 0.0, 1.0]


def test_misuse(tiny_trunk):
    with pytest.raises(ConfigError) as error:
        build(str(tiny_trunk), pooling="average", device="cpu")
    assert (
        str(error.value) == "pooling must be one of mean, cls, max, lasttoken, first-last, last-2; received 'average'."
    )
    with pytest.raises(ConfigError) as error:
        build(str(tiny_trunk), pooling="cls", first="embeddings", device="cpu")
    assert str(error.value) == "first='embeddings' goes with pooling 'first-last' only; received pooling 'cls'."
