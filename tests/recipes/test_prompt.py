"""A prompt is applied alike in training and in use, and is saved beside the model's others."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

import samesense
from samesense.encoder.assembly.build import build, set_prompt
from samesense.encoder.encode import encode
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError
from samesense.training.texts import TrainingTexts
from tests.command import run_command


@pytest.fixture
def own(tiny, tmp_path):
    tiny.prompts = {"query": "the dog ", "document": ""}
    return str(save(tiny, tmp_path / "own"))


def trained(model, pairs, output, **settings):
    return samesense.train(
        str(pairs / "train.tsv"),
        dev="none",
        test=str(pairs / "test.tsv"),
        model=str(model),
        max_steps=2,
        precision="float32",
        output=output,
        **settings,
    )


def test_training_and_encoding_read_it(tiny, sentences):
    plain = encode(tiny, [f"a red {text}" for text in sentences], precision="float32")
    expected = tiny.preprocess([f"a red {text}" for text in sentences])
    set_prompt(tiny, "a red ")
    np.testing.assert_allclose(encode(tiny, sentences, precision="float32"), plain, atol=1e-5)
    assert torch.equal(TrainingTexts(tiny)(sentences)["input_ids"], expected["input_ids"])


def test_a_text_of_its_own_is_saved_as_the_default_and_used_by_every_reader(own, toy_pairs, sentences, tmp_path):
    run = trained(own, toy_pairs, tmp_path / "run", prompt="a red ")
    config = json.loads((run.model / "config_sentence_transformers.json").read_text())
    assert config["prompts"] == {"query": "the dog ", "document": "", "default": "a red "}
    assert config["default_prompt_name"] == "default"
    plain = SentenceTransformer(str(run.model), device="cpu")
    ours = samesense.load(run.model, precision="float32")
    np.testing.assert_allclose(ours.encode(sentences), plain.encode(sentences), atol=1e-5)
    assert not np.allclose(plain.encode(sentences), plain.encode(sentences, prompt=""))
    assert all("prompt 'a red '" in row.protocol for row in run.results)


def test_one_of_the_models_own_by_its_name(own, toy_pairs, tmp_path):
    run = trained(own, toy_pairs, tmp_path / "run", prompt="query")
    config = json.loads((run.model / "config_sentence_transformers.json").read_text())
    assert (config["prompts"]["query"], config["default_prompt_name"]) == ("the dog ", "query")
    model = build(own, device="cpu")
    with pytest.raises(ConfigError, match=r"^The model has no text for its prompt 'document'\. Give the text itself"):
        set_prompt(model, "document")
    set_prompt(model, "query")
    set_prompt(model, "")
    assert model.default_prompt_name is None


def test_a_student_and_a_cross_encoder_too(tiny_trunk, toy_pairs, sentences, tmp_path):
    student = samesense.distil(
        sentences,
        teacher=str(tiny_trunk),
        student="layers:1",
        max_steps=1,
        prompt="a red ",
        precision="float32",
        output=tmp_path / "student",
    )
    assert build(str(student.model), device="cpu").prompts["default"] == "a red "
    cross = trained(tiny_trunk, toy_pairs, tmp_path / "cross", encoder="cross", prompt="a red ")
    plain = CrossEncoder(str(cross.model), device="cpu")
    pairs = [("a dog eats", "a cat sleeps"), ("one bird", "two fish")]
    ours = samesense.load(cross.model, precision="float32").scores(pairs)
    assert plain.prompts["default"] == "a red "
    np.testing.assert_allclose(ours, plain.predict(pairs), atol=1e-5)
    assert not np.allclose(ours, plain.predict(pairs, prompt=""), atol=1e-7)


def test_it_is_chosen_where_texts_are_encoded(own, sentences, tmp_path, capsys):
    plain = SentenceTransformer(own, device="cpu")
    named_prompt = plain.encode(sentences, prompt="the dog ")
    text = plain.encode(sentences, prompt="a red ")
    np.testing.assert_allclose(
        samesense.load(own, prompt="query", precision="float32").encode(sentences), named_prompt, atol=1e-5
    )
    np.testing.assert_allclose(samesense.encode(own, sentences, prompt="a red ", precision="float32"), text, atol=1e-5)
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(sentences) + "\n")
    options = ("--prompt", "query", "--precision", "float32", "--output")
    assert run_command(capsys, "encode", own, lines, *options, tmp_path / "rows.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), named_prompt, atol=1e-5)
    with pytest.raises(ConfigError, match="A model in memory keeps its prompt"):
        samesense.load(plain, prompt="query")
    with pytest.raises(ConfigError, match="Backend, pooling and prompt are chosen for models"):
        samesense.load("vectors:x.npy", prompt="query")
