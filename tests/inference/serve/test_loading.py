import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from samesense.encoder.build_cross import build_cross
from samesense.encoder.cross import as_logits
from samesense.encoder.storage import save
from samesense.errors import ModelError
from samesense.inference.calibration.storage import home_of, store
from samesense.inference.models.load import load
from samesense.inference.serve.run import open_calibration, reranker_of
from samesense.inference.serve.tokens import served_tokens
from tests.inference.serve.toy import calibrated, running, served


@pytest.fixture
def folder(tiny_trunk, tmp_path):
    return shutil.copytree(tiny_trunk, tmp_path / "model")


def test_the_calibration_in_the_models_folder_is_served(folder):
    assert open_calibration(str(folder), None) is None
    home = home_of(str(folder))
    store(calibrated(fingerprint=home.fingerprint()), home.file)
    with running(served(calibration=open_calibration(str(folder), None))) as server:
        (pair,) = server.post("/similarity", {"pairs": [["one", "two"]], "calibrated": True})[1]["data"]
    np.testing.assert_allclose(pair["calibrated"], 2.5 * (pair["score"] + 1), atol=1e-12)


def test_a_calibration_that_does_not_fit_stops_the_start(folder, tmp_path):
    with pytest.raises(ModelError, match="has no calibration"):
        open_calibration(str(folder), tmp_path / "absent.json")
    store(calibrated(fingerprint="sha256 of another"), folder / "calibration.json")
    with pytest.raises(ModelError, match="other weights or settings"):
        open_calibration(str(folder), None)


def test_models_without_a_folder_have_none_unless_it_is_named():
    assert open_calibration("owner/name", None) is None


def test_an_exported_folder_counts_tokens_by_its_own_tokenizer(folder):
    known = SimpleNamespace(max_tokens=None, prompt="", special_tokens=True)
    model = SimpleNamespace(onnx=SimpleNamespace(folder=folder, description=known))
    tokens = served_tokens(model)
    assert tokens.longest == 2**31
    assert tokens.count(["a dog runs", "cat"]) == [5, 3]
    ids = tokens._tokenizer.encode("a dog runs").ids
    assert tokens.text(ids) == "a dog runs"
    known.max_tokens, known.prompt = 7, "the dog "
    assert (served_tokens(model).longest, served_tokens(model).count(["a dog runs"])) == (7, [7])
    known.special_tokens = False
    assert served_tokens(model).count(["a dog runs"]) == [5]


@pytest.mark.parametrize("where", ["cross", "run"])
def test_a_reranker_is_a_folder_or_the_output_of_train(tiny_trunk, tmp_path, where):
    trained = build_cross(str(tiny_trunk), device="cpu")
    save(trained, tmp_path / "cross" if where == "cross" else tmp_path / "run" / "model")
    pairs = [("a dog runs", "the cat sleeps"), ("a dog runs", "a dog")]
    scores = reranker_of(load(tmp_path / where, precision="float32", device="cpu"))(pairs)
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-as_logits(trained)(pairs))), rtol=1e-5)


def test_what_is_no_cross_encoder_is_no_reranker(folder):
    with pytest.raises(ModelError, match=r"must be a cross-encoder; .* is none"):
        reranker_of(load(folder))
