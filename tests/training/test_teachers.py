"""The teacher cache: a corpus is encoded once, resumed after a kill, keyed by teacher, by one process at a time."""

import json
import logging
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from samesense.data.sentences import Sentences
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.encode import encode
from samesense.encoder.maps.whitening import Whitening
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.inference.names import split_maps
from samesense.recipes.teachers import open_teacher
from samesense.training import teachers
from samesense.training.teachers import Teacher, TeacherStore, teacher_store
from tests.conftest import WORDS
from tests.messages import listen


def corpus(texts):
    return Sentences(texts=list(texts), source="made", name="made")


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def texts():
    """Seventy different sentences of many lengths, in no order of length."""
    return [" ".join(WORDS[(i * 7 + k) % len(WORDS)] for k in range(1 + (i * 5) % 9)) + f" {i}" for i in range(70)]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(teachers, "BLOCK_TEXTS", 16)


class Counting:
    """A teacher that counts what it encodes: the vector of a text depends on the text and the name only."""

    def __init__(self, name="counting", fail_at=None, dim=6):
        self.calls, self.fail_at, self.dim = [], fail_at, dim
        self.teacher = Teacher(name, f"identity of {name}", lambda texts, work: self)

    def __call__(self, texts):
        self.calls.append(list(texts))
        if len(self.calls) == self.fail_at:
            raise KeyboardInterrupt
        name = self.teacher.name
        seeds = [[ord(c) for c in name + text] for text in texts]
        return np.array([np.random.default_rng(s).normal(3, 5, self.dim) for s in seeds], dtype=np.float32)


def test_rows_are_the_teachers_own_vectors(tiny_trunk, texts, tmp_path, small_blocks):
    teacher = open_teacher(str(tiny_trunk), precision="float32")
    store = teacher_store(teacher, corpus(texts), tmp_path, dtype="float32")
    expected = unit(encode(build(str(tiny_trunk)), texts, precision="float32"))
    numbers = [5, 69, 0, 5, 33]
    rows = store.rows(torch.tensor(numbers))
    assert (rows.dtype, store.dim, len(store), store.name) == (torch.float32, 32, 70, str(tiny_trunk))
    np.testing.assert_allclose(rows, expected[numbers], atol=2e-6)
    np.testing.assert_array_equal(store.rows(np.array(numbers)), rows)
    assert store.identity == open_teacher(str(tiny_trunk), precision="float32").identity
    assert store.rows(torch.tensor([], dtype=torch.long)).shape == (0, 32)


def test_float16_costs_a_cosine_some_1e_5(texts, tmp_path):
    teacher = Counting(dim=384)
    whole = teacher_store(teacher.teacher, corpus(texts), tmp_path, dtype="float32").rows(np.arange(70))
    half = teacher_store(teacher.teacher, corpus(texts), tmp_path)
    assert np.load(half.folder / "vectors.npy").dtype == np.float16
    rows = half.rows(np.arange(70))
    torch.testing.assert_close(rows.norm(dim=1), torch.ones(70), atol=1e-6, rtol=0)
    assert (rows @ rows.T - whole @ whole.T).abs().max() < 1e-4
    assert len(list(tmp_path.glob("*/vectors.npy"))) == 2


def test_large_vectors_fit_into_float16(texts, tmp_path):
    big = Teacher("big", "big", lambda texts, work: lambda texts: np.full((len(texts), 4), 1e30, dtype=np.float32))
    assert torch.equal(teacher_store(big, corpus(texts), tmp_path).rows(np.array([3])), torch.full((1, 4), 0.5))


def test_a_corpus_is_encoded_once_longest_first(texts, tmp_path, small_blocks):
    teacher = Counting()
    messages = listen()
    teacher_store(teacher.teacher, corpus(texts), tmp_path)
    assert [len(call) for call in teacher.calls] == [16, 16, 16, 16, 6]
    flat = [text for call in teacher.calls for text in call]
    assert sorted(flat) == sorted(texts)
    assert [len(text) for text in flat] == sorted(map(len, texts), reverse=True)
    again = teacher_store(teacher.teacher, corpus(texts), tmp_path)
    assert len(teacher.calls) == 5
    assert messages == [
        f"teacher counting: encoding 70 of 70 sentences, into {again.folder}",
        f"teacher counting: vectors of 70 sentences found in {again.folder}",
    ]
    assert sorted(path.name for path in again.folder.iterdir()) == ["teacher.json", "vectors.npy"]
    about = json.loads((again.folder / "teacher.json").read_text())
    assert (about["name"], about["texts"], about["dtype"]) == ("counting", corpus(texts).sha256, "float16")


