import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from samesense.encoder import embedding_cache as module
from samesense.encoder.assembly.build import build
from samesense.encoder.embedding_cache import EmbeddingCache
from samesense.encoder.saving.storage import model_identity
from samesense.errors import ModelError

TEXTS = [f"text {'x' * (i % 37)} {i}" for i in range(500)]


def vector(text):
    return np.random.default_rng(list(text.encode("utf-8", "surrogatepass"))).normal(size=6).astype(np.float32)


class Counting:
    """An encoder that records its calls, and stops after some of them if told to."""

    def __init__(self, calls=10**9):
        self.seen, self.left = [], calls

    def __call__(self, texts):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        self.seen.append(list(texts))
        return np.array([vector(text) for text in texts]).reshape(len(texts), 6)


def expected(texts):
    return np.array([vector(text) for text in texts])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_TEXTS", 64)


@pytest.mark.parametrize("disk", [False, True])
def test_each_distinct_text_is_encoded_once_and_rows_keep_their_order(tmp_path, disk):
    inner = Counting()
    encode = EmbeddingCache(inner, folder=tmp_path if disk else None, identity="m")
    draw = np.random.default_rng(0)
    for _ in range(30):
        texts = list(draw.choice(TEXTS, size=draw.integers(1, 60)))
        np.testing.assert_array_equal(encode(texts), expected(texts))
    texts_encoded = [text for call in inner.seen for text in call]
    assert len(texts_encoded) == len(set(texts_encoded)) == len(encode)


def test_threads_that_ask_for_the_same_texts_get_their_own_rows():
    both = threading.Barrier(2)

    def slow(texts):
        with suppress(threading.BrokenBarrierError):  # both encode the first text before either keeps it
            both.wait(timeout=0.5)
        return expected(texts)

    encode = EmbeddingCache(slow)
    requests = [["the cat"], ["the cat", "a dog"]]
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(encode, requests))
    for texts, rows in [*zip(requests, results, strict=True), (["a dog"], encode(["a dog"]))]:
        np.testing.assert_array_equal(rows, expected(texts))


def test_fill_takes_the_texts_of_several_tasks_the_longest_first():
    inner = Counting()
    finished = []
    encode = EmbeddingCache(inner)
    assert encode.fill([*TEXTS, *TEXTS[::-1]], on_progress=finished.append) == 500 == sum(finished)
    lengths = [len(text) for call in inner.seen for text in call]
    assert lengths == sorted(lengths, reverse=True)
    assert max(len(call) for call in inner.seen) == 64
    assert encode.fill(TEXTS) == 0
    np.testing.assert_array_equal(encode(TEXTS), expected(TEXTS))


def test_what_is_returned_is_a_copy():
    encode = EmbeddingCache(Counting())
    encode(["a"])[:] = 0
    np.testing.assert_array_equal(encode(["a"]), expected(["a"]))


def test_no_texts():
    assert len(EmbeddingCache(Counting())([])) == 0


def test_another_run_finds_everything_on_disk(tmp_path):
    EmbeddingCache(Counting(), folder=tmp_path, identity="m").fill(TEXTS)
    again = EmbeddingCache(Counting(calls=0), folder=tmp_path, identity="m")
    np.testing.assert_array_equal(again(TEXTS[::-1]), expected(TEXTS[::-1]))


def test_texts_are_told_apart_to_the_letter(tmp_path):
    texts = ["a", "a ", "A", "\u00e9", "e\u0301", "a\x00b", "a\x00", "", "\ud800"]
    EmbeddingCache(Counting(), folder=tmp_path, identity="m").fill(texts)
    np.testing.assert_array_equal(EmbeddingCache(Counting(0), folder=tmp_path, identity="m")(texts), expected(texts))


def test_another_identity_finds_nothing(tmp_path):
    EmbeddingCache(Counting(), folder=tmp_path, identity="m float32").fill(TEXTS)
    other_identity = Counting()
    EmbeddingCache(other_identity, folder=tmp_path, identity="m bfloat16").fill(TEXTS[:3])
    assert sum(map(len, other_identity.seen)) == 3
    assert sorted(path.read_text() for path in tmp_path.glob("*/identity.txt")) == ["m bfloat16\n", "m float32\n"]


def test_an_interrupted_run_loses_one_block_at_most(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        EmbeddingCache(Counting(calls=3), folder=tmp_path, identity="m").fill(TEXTS)
    remaining = Counting()
    encode = EmbeddingCache(remaining, folder=tmp_path, identity="m")
    assert encode.fill(TEXTS) == 500 - 3 * 64
    np.testing.assert_array_equal(encode(TEXTS), expected(TEXTS))


KILLED = """
import os, sys
import numpy as np
from pathlib import Path
from samesense.encoder import embedding_cache as module
module.BLOCK_TEXTS = 10
real, left = Path.replace, [int(sys.argv[2])]
def replace(self, target):
    if left[0] == 0:
        os._exit(9)
    left[0] -= 1
    return real(self, target)
Path.replace = replace
encode = lambda texts: np.array([[float(text), 1.0] for text in texts], dtype=np.float32)
module.EmbeddingCache(encode, folder=Path(sys.argv[1]), identity="m").fill(str(i) for i in range(100, 150))
"""


@pytest.mark.parametrize("after", [0, 2, 5])
def test_a_kill_at_any_rename_leaves_whole_blocks(tmp_path, after):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(after)], check=False)
    assert done.returncode == 9
    fresh = []

    def encode(texts):
        fresh.extend(texts)
        return np.array([[float(text), 1.0] for text in texts], dtype=np.float32)

    texts = [str(i) for i in range(100, 150)]
    vectors = EmbeddingCache(encode, folder=tmp_path, identity="m")(texts)
    np.testing.assert_array_equal(vectors[:, 0], np.arange(100, 150))
    assert len(fresh) == 50 - 10 * (max(0, after - 1) // 2)  # the first rename is the identity's, then two a block


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path):
    first, second = (EmbeddingCache(Counting(), folder=tmp_path, identity="m") for _ in range(2))
    first.fill(TEXTS[:300])
    second.fill(TEXTS[200:])
    first.fill(TEXTS)
    np.testing.assert_array_equal(EmbeddingCache(Counting(0), folder=tmp_path, identity="m")(TEXTS), expected(TEXTS))
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if name.startswith(".")]


