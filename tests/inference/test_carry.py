"""A calibration goes with its model into an export."""

import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError
from samesense.inference.calibration.carry import carry
from samesense.inference.calibration.fit import CalibrationSettings, calibrate
from samesense.inference.calibration.storage import home_of, read_of, store
from samesense.inference.models.load import load
from samesense.inference.onnx.format import read_description
from tests.inference.exported import copy_graph
from tests.messages import listen


def labelled(sentences, model, *, top=1.0):
    """Pairs whose labels of 0 and ``top`` rise with the model's cosine."""
    pairs = [(sentences[index % 40], sentences[(index * 7 + 3 + index // 40) % 40]) for index in range(240)]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    scores = model.scores(pairs)
    noisy = scores + np.random.default_rng(0).normal(0, 0.3 * scores.std(), len(pairs))
    labels = top * (noisy > np.median(noisy))
    rows = [{"sentence1": a, "sentence2": b, "score": s} for (a, b), s in zip(pairs, labels.tolist(), strict=True)]
    return read_pairs(rows, label_range=(0.0, top))


@pytest.fixture(scope="module")
def parts(exported, sentences, tmp_path_factory):
    """A model folder with a calibration, and its export as it was before that went with it."""
    folder = tmp_path_factory.mktemp("carry")
    model = save(load(str(exported), backend="torch", precision="float32").encoder, folder / "model")
    exported_model = load(str(model), precision="float32")
    pairs = labelled(sentences, exported_model)
    home = home_of(str(model))
    settings = CalibrationSettings(min_precision=0.8, folds=4, seed=3)
    store(calibrate(exported_model, pairs, home.fingerprint(), settings).calibration, home.file)
    return model, pairs


@pytest.fixture
def target(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "exported", ignore=shutil.ignore_patterns("calibration.json"))


pytestmark = pytest.mark.slow  # the shared export takes long


def test_it_is_fitted_again_on_labelled_pairs_with_its_own_settings(parts, target):
    model, pairs = parts
    exported_model = load(target, backend="onnx")
    message = carry(str(model), target, exported_model, pairs)
    before, after = read_of(str(model)), read_of(str(target))
    assert message.startswith(
        f"calibration: fitted again on {len(pairs)} pairs of {pairs.name} by the exported vectors; "
    )
    again = calibrate(exported_model, pairs, after.fingerprint, CalibrationSettings(min_precision=0.8, folds=4, seed=3))
    assert after == again.calibration
    assert (before.decide, before.least, before.folds, before.seed) == ("precision", 0.8, 4, 3)
    assert f"threshold {after.threshold():.4f}, with torch {before.threshold():.4f}" in message


def test_without_pairs_it_is_carried_over_with_the_drift_that_was_measured(parts, target):
    model, _ = parts
    message = carry(str(model), target, load(target, backend="onnx"), None)
    before, after = read_of(str(model)), read_of(str(target))
    parity = read_description(target).parity
    assert (after.map, after.thresholds) == (before.map, before.thresholds)
    assert after.protocol.startswith(f"{before.protocol}; carried over from torch")
    assert f"at most onnx {parity['onnx'].scores:.2g}, onnx-int8 {parity['onnx-int8'].scores:.2g}" in message
    assert message.endswith("(no labelled pairs were given)")
    pair, exported_model = ("a dog runs", "the cat sleeps"), load(target)
    (calibrated,) = before.map(exported_model.scores([pair]))
    assert exported_model.similarity(*pair, calibrated=True) == pytest.approx(calibrated, abs=1e-6)


def test_pairs_that_cannot_fit_it_carry_it_over_with_the_reason(parts, target, sentences):
    model, pairs = parts
    exported_model = load(target, backend="onnx")
    assert "and these are 20. Give more" in carry(str(model), target, exported_model, pairs.take(range(20)))
    graded = labelled(sentences, exported_model, top=5.0)
    assert "lie on 0-5, and the calibration on 0-1)" in carry(str(model), target, exported_model, graded)
    assert read_of(str(target)).map == read_of(str(model)).map


def test_a_promise_that_the_exported_vectors_do_not_keep_is_left_behind(parts, target):
    model, pairs = parts
    noisy = replace(pairs, labels=[1 - label if index % 3 == 0 else label for index, label in enumerate(pairs.labels)])
    message = carry(str(model), target, load(target, backend="onnx"), noisy)
    assert "no calibration is carried over: " in message and "no threshold keeps a precision of 80 %" in message
    assert not (target / "calibration.json").exists()


def test_a_model_without_a_calibration_or_with_that_of_other_weights_carries_none(tiny_trunk, parts, target, tmp_path):
    exported_model = load(target, backend="onnx")
    other_model = save(build(str(tiny_trunk), device="cpu"), tmp_path / "other")
    assert carry(str(other_model), target, exported_model, None) == ""
    shutil.copyfile(parts[0] / "calibration.json", other_model / "calibration.json")
    assert "no calibration is carried over: " in carry(str(other_model), target, exported_model, None)
    with pytest.raises(ModelError, match="has no calibration"):
        read_of(str(target))


def test_the_export_does_it(parts, exported, tmp_path, monkeypatch):
    monkeypatch.setattr("samesense.inference.onnx.export.write_graph", partial(copy_graph, exported))
    lines = listen()
    samesense.export(str(parts[0]), output=tmp_path / "out")
    assert lines[-1].startswith("calibration: carried over from torch; exported scores differ")
    assert read_of(str(tmp_path / "out")).thresholds == read_of(str(parts[0])).thresholds
