"""From a name, or an object in memory, to a model."""

import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import CrossEncoder

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.cosine import cosine_score, unit
from samesense.encoder.encode import encode
from samesense.encoder.maps.whitening import Whitening
from samesense.encoder.saving.storage import model_identity, save
from samesense.errors import ConfigError, ModelError
from samesense.inference.models.load import load

MODULE = """
import numpy as np
def lengths(texts):
    return np.array([[len(t), 1.0 + t.count("a")] for t in texts])
def shared(pairs):
    return np.array([len(set(a.split()) & set(b.split())) for a, b in pairs], dtype=float)
number = 3
"""


def opened(model, **options):
    return load(model, **{"precision": "float32", "device": "cpu", "cache": True} | options)


@pytest.fixture
def pairs(sentences):
    return [(sentences[i], sentences[(7 * i + 3) % 40]) for i in range(40)]


@pytest.fixture(scope="module")
def folder(tiny_trunk, tmp_path_factory):
    return str(save(build(str(tiny_trunk), device="cpu"), tmp_path_factory.mktemp("runs") / "run" / "model"))


@pytest.fixture
def rows(tiny, sentences):
    return encode(tiny, sentences, precision="float32")


def test_an_opened_model_has_the_name_it_is_given_and_no_option_is_lost(tiny_trunk, toy_pairs):
    model = samesense.load(str(tiny_trunk), precision="float32")
    renamed = samesense.load(model, name="first", seed=3)
    assert (renamed.name, renamed.seed, model.name) == ("first", 3, str(tiny_trunk))
    for option in ({"prompt": "a "}, {"calibration": "c.json"}):
        with pytest.raises(ConfigError, match=f"received `{next(iter(option))}`. Open it with them"):
            samesense.load(model, **option)
    other_model = samesense.load(str(tiny_trunk), precision="float32", pooling="cls")
    comparison = samesense.compare({"first": model, "second": other_model}, toy_pairs / "test.tsv", speed=False)
    assert {row.model for row in comparison.results} == {"first", "second"}
    with pytest.raises(ModelError, match="has a prompt or a pooling"):
        other_model.calibration  # noqa: B018 - read when it is asked for


