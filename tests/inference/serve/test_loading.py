import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import as_logits
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.storage import home_of, store
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.collection.embedder import open_embedder
from samesense.inference.serve.opening import open_calibration, open_models
from samesense.inference.serve.services import Services
from samesense.inference.serve.tokens import served_tokens
from tests.command import run_command
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
    description = SimpleNamespace(max_tokens=None, prompt="", special_tokens=True)
    model = SimpleNamespace(exported=SimpleNamespace(folder=folder, description=description), cross_encoder=None)
    tokens = served_tokens(model)
    assert tokens.longest == 2**31
    assert tokens.count(["a dog runs", "cat"]) == [5, 3]
    ids = tokens._tokenizer.encode("a dog runs").ids
    assert tokens.text(ids) == "a dog runs"
    description.max_tokens, description.prompt = 7, "the dog "
    assert (served_tokens(model).longest, served_tokens(model).count(["a dog runs"])) == (7, [7])
    description.special_tokens = False
    assert served_tokens(model).count(["a dog runs"]) == [5]


@pytest.mark.parametrize("where", ["cross", "run"])
def test_a_cross_encoder_is_a_folder_or_the_output_of_train(tiny_trunk, tmp_path, where):
    trained = build_cross(str(tiny_trunk), device="cpu")
    save(trained, tmp_path / "cross" if where == "cross" else tmp_path / "run" / "model")
    (serving,) = open_models([f"ranks={tmp_path / where}"], precision="float32")
    pairs = [("a dog runs", "the cat sleeps"), ("a dog runs", "a dog")]
    np.testing.assert_allclose(serving.score(pairs), 1 / (1 + np.exp(-as_logits(trained)(pairs))), rtol=1e-5)
    assert (serving.name, serving.encode, serving.tokens.count(["a dog runs", "cat"])) == ("ranks", None, [5, 3])


def test_models_are_named_by_their_places_or_as_is_said(folder, monkeypatch):
    shutil.copytree(folder, folder.parent / "a=b")
    monkeypatch.chdir(folder.parent)
    names = ["model", "other=model", f"{folder}", "a=b"]
    assert [serving.name for serving in open_models(names)] == ["model", "other", "model", "a=b"]
    with pytest.raises(ConfigError, match="a name of its own; received model, model"):
        Services(open_models(["model", "model"]))


def test_several_models_have_their_own_calibrations(folder, tmp_path):
    other_folder = shutil.copytree(folder, tmp_path / "other")
    for folders in ([str(folder)], [str(folder), str(other_folder)]):
        with pytest.raises(ModelError, match="has no calibration"):
            open_models(folders, threshold="calibrated")
    home = home_of(str(other_folder))
    store(calibrated(fingerprint=home.fingerprint(), thresholds={"accuracy": 0.25}), home.file)
    servings = open_models([str(folder), str(other_folder)], threshold="calibrated")
    assert [serving.threshold for serving in servings] == [None, 0.25]
    for settings in ({"threshold": 0.5}, {"calibration": home.file}):
        with pytest.raises(ConfigError, match="is that of one model; received several"):
            open_models([str(folder), str(other_folder)], **settings)
    assert open_models([str(folder)], threshold=0.5)[0].threshold == 0.5


def test_a_collection_is_searched_with_the_model_that_it_was_built_with(folder, tiny_trunk, tmp_path):
    cross, other_folder = tmp_path / "cross", tmp_path / "other"
    save(build_cross(str(tiny_trunk), device="cpu"), cross)
    save(build(str(folder), pooling="cls", device="cpu"), other_folder)
    right = open_embedder(str(other_folder))
    Collection.build(tmp_path / "texts", [Entry("a dog runs"), Entry("the cat sleeps")], right)
    models = [f"cross={cross}", f"wrong={folder}", f"right={other_folder}"]
    servings = open_models(models, collection=tmp_path / "texts")
    assert [serving.search is not None for serving in servings] == [False, False, True]
    with pytest.raises(ModelError, match="used with the model it was built with"):
        open_models(models[:2], collection=tmp_path / "texts")
    with pytest.raises(ModelError, match="has no embeddings"):
        open_models(models[:1], collection=tmp_path / "texts")


def test_the_command_serves_what_it_is_given(folder, tiny_trunk, tmp_path, monkeypatch, capsys):
    save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "cross")
    served = []
    monkeypatch.setattr(
        "samesense.inference.serve.run.serve", lambda services, **options: served.append((services, options))
    )
    words = ["serve", str(folder), f"ranks={tmp_path / 'cross'}", "--any-model-name", "--port", "0", "--max-texts", "7"]
    assert run_command(capsys, *words, "--labels", tmp_path / "labels.tsv")[0] == 0
    ((services, options),) = served
    assert (options["port"], services.limits.max_texts, options["labels"].by) == (0, 7, "person, 0 to 5")
    assert services.embedder("text-embedding-3-small").serving.name == "model"
    assert services.reranker("rerank-v3.5").serving.name == "ranks"
    code, _, stderr = run_command(capsys, "serve", str(folder), f"again={folder}", "--any-model-name")
    assert (code, "--any-model-name is for one model, or one of each kind" in stderr) == (2, True)
