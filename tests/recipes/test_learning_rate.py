"""The default learning rate: the method's own, unless the start is smaller than what that was chosen for."""

import json
import shutil
from pathlib import Path

import pytest

from samesense.recipes.planning.plan import plan
from tests.messages import listen

PAIRS = 128  # 8 batches of 16


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = (f"a {index} one\tb {index} other\t{index % 5}\n" for index in range(PAIRS))
    path.write_text("sentence1\tsentence2\tscore\n" + "".join(rows), encoding="utf-8")
    return str(path)


def nli(folder):
    path = folder / "nli.tsv"
    labels = ("contradiction", "neutral", "entailment")
    rows = (f"a {index} one\tb {index} other\t{labels[index % 3]}\n" for index in range(PAIRS))
    path.write_text("premise\thypothesis\tlabel\n" + "".join(rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def static(tmp_path):
    path = tmp_path / "static"
    path.mkdir()
    kind = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
    (path / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    return str(path)


def made(folder, name, width, layers=6):
    path = folder / name
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"hidden_size": width, "num_hidden_layers": layers}))
    return str(path)


def rate(data, model, *, config="auto", method="auto", **settings):
    lines = listen()
    planned = plan(data, dev="none", config=config, method=method, settings={"model": model, **settings})
    learning_rate = planned.settings.learning_rate
    steps = planned.settings.steps(PAIRS)
    small = "2e-05 is for models larger than one with a hidden size of 384"
    why = {
        1e-4: f"learning rate 0.0001: {small}",
        5e-5: f"learning rate 5e-05: {small} and 12 layers",
        1e-2: "learning rate 0.01: the start has static token vectors, no transformer",
    }
    if steps > 1500:
        why[5e-5] = f"learning rate 5e-05: {small}, and {steps} steps are many for a higher one"
    if "wide" in Path(model).name:
        why = {value: f"learning rate {value:g}: 2e-05 is for more than {steps} steps" for value in (5e-5, 1e-4)}
    messages = [line for line in lines if "learning rate" in line]
    assert messages == ([f"{why[learning_rate]}; `learning_rate` overrides"] if learning_rate in why else [])
    return learning_rate


def test_a_small_transformer_takes_larger_ones(data, tmp_path):
    small = made(tmp_path, "small", 384)
    deep = made(tmp_path, "deep", 384, layers=12)
    assert rate(data, small) == 1e-4
    assert rate(data, deep) == 1e-4
    assert rate(data, deep, epochs=25) == 5e-5  # 200 steps
    assert rate(data, deep, epochs=70) == 5e-5
    assert rate(nli(tmp_path), deep, epochs=25) == 1e-4
    assert rate(data, small, epochs=187) == 1e-4  # 1,496 steps of 16 pairs
    assert rate(data, small, epochs=190) == 5e-5
    assert rate(data, small, epochs=190, max_steps=100) == 1e-4
    assert rate(data, small, batch_size=1, epochs=12) == 5e-5


def test_one_of_base_size_takes_larger_ones_in_few_steps(data, tmp_path):
    wide = made(tmp_path, "wide", 768, layers=12)
    assert rate(data, wide) == 1e-4
    assert rate(data, wide, epochs=30) == 1e-4  # 240 steps
    assert rate(data, wide, epochs=40) == 5e-5
    assert rate(data, wide, epochs=190) == 2e-5
    assert rate(data, wide, encoder="cross") == 2e-5
    assert rate(data, made(tmp_path, "large", 1024)) == 2e-5


def test_a_width_of_another_name_counts(data, tmp_path):
    distilbert = tmp_path / "wide"
    distilbert.mkdir()
    (distilbert / "config.json").write_text(json.dumps({"dim": 768, "n_layers": 6}))
    assert rate(data, str(distilbert)) == 1e-4


def test_a_small_cross_encoder_takes_the_higher_rate_of_any_number_of_layers(data, tmp_path):
    for layers in (6, 12):
        start = made(tmp_path, f"layers-{layers}", 384, layers)
        for steps in (30, 250):
            assert rate(data, start, encoder="cross", max_steps=steps) == 1e-4


def test_what_is_given_counts_and_a_named_file_is_that_of_the_paper(data, tmp_path):
    small = made(tmp_path, "small", 384)
    assert rate(data, small, learning_rate=3e-5) == 3e-5
    assert rate(data, small, config="cosent") == 2e-5
    config_file = tmp_path / "own.toml"
    config_file.write_text("learning_rate = 4e-5\n")
    assert rate(data, small, config=str(config_file)) == 4e-5
    config_file.write_text("epochs = 2.0\n")
    assert rate(data, small, config=str(config_file)) == 1e-4


def test_vectors_of_tokens_take_a_rate_of_their_own(data, tmp_path, static):
    assert rate(data, static) == 1e-2
    assert rate(data, static, epochs=700) == 1e-2


def test_settings_of_a_model_of_the_hub_are_loaded_first(data, tmp_path, monkeypatch):
    """So that the first run, the next one and one that is resumed have the same rate."""
    small = Path(made(tmp_path, "small", 384))
    requests = []

    def download(name, allow_patterns):
        requests.append((name, allow_patterns))
        return str(small)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert rate(data, "owner/name") == 1e-4
    assert requests == [("owner/name", ["modules.json", "config.json", "*/config.json"])]


def test_a_model_that_cannot_be_read_says_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert rate(data, "owner/not-here") == 2e-5
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "modules.json").write_text("{")
    assert rate(data, str(broken)) == 2e-5
    shutil.rmtree(broken)
    assert rate(data, str(broken)) == 2e-5


def test_few_examples_are_trained_on_for_thirty_steps(tmp_path):
    """Unless the user or a file settles it."""
    classes = tmp_path / "classes.tsv"
    classes.write_text("text\tlabel\n" + "".join(f"a {i} one\t{'xy'[i % 2]}\n" for i in range(64)), encoding="utf-8")
    steps = {}
    for name, options in {
        "alone": {},
        "epochs": {"settings": {"epochs": 2}},
        "steps": {"settings": {"max_steps": 5}},
        "file": {"config": "supmpn-ragged"},
    }.items():
        planned = plan(str(classes), **options)
        steps[name] = planned.settings.steps(planned.settings.examples(planned.train))
    assert steps == {"alone": 30, "epochs": 2, "steps": 5, "file": 3}
    messages = listen()
    plan(str(classes))
    assert "30 steps: 3 epochs of so few examples would be 3; `epochs` overrides" in messages
