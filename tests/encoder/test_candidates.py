import numpy as np
import pytest

from samesense.encoder.build import build
from samesense.encoder.candidates import open_candidate
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import encode
from samesense.encoder.flow import fit_flow
from samesense.encoder.storage import save
from samesense.encoder.whitening import Whitening
from samesense.errors import ConfigError, ModelError

MODULE = """
import numpy as np
def lengths(texts):
    return np.array([[len(t), 1.0 + t.count("a")] for t in texts])
def shared(pairs):
    return np.array([len(set(a.split()) & set(b.split())) for a, b in pairs], dtype=float)
number = 3
"""


@pytest.fixture
def pairs(sentences):
    return [(sentences[i], sentences[(7 * i + 3) % 40]) for i in range(40)]


@pytest.fixture(scope="module")
def folder(tiny_trunk, tmp_path_factory):
    return str(save(build(str(tiny_trunk), device="cpu"), tmp_path_factory.mktemp("runs") / "run" / "model"))


@pytest.fixture
def rows(tiny, sentences):
    return encode(tiny, sentences, precision="float32")


def test_a_model_folder(folder, pairs, sentences, rows):
    candidate = open_candidate(folder, device="cpu", seed=4)
    np.testing.assert_allclose(candidate.encode(sentences), rows, atol=1e-6)
    np.testing.assert_allclose(candidate.score(pairs), cosine_score(candidate.encode)(pairs), atol=0)
    assert (candidate.name, candidate.seed) == (folder, 4)
    assert candidate.protocol == "cosine, mean pooling, float32, at most 64 tokens"


def test_a_run_folder_and_a_bare_transformer(folder, tiny_trunk, sentences, rows):
    for spec in (folder.removesuffix("/model"), str(tiny_trunk)):
        np.testing.assert_allclose(open_candidate(spec, device="cpu").encode(sentences), rows, atol=1e-6)


def test_another_pooling(tiny_trunk, sentences, tmp_path):
    candidate = open_candidate(f"{tiny_trunk}?cls", device="cpu")
    expected = encode(build(str(tiny_trunk), pooling="cls", device="cpu"), sentences, precision="float32")
    np.testing.assert_allclose(candidate.encode(sentences), expected, atol=1e-6)
    assert (candidate.name, candidate.protocol.split(", ")[1]) == (f"{tiny_trunk}?cls", "cls pooling")
    whitened = open_candidate(f"{tiny_trunk}?cls+whiten:8", device="cpu", fit_texts=sentences[:30])
    assert whitened.encode(sentences).shape == (len(sentences), 8)
    with pytest.raises(ConfigError, match=r"one of mean, cls, max, first-last, last-2; received \?sum\."):
        open_candidate(f"{tiny_trunk}?sum")
    asked = tmp_path / "model?cls"
    save(build(str(tiny_trunk), pooling="max", device="cpu"), asked)
    assert "max pooling" in open_candidate(str(asked), device="cpu").protocol


def test_protocol_names_precision_prompt_and_length(tiny, tmp_path):
    tiny.prompts["ask"], tiny.default_prompt_name, tiny.max_seq_length = "the old man ", "ask", 20
    candidate = open_candidate(str(save(tiny, tmp_path / "m")), device="cpu", precision="bfloat16")
    assert candidate.protocol == "cosine, mean pooling, bfloat16, at most 20 tokens, prompt 'the old man '"


def test_embeddings_are_kept_between_runs_by_model_and_precision(folder, sentences, tmp_path, monkeypatch):
    first = open_candidate(folder, device="cpu", cache=tmp_path)
    assert first.encode.fill(sentences) == len(set(sentences))
    again = open_candidate(folder, device="cpu", cache=tmp_path)
    assert again.encode.fill(sentences) == 0
    np.testing.assert_array_equal(again.encode(sentences), first.encode(sentences))
    assert open_candidate(folder, device="cpu", cache=tmp_path, precision="bfloat16").encode.fill(sentences) > 0
    assert len(list(tmp_path.glob("*/identity.txt"))) == 2


def test_vectors_of_a_file(sentences, pairs, rows, tmp_path):
    np.savez(tmp_path / "v.npz", texts=np.array(sentences), embeddings=rows)
    candidate = open_candidate(f"vectors:{tmp_path / 'v.npz'}")
    np.testing.assert_array_equal(candidate.encode(sentences), rows)
    assert candidate.protocol == "cosine, vectors from v.npz"
    with pytest.raises(ModelError, match=r"1 of 1 are not there, the first being 'something else'"):
        candidate.score([("something else", "something else")])