def test_another_text_teacher_or_type_is_another_store(texts, tmp_path):
    first = teacher_store(Counting().teacher, corpus(texts), tmp_path)
    other_stores = [
        teacher_store(Counting().teacher, corpus(texts[::-1]), tmp_path),
        teacher_store(Counting().teacher, corpus([*texts[:-1], texts[-1] + "."]), tmp_path),
        teacher_store(Counting().teacher, corpus(texts[:-1]), tmp_path),
        teacher_store(Counting("other").teacher, corpus(texts), tmp_path),
        teacher_store(Counting().teacher, corpus(texts), tmp_path, dtype="float32"),
    ]
    assert len({first.folder, *(store.folder for store in other_stores)}) == 6
    np.testing.assert_array_equal(other_stores[0].rows(np.arange(70)), first.rows(np.arange(70)[::-1].copy()))
    assert not torch.allclose(other_stores[3].rows(np.arange(70)), first.rows(np.arange(70)))


def test_what_was_interrupted_goes_on_and_ends_the_same(texts, tmp_path, small_blocks):
    whole = teacher_store(Counting().teacher, corpus(texts), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        teacher_store(Counting(fail_at=4).teacher, corpus(texts), tmp_path / "cut")
    remaining = Counting()
    messages = listen()
    resumed = teacher_store(remaining.teacher, corpus(texts), tmp_path / "cut")
    assert [len(call) for call in remaining.calls] == [16, 6]
    assert messages[0].startswith("teacher counting: encoding 22 of 70 sentences")
    for name in ("vectors.npy", "teacher.json"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes()


KILLED = """
import os, signal, sys
from pathlib import Path
from samesense.training import teachers
from samesense.training.teachers import Teacher
from tests.training.test_teachers import Counting, corpus
teachers.BLOCK_TEXTS = 16
class Deadly(Counting):
    def __call__(self, texts):
        if len(self.calls) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(texts)
texts = Path(sys.argv[1]).read_text().split("\\n")
teachers.teacher_store(Deadly().teacher, corpus(texts), Path(sys.argv[2]))
"""


@pytest.mark.posix
@pytest.mark.slow
def test_a_kill_loses_one_block_and_no_lock_stays(texts, tmp_path, small_blocks):
    (tmp_path / "texts").write_text("\n".join(texts))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "texts"), str(tmp_path / "cut")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    remaining = Counting()
    resumed = teacher_store(remaining.teacher, corpus(texts), tmp_path / "cut")
    assert [len(call) for call in remaining.calls] == [16, 6]
    whole = teacher_store(Counting().teacher, corpus(texts), tmp_path / "whole")
    assert (resumed.folder / "vectors.npy").read_bytes() == (whole.folder / "vectors.npy").read_bytes()


def test_a_second_one_waits_and_says_so_and_encodes_nothing(texts, tmp_path):
    begun = threading.Event()
    go_on = threading.Event()
    waits = threading.Event()
    first = Counting()
    second = Counting()
    stores = {}

    def slowly(rows):
        begun.set()
        assert go_on.wait(60)
        return first(rows)

    slow = Teacher("counting", first.teacher.identity, lambda texts, work: slowly)
    messages = listen()

    class Waits(logging.Handler):
        def emit(self, record):
            if "waiting" in record.getMessage():
                waits.set()

    logging.getLogger("samesense").addHandler(Waits())
    first_thread = threading.Thread(target=lambda: stores.update(one=teacher_store(slow, corpus(texts), tmp_path)))
    second_thread = threading.Thread(
        target=lambda: stores.update(other=teacher_store(second.teacher, corpus(texts), tmp_path))
    )
    first_thread.start()
    assert begun.wait(60)
    second_thread.start()
    assert waits.wait(60)
    go_on.set()
    first_thread.join(60)
    second_thread.join(60)
    waiting = "teacher counting: waiting for another process that encodes the same sentences"
    assert any(line.startswith(waiting) for line in messages)
    assert (len(first.calls), second.calls) == (1, [])
    assert torch.equal(stores["one"].rows(np.arange(70)), stores["other"].rows(np.arange(70)))


def test_files_are_teachers_too_and_known_by_their_content(texts, tmp_path):
    rows = np.random.default_rng(0).normal(size=(70, 5)).astype(np.float32)
    for name, shift in (("a.npz", 0), ("copy.npz", 0), ("b.npz", 1)):
        np.savez(tmp_path / name, texts=np.array(texts), embeddings=rows + shift)
    np.save(tmp_path / "c.npy", rows)
    (tmp_path / "c.txt").write_text("\n".join(texts))
    (tmp_path / "words.txt").write_text("".join(f"{word} {i} 1\n" for i, word in enumerate(WORDS)))
    store = teacher_store(open_teacher(f"vectors:{tmp_path / 'a.npz'}"), corpus(texts), tmp_path / "t", dtype="float32")
    np.testing.assert_allclose(store.rows(np.arange(70)), unit(rows), atol=1e-6)
    identity = {name: open_teacher(f"vectors:{tmp_path / name}").identity for name in ("a.npz", "b.npz", "c.npy")}
    (tmp_path / "c.txt").write_text("\n".join(texts[::-1]))
    identity["other texts"] = open_teacher(f"vectors:{tmp_path / 'c.npy'}").identity
    identity["words"] = open_teacher(f"words:{tmp_path / 'words.txt'}").identity
    identity["weighted"] = open_teacher(f"words:{tmp_path / 'words.txt'}?sif").identity
    assert len(set(identity.values())) == len(identity)
    weighted = teacher_store(open_teacher(f"words:{tmp_path / 'words.txt'}?sif"), corpus(texts), tmp_path / "t")
    assert (len(weighted), weighted.dim) == (70, 2)


def test_a_map_is_fitted_on_the_corpus(tiny_trunk, texts, tmp_path):
    teacher = open_teacher(f"{tiny_trunk}+whiten:8", precision="float32")
    store = teacher_store(teacher, corpus(texts), tmp_path, dtype="float32")
    rows = encode(build(str(tiny_trunk)), texts, precision="float32")
    np.testing.assert_allclose(store.rows(np.arange(70)), unit(Whitening.fit(rows, 8).apply(rows)), atol=1e-3)
    assert store.identity != open_teacher(f"{tiny_trunk}+whiten:4", precision="float32").identity
    assert not list(tmp_path.glob("*/work"))


def test_precision_tells_teachers_apart(tiny_trunk):
    float32, bfloat16 = (open_teacher(str(tiny_trunk), precision=p).identity for p in ("float32", "bfloat16"))
    assert float32 != bfloat16


def test_pooling_tells_teachers_apart_and_is_that_of_the_vectors(tiny_trunk, texts, tmp_path):
    default, cls = (open_teacher(str(tiny_trunk), precision="float32", pooling=pooling) for pooling in (None, "cls"))
    assert default.identity != cls.identity
    vectors = cls.encode(texts, tmp_path)(texts)
    expected = encode(build(str(tiny_trunk), pooling="cls"), texts, precision="float32")
    np.testing.assert_allclose(unit(vectors), unit(expected), atol=1e-6)
    assert split_maps("/models/c++/a+whiten:8+dim:4") == ("/models/c++/a", "+whiten:8+dim:4")
    assert split_maps("a/model") == ("a/model", "")


def test_what_cannot_teach(tiny_trunk, texts, tmp_path):
    with pytest.raises(ConfigError, match=r"a function may change between runs.*name the file: vectors:FILE"):
        open_teacher("python:json:dumps")
    with pytest.raises(ModelError, match="There is no model folder"):
        open_teacher(str(tmp_path / "absent"))
    cross = save(build_cross(str(tiny_trunk), device="cpu"), tmp_path / "cross")
    with pytest.raises(ConfigError, match=r"only scores pairs \(cross-encoder,"):
        open_teacher(str(cross))
    with pytest.raises(ConfigError, match=r"kept as float16 or float32; received 'float8'"):
        teacher_store(Counting().teacher, corpus(texts), tmp_path, dtype="float8")
    for rows, message in ((np.full((70, 2), np.nan), "holds a NaN"), (np.zeros((70, 2)), "is all zeros")):
        broken = Teacher("broken", message, lambda _, work, rows=rows: lambda texts: rows)
        with pytest.raises(ModelError, match=message):
            teacher_store(broken, corpus(texts), tmp_path)


def test_a_row_of_another_corpus_is_refused(texts, tmp_path):
    store = teacher_store(Counting().teacher, corpus(texts), tmp_path)
    for rows in ([0, 70], [-1, 2]):
        with pytest.raises(ValueError, match=r"The rows of this store are 0 to 69; received"):
            store.rows(torch.tensor(rows))


def test_a_damaged_store_is_refused(texts, tmp_path):
    store = teacher_store(Counting().teacher, corpus(texts), tmp_path)
    content = (store.folder / "vectors.npy").read_bytes()
    (store.folder / "vectors.npy").write_bytes(content[:-100])
    with pytest.raises(ModelError, match=r"damaged.*Delete it; it will be made again"):
        TeacherStore(store.folder)
