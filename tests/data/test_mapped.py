"""Many sentences are memory-mapped from a file, with the same results as in memory."""

import os
import subprocess
import sys

import pytest

from samesense.data import mapped
from samesense.data.mapped import is_mapped
from samesense.data.sentences import read_unlabelled
from samesense.recipes.methods import METHODS
from tests.conftest import WORDS

TEXTS = [f"{WORDS[row % 40]} {WORDS[row % 7]} {row}" for row in [*range(300), *range(100)]]


@pytest.fixture
def file(tmp_path):
    lines = [*TEXTS[:350], "", "   ", "x" * 200, *TEXTS[350:]]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "texts.txt"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(mapped, "MOST_IN_MEMORY", 60)
    monkeypatch.setattr(mapped, "BLOCK", 37)


@pytest.mark.parametrize("keep_repeated", [False, True])
def test_the_same_sentences_with_the_same_fingerprint(file, few, monkeypatch, keep_repeated):
    mapped_sentences = read_unlabelled(file, keep_repeated=keep_repeated, max_chars=100)
    assert is_mapped(mapped_sentences.texts)
    monkeypatch.setattr(mapped, "MOST_IN_MEMORY", 1000)
    held = read_unlabelled(file, keep_repeated=keep_repeated, max_chars=100)
    assert (
        isinstance(held.texts, list)
        and list(mapped_sentences.texts) == held.texts
        and len(held) == (400 if keep_repeated else 300)
    )
    assert mapped_sentences.sha256 == held.sha256
    assert (
        mapped_sentences.left_out
        == held.left_out
        == {"empty": 2, "too short or too long": 1, "repeated": 0 if keep_repeated else 100}
    )
    assert (
        mapped_sentences.take([5, 299, 5]).texts
        == held.take([5, 299, 5]).texts
        == [held.texts[row] for row in (5, 299, 5)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simcse", "rankcse"])
def test_training_on_them_ends_in_the_same_model(file, few, monkeypatch, tiny_trunk, tmp_path, method):
    options = {"model": str(tiny_trunk), "max_steps": 3, "batch_size": 8, "precision": "float32", "standardize": "none"}
    options |= {"teacher": (str(tiny_trunk),)} if method == "rankcse" else {}
    ends = []
    for most in (60, 1000):
        monkeypatch.setattr(mapped, "MOST_IN_MEMORY", most)
        settings = METHODS[method].settings(**options)
        run = METHODS[method].run(read_unlabelled(file), settings, tmp_path / str(most))
        ends.append((run.folder / "model" / "model.safetensors").read_bytes())
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_the_command_trains_on_them_and_leaves_no_file(file, few, tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    """Another process, in which the limit is low; dev pairs are looked for among them."""
    code = (
        "import sys; from samesense.data import mapped; mapped.MOST_IN_MEMORY = 60; "
        "from samesense.cli.main import main; sys.argv[0] = 'samesense'; main()"
    )
    words = ["train", str(file), "--model", str(tiny_trunk), "--dev", str(toy_pairs / "dev.tsv"), "--max-steps", "2"]
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--output", str(tmp_path / "out")],
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "301 sentences" in done.stderr and "also in dev: 0 of its" in done.stderr
    assert not list((tmp_path / "scratch").glob("samesense-*"))
