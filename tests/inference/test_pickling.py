"""Every kind of model that is opened can be pickled, copied and sent to other processes, with the same answers."""

import copy
import pickle
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from samesense.errors import ConfigError, ModelError
from samesense.inference.models.load import load
from samesense.inference.onnx.export import export
from tests.conftest import ready_processes
from tests.context.worlds import small_worded_causal
from tests.recipes.word_world import make, write_documents

TEXTS = ["a dog runs", "the cat sleeps at noon", "music", "the old man reads"]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[3]), (TEXTS[0], TEXTS[0])]
FITTED = [f"the {first} {second}" for first in ("dog", "cat", "man") for second in ("runs", "reads", "sings", "eats")]


def embed_lengths(texts):
    return np.array([[len(text), text.count("a") + 1.0] for text in texts], dtype=np.float32)


def score_lengths(pairs):
    return np.array([len(first) - len(second) for first, second in pairs], dtype=np.float64)


@pytest.fixture(scope="module")
def openers(tiny_trunk, exported_layer, tmp_path_factory):
    """Functions that open a model of each kind, by name."""
    folder = tmp_path_factory.mktemp("pickled")
    BertForSequenceClassification(BertConfig.from_pretrained(tiny_trunk, num_labels=1)).save_pretrained(folder / "c")
    AutoTokenizer.from_pretrained(tiny_trunk).save_pretrained(folder / "c")
    np.save(folder / "v.npy", np.random.default_rng(0).normal(size=(len(TEXTS), 3)).astype(np.float32))
    (folder / "v.txt").write_text("\n".join(TEXTS))
    (folder / "w.vec").write_text("dog 1 2\ncat 2 1\nmusic 0 1\n")
    make(write_documents(folder), str(small_worded_causal(folder / "causal")), folder / "origin")
    bi = partial(load, str(tiny_trunk), device="cpu", precision="float32")
    return {
        "bi": bi,
        "remembering": partial(bi, cache=True),
        "kept": partial(bi, cache=folder / "kept"),
        "whitened": partial(load, f"{tiny_trunk}+whiten:4+dim:2", device="cpu", fit_texts=FITTED),
        "memory": lambda: load(SentenceTransformer(str(tiny_trunk), device="cpu")),
        "cross": partial(load, str(folder / "c"), device="cpu"),
        "cross remembering": partial(load, str(folder / "c"), device="cpu", cache=True),
        "exported": partial(load, str(exported_layer), backend="onnx"),
        "int8": partial(load, str(exported_layer), backend="onnx-int8", deterministic=True),
        "vectors": partial(load, f"vectors:{folder / 'v.npy'}"),
        "words": partial(load, f"words:{folder / 'w.vec'}?sif"),
        "function": partial(load, embed_lengths),
        "python": partial(load, "python:tests.inference.test_pickling:embed_lengths"),
        "python-score": partial(load, "python-score:tests.inference.test_pickling:score_lengths"),
        "origin": partial(load, f"origin:{folder / 'origin'}", device="cpu", precision="float32"),
    }


KINDS = [
    "bi",
    "remembering",
    "kept",
    "whitened",
    "memory",
    "cross",
    "cross remembering",
    "exported",
    "int8",
    "vectors",
    "words",
    "function",
    "python",
    "python-score",
    "origin",
]


