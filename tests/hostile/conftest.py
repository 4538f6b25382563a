"""Small files of every kind that is read, models that are quick, and disks that are full or read-only."""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import WORDS


@pytest.fixture(scope="session")
def static_model(tmp_path_factory):
    """Folder of a model that averages random vectors of words."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    from samesense.encoder.saving.storage import save

    words = {word: number for number, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rows = np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=rows)], device="cpu")
    return save(model, tmp_path_factory.mktemp("hostile") / "static")


@pytest.fixture(scope="session")
def exported_static(static_model, tmp_path_factory):
    """The same, exported."""
    from samesense.inference.onnx.export import export

    folder = tmp_path_factory.mktemp("hostile") / "exported"
    export(str(static_model), folder)
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with texts, pairs and word vectors."""
    source = random.Random(0)

    def text():
        return " ".join(source.choices(WORDS, k=6))

    (tmp_path / "texts.txt").write_text("".join(f"{text()}\n" for _ in range(40)))
    rows = [f"{source.randint(0, 5)}\t{text()}\t{text()}\n" for _ in range(40)]
    (tmp_path / "pairs.tsv").write_text("score\tsentence1\tsentence2\n" + "".join(rows))
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 8))
    lines = [f"{word} {' '.join(f'{value:.3f}' for value in row)}\n" for word, row in zip(WORDS, vectors, strict=True)]
    (tmp_path / "words.vec").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def contents(here):
    """What every file here holds, by its place."""

    def read():
        return {
            str(path.relative_to(here)): path.read_bytes()
            for path in sorted(here.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }

    return read


def mounted(folder, *options):
    """Mount a disk in memory, where that is allowed."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    return shutil.which("mount") is not None and subprocess.run(words, capture_output=True).returncode == 0


def unmount(folder):
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path):
    """A function that makes a folder on a disk with this number of free kilobytes."""
    folder = tmp_path / "disk"

    def make(free):
        if not mounted(folder, "size=1m"):
            pytest.skip("a disk cannot be mounted here")
        with pytest.raises(OSError, match="No space left"), (tmp_path / "disk" / "f").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))
        os.truncate(folder / "f", (folder / "f").stat().st_size - 1024 * free)
        return folder

    yield make
    if folder.is_mount():
        unmount(folder)


@pytest.fixture
def read_only(tmp_path):
    """A folder to which nothing can be written."""
    folder = tmp_path / "sealed"
    if os.getuid():
        folder.mkdir(mode=0o500)
        yield folder
        folder.chmod(0o700)
        return
    if not mounted(folder, "size=64k", "ro"):
        pytest.skip("root may write everywhere, and a disk cannot be mounted here")
    try:
        yield folder
    finally:
        unmount(folder)


def write_json(path, content):
    path.write_text(json.dumps(content))


def json_items(value):
    """Return the (key, value) pairs of a JSON object or the (index, value) pairs of a list; empty for other values."""
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def rounds(short, long):
    """Return the rounds of a randomised test: ``long`` under ``sh scripts/hostile``."""
    return long if os.environ.get("SAMESENSE_HOSTILE") == "long" else short


def figures(name, counts):
    """Record the figures for docs/reliability.md, under ``sh scripts/hostile``."""
    if os.environ.get("SAMESENSE_HOSTILE") == "long":
        with Path(os.environ["SAMESENSE_FIGURES"]).open("a") as stream:
            stream.write(json.dumps({"name": name, **counts}) + "\n")
