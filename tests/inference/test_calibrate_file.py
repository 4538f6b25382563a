import json
import shutil

import numpy as np
import pytest

import samesense
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError, OutputError
from samesense.inference.calibration.fit import CalibrationSettings, calibrate
from samesense.inference.calibration.storage import FILE, home_of, read, store
from tests.inference.made_labelled import binary, graded, labelled, reader


@pytest.fixture
def folder(tiny, tmp_path):
    return save(tiny, tmp_path / "model")


def fitted(home, **settings):
    return calibrate(reader(), labelled(*graded()), home.fingerprint(), CalibrationSettings(**settings)).calibration


MODULES = json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])


def made_folder(folder):
    """Files that look like a model, for tests that never open one."""
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text(MODULES)
    (folder / "weights.bin").write_bytes(b"1234")
    return folder


def test_a_calibration_never_becomes_part_of_its_model(tmp_path):
    home = home_of(str(made_folder(tmp_path / "m")))
    assert home.place(None) == home.file
    for fine in (tmp_path / "strict.json", home.folder / "notes" / FILE, home.folder / ".strict.json"):
        store(fitted(home), home.place(fine))
        read(home, fine)
    for wrong in (home.folder / "strict.json", tmp_path / "m" / ".." / "m" / "sub" / "strict.json"):
        with pytest.raises(ConfigError, match="counts as part of the model"):
            home.place(wrong)


@pytest.mark.parametrize("settings", [{"yes": 3}, {"shape": "logistic"}])
def test_what_is_read_is_what_was_stored(tmp_path, settings):
    home = home_of(str(made_folder(tmp_path / "m")))
    calibration = fitted(home, **settings)
    store(calibration, home.file)
    assert read(home) == calibration
    assert sorted(path.name for path in home.folder.iterdir()) == [FILE, "modules.json", "weights.bin"]
    scores = np.linspace(-2, 2, 99)
    assert (read(home).apply(scores) == calibration.apply(scores)).all()


def test_other_weights_or_settings_are_refused_and_notes_are_not(tmp_path):
    home = home_of(str(made_folder(tmp_path / "m")))
    store(fitted(home), home.file)
    (home.folder / "README.md").write_text("notes")
    (home.folder / "calibration.png").write_bytes(b"a figure")
    (home.folder / ".cache").mkdir()
    (home.folder / ".cache" / "x").write_text("hidden")
    read(home)
    shutil.copytree(home.folder, tmp_path / "moved")
    read(home_of(str(tmp_path / "moved")))
    for name, content in (("weights.bin", "1235"), ("modules.json", f"{MODULES} "), ("added.json", "{}")):
        before = (home.folder / name).read_bytes() if (home.folder / name).exists() else None
        (home.folder / name).write_text(content)
        with pytest.raises(ModelError, match=r"other weights or settings.*Calibrate again: samesense calibrate"):
            read(home)
        if before is None:
            (home.folder / name).unlink()
        else:
            (home.folder / name).write_bytes(before)
        read(home)
    (home.folder / "weights.bin").rename(home.folder / "renamed.bin")
    with pytest.raises(ModelError, match="other weights"):
        read(home)


