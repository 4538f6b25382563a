"""An exported folder needs neither torch nor transformers: run where importing them fails."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from samesense.encoder.encode import encode
from tests.messages import without_progress

BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers", "sentence_transformers", "onnx", "onnxscript", "datasets"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from samesense.cli.main import main
main(sys.argv[1:])
"""


def run(*arguments):
    words = [sys.executable, "-c", BLOCKED, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))


@pytest.mark.slow
def test_similarity_and_encode_of_an_exported_folder(exported, sentences, tmp_path):
    folder, texts = tmp_path / "exported", tmp_path / "texts.txt"
    shutil.copytree(exported, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    texts.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    rows = encode(SentenceTransformer(str(exported), device="cpu"), sentences, precision="float32")
    done = run("encode", folder, texts, "--output", tmp_path / "rows.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "rows.npy"), rows, atol=2e-6)
    done = run("encode", folder, texts, "--output", tmp_path / "shards", "--shard-size", 16, "--workers", 2)
    assert done.returncode == 0, done.stderr
    files = sorted((tmp_path / "shards" / "shards").iterdir())
    np.testing.assert_allclose(np.concatenate([np.load(file) for file in files]), rows, atol=2e-6)
    first, second = rows[:2] / np.linalg.norm(rows[:2], axis=1, keepdims=True)
    done = run("similarity", folder, *sentences[:2])
    assert float(done.stdout) == pytest.approx(float(first @ second), abs=1e-4), done.stderr
    done = run("index", "build", tmp_path / "collection", texts, "--model", folder)
    assert done.returncode == 0, done.stderr
    done = run("index", "query", tmp_path / "collection", sentences[1], "--top", "1")
    assert sentences[1] in done.stdout, done.stderr
    done = run("encode", folder, texts, "--backend", "torch", "--output", tmp_path / "none.npy")
    assert (done.returncode, "is needed here" in done.stderr) == (2, True)


def test_few_texts_need_no_torch(tiny_trunk, tmp_path):
    (tmp_path / "texts.txt").write_text("a dog\n", encoding="utf-8")
    for command in (
        ("encode", tiny_trunk, tmp_path / "texts.txt", "--output", tmp_path / "rows.npy"),
        ("similarity", tiny_trunk, "a dog", "a cat"),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr


def test_what_needs_torch_says_so_in_one_sentence(tiny_trunk, toy_pairs, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("a dog\n")
    for command in (
        ("encode", tiny_trunk, texts, "--output", tmp_path / "rows.npy", "--deterministic"),
        ("similarity", tiny_trunk, "a", "b", "--precision", "bfloat16"),
        ("evaluate", tiny_trunk, "--data", toy_pairs / "dev.tsv"),
    ):
        done = run(*command)
        assert done.returncode == 2, done.stderr
        messages = without_progress(done.stderr)
        assert len(messages) == 1 and "pip install 'samesense[torch]'" in messages[0], done.stderr
