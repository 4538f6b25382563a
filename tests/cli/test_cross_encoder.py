"""Every command that takes a model, given a cross-encoder."""

import json

import numpy as np
import pytest

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import as_logits
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError

NONE = "scores pairs of texts and has no embeddings"


@pytest.fixture(scope="module")
def bi(tiny_trunk, tmp_path_factory):
    return save(build(str(tiny_trunk), device="cpu"), tmp_path_factory.mktemp("saved") / "bi")


@pytest.fixture(scope="module")
def cross(tiny_trunk, tmp_path_factory):
    return save(build_cross(str(tiny_trunk), device="cpu"), tmp_path_factory.mktemp("saved") / "cross")


def expected(cross, pairs):
    return 1 / (1 + np.exp(-as_logits(build_cross(str(cross), device="cpu"))(pairs)))


def test_similarity_is_its_score(run, cross):
    code, out, err = run("similarity", cross, "a dog runs", "the cat sleeps", "--precision", "float32")
    assert (code, err) == (0, "")
    assert float(out) == pytest.approx(expected(cross, [("a dog runs", "the cat sleeps")])[0], abs=1e-4)


def test_evaluate_says_what_was_scored(run, cross, toy_pairs):
    code, out, err = run("evaluate", cross, "--data", toy_pairs / "test.tsv", "--json")
    assert (code, err) == (0, "")
    row = json.loads(out.splitlines()[0])
    assert (row["metric"], row["n"], row["model"]) == ("spearman", 60, str(cross))
    assert row["protocol"].startswith("cross-encoder, sigmoid of the logit, texts in the order given, float32")


def test_it_has_no_embeddings(run, cross, tmp_path):
    (tmp_path / "in.txt").write_text("a dog\n")
    code, out, err = run("encode", cross, tmp_path / "in.txt")
    assert (code, out) == (2, "")
    assert NONE in err
    with pytest.raises(ModelError, match=NONE):
        samesense.load(str(cross)).encode(["a dog"])


def test_loaded_in_python(cross, sentences):
    pairs = list(zip(sentences[:5], sentences[5:10], strict=True))
    model = samesense.load(str(cross), precision="float32", device="cpu")
    np.testing.assert_allclose(model.scores(pairs), expected(cross, pairs), rtol=1e-5)
    assert model.similarity(*pairs[3]) == pytest.approx(expected(cross, pairs)[3], rel=1e-5)


def test_rerank(run, bi, cross, sentences, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(sentences) + "\n")
    arguments = ["rerank", tmp_path / "texts.txt", "--model", bi, "--cross", cross, "--query", "a dog runs"]
    arguments += ["--top", 5, "--precision", "float32"]
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    encoder = samesense.load(str(bi), precision="float32", device="cpu")
    cosines = encoder.scores([("a dog runs", text) for text in sentences])
    assert {row["row"] - 1 for row in rows} == set(np.argsort(-cosines, kind="stable")[:5].tolist())
    assert [row["text"] for row in rows] == [sentences[row["row"] - 1] for row in rows]
    scores = expected(cross, [("a dog runs", row["text"]) for row in rows])
    np.testing.assert_allclose([row["score"] for row in rows], scores, atol=1e-5)
    assert list(scores) == sorted(scores, reverse=True)
    lines = run(*arguments)[1].splitlines()
    assert [line.split("\t")[1] for line in lines] == [row["text"] for row in rows]


def test_rerank_refuses(run, bi, cross, tmp_path):
    (tmp_path / "texts.txt").write_text("a dog\n")
    arguments = ["rerank", tmp_path / "texts.txt", "--cross", cross]
    code, _, err = run(*arguments, "--model", cross, "--query", "a")
    assert code == 2
    assert f"--model finds texts by their embeddings, and {cross} has none: cross-encoder" in err
    code, _, err = run(*arguments, "--model", f"origin:{tmp_path / 'absent'}", "--query", "a")
    assert code == 2
    assert "origin.json" in err, "whatever evaluate takes"
    code, _, err = run(*arguments, "--model", bi, "--query", " ")
    assert (code, err) == (
        2,
        'samesense: error: The --query is empty. Give a text, such as "How do I get home?".\n',
    )


def test_train_from_the_command_line(run, tiny_trunk, toy_pairs, tmp_path):
    arguments = ["train", toy_pairs / "train.tsv", "--dev", toy_pairs / "dev.tsv", "--output", tmp_path / "run"]
    arguments += ["--model", tiny_trunk, "--encoder", "cross", "--max-steps", 2, "--precision", "float32"]
    code, out, err = run(*arguments)
    assert code == 0 and "dev.tsv" in out, err
    assert "settings: cosent-cross" in err and "no verdict: the start has no score of its own" in err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["settings"]["temperature"] == 1, "the paper's code has 1 for cross-encoders"
    assert run("similarity", tmp_path / "run", "a dog", "a cat")[0] == 0
    code, _, err = run(*arguments, "--overwrite", "--loss", "mse")
    assert code == 2
    assert "The losses of encoder cross are cosent, cross-entropy, lambda, margin-mse; received mse." in err