def test_half_a_file_is_never_read(tmp_path):
    home = home_of(str(made_folder(tmp_path / "m")))
    store(fitted(home), home.file)
    whole = home.file.read_text()
    for length in range(0, len(whole) - 2, max(1, len(whole) // 60)):
        home.file.write_text(whole[:length])
        with pytest.raises(ModelError, match="Calibrate again"):
            read(home)


def test_a_writer_killed_midway_leaves_the_old_one(tmp_path, monkeypatch):
    home = home_of(str(made_folder(tmp_path / "m")))
    first = fitted(home)
    store(first, home.file)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pathlib.Path.replace", lambda self, target: (_ for _ in ()).throw(KeyboardInterrupt))
        store(fitted(home, yes=3), home.file)
    assert read(home) == first


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2),
        ("map.isotonic", {"kind": "isotonic", "scores": [1, 0], "values": [0, 1]}),
        ("map.isotonic", {"kind": "isotonic", "scores": [0, 1], "values": [1, 0]}),
        ("map.isotonic.scores.1", {"kind": "isotonic", "scores": [0, float("nan")], "values": [0, 1]}),
        ("map.logistic.slope", {"kind": "logistic", "slope": "steep", "intercept": 0, "low": 0, "high": 5}),
        ("map", {"kind": "cubic"}),
        ("map", None),
        ("scale", [5, 0]),
        ("scale.1", [0, float("nan")]),
        ("scale.1", [0, float("inf")]),
        ("scale", [0]),
        ("thresholds.auc", {"auc": 0.5}),
        ("thresholds.f1", {"f1": float("nan"), "accuracy": 0.5}),
        ("thresholds.f1", {"f1": True, "accuracy": 0.5}),
        ("thresholds", {"f1": 0.5}),
        ("thresholds", {}),
        ("decide", "best"),
        ("decide", "recall"),
        ("yes", "3"),
        ("precisions", [[0.9, 0.5], [0.8, 0.4]]),
        ("precisions.0", [[0.9]]),
        ("fingerprint", None),
        ("errors.ece", {"ece": float("nan")}),
        ("n", -1),
        ("folds", 1000),
        ("note", "a key of another version"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, key, value):
    home = home_of(str(made_folder(tmp_path / "m")))
    store(fitted(home, yes=3), home.file)
    change = {key.split(".")[0]: value}
    home.file.write_text(json.dumps(json.loads(home.file.read_text()) | change))
    with pytest.raises(ModelError, match="Calibrate again") as refused:
        read(home)
    assert str(home.file) in str(refused.value) and f"`{key}" in str(refused.value)


def test_a_map_that_leaves_the_scale_is_refused(tmp_path):
    home = home_of(str(made_folder(tmp_path / "m")))
    store(fitted(home, yes=3), home.file)
    home.file.write_text(json.dumps(json.loads(home.file.read_text()) | {"scale": [0, 1]}))
    with pytest.raises(ModelError, match="`map` must lead to the `scale`"):
        read(home)


def test_none_is_said_to_be_none(tmp_path):
    home = home_of(str(made_folder(tmp_path / "m")))
    with pytest.raises(ModelError, match=r"has no calibration: there is no .*calibration.json. Fit one"):
        read(home)
    with pytest.raises(OutputError, match="cannot be written"):
        store(fitted(home), home.folder / "weights.bin" / FILE)


def test_homes(tmp_path, monkeypatch, tiny_trunk):
    run = tmp_path / "run"
    made_folder(run / "model")
    assert home_of(str(run)).file == run / "model" / FILE
    assert home_of("origin:some/where").file.as_posix() == "some/where/calibration.json"
    assert home_of(str(tiny_trunk)).folder == tiny_trunk
    for name in ("python:module:function", "vectors:file.npy", "words:glove.txt", "owner/name+whiten"):
        with pytest.raises(ConfigError, match="belongs to the files of one model"):
            home_of(name)
    with pytest.raises(ModelError, match="There is no model folder"):
        home_of("./nothing/here")
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: tiny_trunk)
    default = home_of("default")
    assert default.folder == tiny_trunk
    with pytest.raises(ConfigError, match="`output` with calibrate, `calibration` where it is used"):
        _ = default.file
    store(fitted(default), tmp_path / "own.json")
    assert read(default, tmp_path / "own.json").n == 600


def test_a_model_of_the_hub_is_told_by_its_commit(tmp_path, monkeypatch):
    home = home_of("owner/name")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="'owner/name' is not on this machine yet"):
        home.fingerprint()
    commit = "5" * 40
    (tmp_path / "models--owner--name" / "refs").mkdir(parents=True)
    (tmp_path / "models--owner--name" / "refs" / "main").write_text(commit)
    made_folder(tmp_path / "models--owner--name" / "snapshots" / commit)
    assert home.fingerprint() == f"commit {commit}"
    with pytest.raises(ConfigError, match="'owner/name' has none of its own"):
        _ = home.file


def test_only_what_decides_counts_of_an_origin(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "text.bin").write_bytes(b"words")
    (tmp_path / "origin.json").write_text("{}")
    home = home_of(f"origin:{tmp_path}")
    before = home.fingerprint()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "cells.bin").write_bytes(b"remembered")
    assert home.fingerprint() == before
    (tmp_path / "corpus" / "text.bin").write_bytes(b"other")
    assert home.fingerprint() != before


def test_a_model_gives_calibrated_scores(folder, sentences):
    home = home_of(str(folder))
    model = samesense.load(str(folder), precision="float32", device="cpu")
    with pytest.raises(ModelError, match="has no calibration"):
        model.similarity("a dog", "a cat", calibrated=True)
    calibration = fitted(home, yes=3)
    store(calibration, home.file)
    pairs = list(zip(sentences[:10], sentences[5:15], strict=True))
    np.testing.assert_array_equal(model.scores(pairs, calibrated=True), calibration.apply(model.scores(pairs)))
    assert model.similarity("a dog", "a dog", calibrated=True) == calibration.apply(np.array([1.0]))[0]
    assert model.calibration.says_yes(model.scores(pairs)).shape == (10,)


def test_a_cross_encoder_gives_calibrated_scores_and_a_file_elsewhere_is_read(tiny_trunk, tmp_path):
    folder = save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "cross")
    data = labelled(*binary(), kind="binary", scale=(0.0, 1.0))
    calibration = calibrate(reader(), data, home_of(str(folder)).fingerprint()).calibration
    store(calibration, tmp_path / "elsewhere.json")
    model = samesense.load(str(folder), precision="float32", device="cpu", calibration=tmp_path / "elsewhere.json")
    pair = [("a dog runs", "the cat sleeps")]
    assert model.scores(pair, calibrated=True) == calibration.apply(model.scores(pair))


def test_a_model_in_memory_has_none(tiny):
    with pytest.raises(ModelError, match="Save it, calibrate it, and load it"):
        samesense.load(tiny).similarity("a", "b", calibrated=True)