def dumped(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


WAYS = {
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, _: copy.copy(model),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "clone": lambda model, _: sklearn.clone(model),
    "joblib": dumped,
}


def answers(model):
    return model.encode(TEXTS) if model.embeds else model.scores(PAIRS)


@pytest.mark.filterwarnings("ignore:.*have no known word")
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_same_after_each_way(openers, tmp_path, kind):
    model = openers[kind]()
    expected, scores = answers(model), model.scores(PAIRS)
    for way in WAYS.values():
        restored = way(model, tmp_path)
        np.testing.assert_allclose(answers(restored), expected, atol=1e-6)  # other processes have other threads
        np.testing.assert_allclose(restored.scores(PAIRS), scores, atol=1e-6)
        assert (restored.name, restored.protocol, restored.home, restored.backend) == (
            model.name,
            model.protocol,
            model.home,
            model.backend,
        )
        assert repr(restored) == repr(model)
        assert (restored.explainer is None) == (model.explainer is None)
        assert not model.embeds or (restored.reading is None) == (model.reading is None)


def test_a_copy_remembers_apart(openers):
    model = openers["bi"]()
    duplicate = copy.copy(model)
    duplicate.remember()
    duplicate.scores(PAIRS)
    assert duplicate.fill([*TEXTS, "a bird"]) == 1
    assert model.fill(TEXTS) == len(TEXTS)  # which remembers nothing


@pytest.mark.long
def test_an_exported_model_that_was_replaced_is_refused(openers, tiny_trunk, tmp_path):
    export(str(tiny_trunk), tmp_path / "e")
    content = pickle.dumps(load(str(tmp_path / "e"), backend="onnx"))
    export(f"{openers['bi'].args[0]}", tmp_path / "e", overwrite=True, int8=True)
    pickle.loads(content)
    from samesense.encoder.assembly.build import build
    from samesense.encoder.saving.storage import save

    replacement = build(str(tiny_trunk), pooling="cls", device="cpu")
    export(str(save(replacement, tmp_path / "other")), tmp_path / "e", overwrite=True)
    with pytest.raises(ModelError, match="which holds another one now"):
        pickle.loads(content)


@pytest.mark.parametrize("kind", ["bi", "exported", "words"])
def test_pipelines_of_scikit_learn_are_cloned_and_pickled(openers, kind):
    model = openers[kind]()
    pipeline = make_pipeline(FunctionTransformer(model.encode), LogisticRegression())
    labels = [0, 1, 0, 1]
    fitted = sklearn.clone(pipeline).fit(TEXTS, labels)
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(restored.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


@pytest.fixture(scope="module")
def other_process():
    with ready_processes().Pool(1) as pool:
        yield pool


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param("bi", marks=pytest.mark.long), "cross", "exported", "origin"])
def test_other_processes_give_the_same_answers(openers, other_process, kind):
    model = openers[kind]()
    run = model.encode if model.embeds else model.scores
    blocks = [TEXTS[:2], TEXTS[2:]] if model.embeds else [PAIRS[:1], PAIRS[1:]]
    expected = [run(block) for block in blocks]
    for rows, same in zip(joblib.Parallel(2)(joblib.delayed(run)(block) for block in blocks), expected, strict=True):
        np.testing.assert_allclose(rows, same, atol=1e-5)
    for rows, same in zip(other_process.map(run, blocks), expected, strict=True):
        np.testing.assert_allclose(rows, same, atol=1e-5)


def test_a_model_says_what_it_is(openers):
    text = repr(openers["bi"]())
    assert text.startswith("Model(name='")
    assert text.endswith("kind=bi-encoder, dimensions=32, max_seq_length=64, device=cpu, backend=torch-float32)")
    assert "kind=cross-encoder, max_seq_length=64, device=cpu" in repr(openers["cross"]())
    assert "kind=exported, dimensions=32, max_seq_length=64, device=cpu, backend=onnx)" in repr(openers["exported"]())
    assert "kind=function, protocol='cosine, embeddings by embed_lengths'" in repr(openers["function"]())
    assert "kind=score, protocol='scores by " in repr(openers["python-score"]())


def test_a_chat_model_is_pickled_without_its_key(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    content = pickle.dumps(load("chat:some-model"))
    assert b"sesame" not in content
    assert pickle.loads(content).protocol == "0 to 5 by some-model, a chat model"


@pytest.mark.filterwarnings("ignore:.*have no known word")
@pytest.mark.parametrize("kind", ["bi", "kept", "few texts", "cross", "exported", "vectors", "words", "origin"])
def test_a_model_opened_by_a_relative_path_stays_where_it_is(openers, tmp_path, monkeypatch, kind):
    opener = openers["bi" if kind == "few texts" else kind]
    source, named = opener.args[0], dict(opener.keywords)
    prefix, _, path = source.rpartition(":")
    monkeypatch.chdir(Path(path).parent)
    if kind == "kept":
        named["cache"] = Path("kept-elsewhere")
    if kind == "few texts":
        named = {"texts": TEXTS}
    model = load(f"{prefix}{prefix and ':'}{Path(path).name}", calibration=Path("calibration.json"), **named)
    kept_in = Path(path).parent
    monkeypatch.chdir(tmp_path)
    scores = model.scores(PAIRS)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).scores(PAIRS), scores, atol=1e-6)
    with pytest.raises((ModelError, ConfigError)) as caught:
        model.scores(PAIRS, calibrated=True)
    assert str(kept_in) in str(caught.value)
    assert not list(tmp_path.iterdir())