@pytest.mark.parametrize("kind", ["vectors", "keys"])
@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "absent"])
def test_a_damaged_block_is_named_and_encoded_again(tmp_path, caplog, kind, damage):
    EmbeddingCache(Counting(), folder=tmp_path, identity="m").fill(TEXTS[:20])
    (path,) = tmp_path.glob(f"*/*.{kind}.npy")
    content = bytearray(path.read_bytes())
    content[-3] ^= 64
    path.write_bytes({"cut": content[:100], "flipped": content, "empty": b"", "absent": b""}[damage])
    if damage == "absent":
        path.unlink()
    np.testing.assert_array_equal(
        EmbeddingCache(Counting(), folder=tmp_path, identity="m")(TEXTS[:20]), expected(TEXTS[:20])
    )
    assert (damage == "absent" and kind == "keys") or f"{path.name.partition('.')[0]}.keys.npy: a block" in caplog.text
    np.testing.assert_array_equal(
        EmbeddingCache(Counting(0), folder=tmp_path, identity="m")(TEXTS[:20]), expected(TEXTS[:20])
    )


def test_broken_vectors_are_refused_and_not_kept(tmp_path):
    def broken(texts):
        rows = expected(texts)
        rows[-1, 0] = np.nan
        return rows

    with pytest.raises(ModelError, match="holds a NaN"):
        EmbeddingCache(broken, folder=tmp_path, identity="m").fill(["a", "b"])
    assert not list(tmp_path.glob("*/*.npy"))
    with pytest.raises(ModelError, match="one row for each text"):
        EmbeddingCache(lambda texts: np.ones((1, 2), dtype=np.float32)).fill(["a", "b"])
    widths = iter((2, 3))
    growing = EmbeddingCache(lambda texts: np.ones((len(texts), next(widths)), dtype=np.float32))
    growing.fill(["a"])
    with pytest.raises(ModelError, match="2 dimensions before and 3 now"):
        growing.fill(["b"])


def test_a_zero_vector_is_a_vector():
    np.testing.assert_array_equal(
        EmbeddingCache(lambda texts: np.zeros((len(texts), 2), dtype=np.float32))([""]), [[0, 0]]
    )


def test_a_folder_needs_an_identity(tmp_path):
    with pytest.raises(ModelError, match="with an identity; received an empty one"):
        EmbeddingCache(Counting(), folder=tmp_path)


def test_identity_is_equal_for_equal_models_only(tiny_trunk, tmp_path):
    def fresh():
        return build(str(tiny_trunk), device="cpu")

    model = fresh()
    first = model_identity(model, "float32")
    model.encode(["a dog", "one two some no not man"])  # leaves padding and truncation in the tokenizer
    assert first == model_identity(model, "float32") == model_identity(fresh(), "float32")
    model.save(str(tmp_path / "copy"))
    copy = SentenceTransformer(str(tmp_path / "copy"), device="cpu")
    assert first == model_identity(copy, "float32")
    identities = {first, model_identity(model, "bfloat16")}
    model.max_seq_length = 9
    identities.add(model_identity(model, "float32"))
    model.prompts["ask"], model.default_prompt_name = "the ", "ask"
    identities.add(model_identity(model, "float32"))
    other_model = fresh()
    with torch.no_grad():
        next(other_model.parameters())[5, 5] += 1e-6
    identities.add(model_identity(other_model, "float32"))
    pooled = build(str(tiny_trunk), pooling="cls", device="cpu")
    identities.add(model_identity(pooled, "float32"))
    identities.add(model_identity(fresh().to(torch.bfloat16), "float32"))
    truncating = fresh()
    truncating.tokenizer.truncation_side = "left"
    identities.add(model_identity(truncating, "float32"))
    assert len(identities) == 8


def test_what_another_has_written_since_is_found(tmp_path):
    """A model and its whitening are opened together and judged one after the other."""
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts])

    first, second = (EmbeddingCache(encode, folder=tmp_path, identity="model") for _ in range(2))
    first(["one", "three"])
    np.testing.assert_array_equal(second(["three", "one"]), first(["three", "one"]))
    assert calls == [["three", "one"]]


def test_what_is_no_text_is_refused():
    with pytest.raises(ModelError, match="Only strings can be encoded; received 3 of type int"):
        EmbeddingCache(lambda texts: np.ones((len(texts), 2)))(["a", 3])


def test_identity_tells_how_many_numbers_are_kept(tiny):
    whole = model_identity(tiny, "float32")
    tiny.truncate_dim = 8
    assert model_identity(tiny, "float32") != whole