def test_a_model_folder(folder, pairs, sentences, rows):
    model = opened(folder, seed=4)
    np.testing.assert_allclose(model.encode(sentences), rows, atol=1e-6)
    np.testing.assert_allclose(model.scores(pairs), cosine_score(model.encode)(pairs), atol=0)
    assert (model.name, model.seed, model.embeds, model.backend) == (folder, 4, True, "torch-float32")
    assert model.protocol == "cosine, mean pooling, float32, at most 64 tokens"
    assert model.identity == model_identity(model.encoder, "float32")
    lengths = np.linalg.norm(model.encode(sentences, normalize=True), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


def test_a_run_folder_and_a_bare_transformer(folder, tiny_trunk, sentences, rows):
    for name in (folder.removesuffix("/model"), tiny_trunk):
        np.testing.assert_allclose(opened(name, cache=False).encode(sentences), rows, atol=1e-6)


def test_another_pooling(tiny_trunk, sentences, tmp_path):
    model = opened(f"{tiny_trunk}?cls")
    expected = encode(build(str(tiny_trunk), pooling="cls", device="cpu"), sentences, precision="float32")
    np.testing.assert_allclose(model.encode(sentences), expected, atol=1e-6)
    assert (model.name, model.protocol.split(", ")[1]) == (f"{tiny_trunk}?cls", "cls pooling")
    assert opened(tiny_trunk, pooling="cls").identity == model.identity
    assert opened(f"{tiny_trunk}?cls+whiten:8", fit_texts=sentences[:30]).encode(sentences).shape == (40, 8)
    with pytest.raises(ConfigError, match=r"one of mean, .*, last-2, or template=TEXT .*; received \?sum\."):
        opened(f"{tiny_trunk}?sum")
    folder = tmp_path / "model?cls"
    save(build(str(tiny_trunk), pooling="max", device="cpu"), folder)
    assert "max pooling" in opened(folder).protocol


def test_protocol_names_precision_prompt_and_length(tiny, tmp_path):
    tiny.prompts["ask"], tiny.default_prompt_name, tiny.max_seq_length = "the old man ", "ask", 20
    model = opened(save(tiny, tmp_path / "m"), precision="bfloat16")
    assert model.protocol == "cosine, mean pooling, bfloat16, at most 20 tokens, prompt 'the old man '"


def test_objects_in_memory(tiny, tiny_trunk, sentences, rows, pairs):
    model = opened(tiny, name="mine", seed=3, cache=False)
    assert model.encoder is tiny and (model.name, model.seed) == ("mine", 3)
    np.testing.assert_allclose(model.encode(sentences), rows, atol=1e-6)
    assert opened(model) is model
    cross = build_cross(str(tiny_trunk), device="cpu")
    by_hand = 1 / (1 + np.exp(-cross.predict(pairs, activation_fn=__import__("torch").nn.Identity())))
    np.testing.assert_allclose(opened(cross).scores(pairs), by_hand, rtol=1e-5)
    assert isinstance(cross, CrossEncoder) and opened(cross).name == "CrossEncoder"

    def letters(texts):
        return np.array([[text.count("a"), text.count("e"), 1.0] for text in texts])

    assert load(letters).similarity("a", "a") == 1.0
    assert load(letters).protocol.startswith("cosine, embeddings by test_objects_in_memory")
    with pytest.raises(ConfigError, match="a function from texts to vectors; received int"):
        load(3)


def test_embeddings_are_kept_between_runs_by_model_and_precision(folder, sentences, tmp_path):
    first = opened(folder, cache=tmp_path)
    assert first.fill(sentences) == len(set(sentences))
    again = opened(folder, cache=tmp_path)
    assert again.fill(sentences) == 0
    np.testing.assert_array_equal(again.encode(sentences), first.encode(sentences))
    assert opened(folder, cache=tmp_path, precision="bfloat16").fill(sentences) > 0
    assert len(list(tmp_path.glob("*/identity.txt"))) == 2
    assert opened(folder, cache=False).fill(sentences) == len(set(sentences))


def test_vectors_of_a_file(sentences, rows, tmp_path):
    np.savez(tmp_path / "v.npz", texts=np.array(sentences), embeddings=rows)
    model = opened(f"vectors:{tmp_path / 'v.npz'}", cache=tmp_path / "cache")
    np.testing.assert_array_equal(model.encode(sentences), rows)
    assert (model.protocol, model.backend) == ("cosine, vectors from v.npz", "")
    assert not (tmp_path / "cache").exists()
    with pytest.raises(ModelError, match=r"1 of 1 are not there, the first being 'something else'"):
        model.scores([("something else", "something else")])
    with pytest.raises(ModelError, match="This needs a model in torch"):
        _ = model.encoder
    with pytest.raises(ConfigError, match="Backend, pooling and prompt are chosen for models"):
        load(f"vectors:{tmp_path / 'v.npz'}", pooling="cls")


def test_words(tmp_path):
    (tmp_path / "glove.txt").write_text("dog 1 0\ncat 0 1\nruns 2 2\n")
    model = opened(f"words:{tmp_path / 'glove.txt'}")
    assert model.scores([("dog", "cat"), ("dog cat", "runs")]).tolist() == pytest.approx([0, 1])
    assert model.protocol == (
        "cosine, mean of word vectors, equal weights, a text of no known word gets the mean of all"
    )
    assert "SIF weights (a = 0.001, Zipf's law)" in opened(f"words:{tmp_path / 'glove.txt'}?sif").protocol
    with pytest.raises(ConfigError, match=r"one option, \?sif; received \?idf"):
        opened(f"words:{tmp_path / 'glove.txt'}?idf")


def test_python_functions(tmp_path, monkeypatch):
    (tmp_path / "my_scores_of_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    model = opened("python:my_scores_of_test:lengths")
    np.testing.assert_array_equal(model.encode(["aa", "b"]), [[2, 3], [1, 1]])
    assert model.protocol == "cosine, embeddings by my_scores_of_test:lengths"
    with pytest.raises(ConfigError, match="a function may change between runs"):
        _ = model.identity
    score = opened("python-score:my_scores_of_test:shared")
    assert (score.embeds, score.scores([("a b", "b c a"), ("a", "b")]).tolist()) == (False, [2, 0])
    for name, message in {
        "python:my_scores_of_test": "python:module:function; received python:my_scores_of_test",
        "python:no_such_module_here:f": "cannot be imported: No module named 'no_such_module_here'",
        "python:my_scores_of_test:g": "cannot be imported: module 'my_scores_of_test' has no attribute 'g'",
        "python:my_scores_of_test:number": "must be a function; it is int",
    }.items():
        with pytest.raises(ConfigError, match=message):
            opened(name)


def test_whitening_is_fitted_on_the_texts_given(folder, sentences, rows):
    model = opened(f"{folder}+whiten:8", fit_texts=sentences[:30])
    np.testing.assert_allclose(model.encode(sentences), Whitening.fit(rows[:30], 8).apply(rows), atol=1e-3)
    assert model.name == f"{folder}+whiten:8"
    assert model.protocol.endswith("at most 64 tokens, whitened to 8 dimensions fitted on 30 texts")
    assert model.fill(sentences) == 0
    assert model.identity != opened(f"{folder}+whiten:8", fit_texts=sentences[:29]).identity


def test_maps_follow_one_another_and_anything_that_embeds(sentences, rows, tmp_path):
    np.savez(tmp_path / "a+b.npz", texts=np.array(sentences), embeddings=rows)
    model = opened(f"vectors:{tmp_path / 'a+b.npz'}+whiten:16+dim:8", fit_texts=sentences, cache=False)
    white = Whitening.fit(rows, 16).apply(rows)
    np.testing.assert_allclose(model.encode(sentences), unit(white[:, :8]), atol=1e-4)
    assert model.protocol == (
        "cosine, vectors from a+b.npz, whitened to 16 dimensions fitted on 40 texts, first 8 dimensions"
    )


def test_a_map_fills_what_is_under_it_from_disk(folder, sentences, tmp_path):
    opened(f"{folder}+whiten", fit_texts=sentences, cache=tmp_path)
    assert opened(folder, cache=tmp_path).fill(sentences) == 0


@pytest.mark.parametrize(
    ("suffix", "texts", "message"),
    [
        ("+whiten", None, r"\+whiten is fitted on unlabelled texts, and there are none"),
        ("+whiten:2", [], r"\+whiten is fitted on unlabelled texts, and there are none"),
        ("+whiten:31", ["a dog", "a cat", "the sun"], r"2 of 32, from 3 embeddings; received 31"),
    ],
)
def test_maps_that_cannot_be_fitted(folder, suffix, texts, message):
    with pytest.raises(ConfigError, match=message):
        opened(folder + suffix, fit_texts=texts)


def test_an_unknown_suffix_belongs_to_the_name(folder):
    with pytest.raises(ModelError, match=r"no model folder at .*\+bleach"):
        opened(f"{folder}+bleach")


def test_vectors_and_words_need_no_torch(tmp_path):
    (tmp_path / "glove.txt").write_text("dog 1 0\ncat 0 1\n")
    np.savez(tmp_path / "v.npz", texts=np.array(["a", "b"]), embeddings=np.eye(2, dtype=np.float32))
    program = (
        "import sys, samesense\n"
        f"assert samesense.load('words:{tmp_path / 'glove.txt'}').similarity('dog', 'dog') == 1.0\n"
        f"assert samesense.load('vectors:{tmp_path / 'v.npz'}', cache=True).similarity('a', 'b') == 0.0\n"
        "assert not {'torch', 'sentence_transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