def test_words(tmp_path):
    (tmp_path / "glove.txt").write_text("dog 1 0\ncat 0 1\nruns 2 2\n")
    candidate = open_candidate(f"words:{tmp_path / 'glove.txt'}")
    assert candidate.score([("dog", "cat"), ("dog cat", "runs")]).tolist() == pytest.approx([0, 1])
    assert candidate.protocol == (
        "cosine, mean of word vectors, equal weights, a text of no known word gets the mean of all"
    )
    weighted = open_candidate(f"words:{tmp_path / 'glove.txt'}?sif")
    assert "SIF weights (a = 0.001, Zipf's law)" in weighted.protocol
    with pytest.raises(ConfigError, match=r"one option, \?sif; received \?idf"):
        open_candidate(f"words:{tmp_path / 'glove.txt'}?idf")


def test_python_functions(tmp_path, monkeypatch):
    (tmp_path / "my_scores_of_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    embed = open_candidate("python:my_scores_of_test:lengths")
    np.testing.assert_array_equal(embed.encode(["aa", "b"]), [[2, 3], [1, 1]])
    assert embed.protocol == "cosine, embeddings by my_scores_of_test:lengths"
    score = open_candidate("python-score:my_scores_of_test:shared")
    assert (score.encode, score.score([("a b", "b c a"), ("a", "b")]).tolist()) == (None, [2, 0])
    for spec, message in {
        "python:my_scores_of_test": "python:module:function; received python:my_scores_of_test",
        "python:no_such_module_here:f": "cannot be imported: No module named 'no_such_module_here'",
        "python:my_scores_of_test:g": "cannot be imported: module 'my_scores_of_test' has no attribute 'g'",
        "python:my_scores_of_test:number": "must be a function; it is int",
    }.items():
        with pytest.raises(ConfigError, match=message):
            open_candidate(spec)


def test_whitening_is_fitted_on_the_texts_given(folder, sentences, rows):
    candidate = open_candidate(f"{folder}+whiten:8", device="cpu", fit_texts=sentences[:30])
    np.testing.assert_allclose(candidate.encode(sentences), Whitening.fit(rows[:30], 8).apply(rows), atol=1e-3)
    assert candidate.name == f"{folder}+whiten:8"
    assert candidate.protocol.endswith("at most 64 tokens, whitened to 8 dimensions fitted on 30 texts")
    assert candidate.encode.fill(sentences) == 0


def test_flow_is_fitted_with_the_seed(folder, sentences, rows):
    candidate = open_candidate(f"{folder}+flow", device="cpu", fit_texts=sentences, seed=5)
    np.testing.assert_allclose(candidate.encode(sentences), fit_flow(rows, seed=5).apply_to(rows), atol=1e-3)
    assert candidate.protocol.endswith(", flow of seed 5 fitted on 40 texts")


def test_maps_follow_one_another_and_anything_that_embeds(sentences, rows, tmp_path):
    np.savez(tmp_path / "a+b.npz", texts=np.array(sentences), embeddings=rows)
    candidate = open_candidate(f"vectors:{tmp_path / 'a+b.npz'}+whiten:16+flow", fit_texts=sentences)
    white = Whitening.fit(rows, 16).apply(rows)
    np.testing.assert_allclose(candidate.encode(sentences), fit_flow(white).apply_to(white), atol=1e-4)
    assert candidate.protocol == (
        "cosine, vectors from a+b.npz, whitened to 16 dimensions fitted on 40 texts, flow of seed 0 fitted on 40 texts"
    )


def test_a_map_fills_what_is_under_it_from_disk(folder, sentences, tmp_path):
    open_candidate(f"{folder}+whiten", device="cpu", fit_texts=sentences, cache=tmp_path)
    plain = open_candidate(folder, device="cpu", cache=tmp_path)
    assert plain.encode.fill(sentences) == 0


@pytest.mark.parametrize(
    ("suffix", "texts", "message"),
    [
        ("+whiten", None, r"\+whiten is fitted on unlabelled texts, and there are none"),
        ("+flow", [], r"\+flow is fitted on unlabelled texts, and there are none"),
        ("+flow:64", ["a dog", "a cat"], r"received \+flow:64\. Write \+flow"),
        ("+whiten:31", ["a dog", "a cat", "the sun"], r"2 of 32, from 3 embeddings; received 31"),
    ],
)
def test_maps_that_cannot_be_fitted(folder, suffix, texts, message):
    with pytest.raises(ConfigError, match=message):
        open_candidate(folder + suffix, device="cpu", fit_texts=texts)


def test_an_unknown_suffix_belongs_to_the_name(folder):
    with pytest.raises(ModelError, match=r"no model folder at .*\+bleach"):
        open_candidate(f"{folder}+bleach")
