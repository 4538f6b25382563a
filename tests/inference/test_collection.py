import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, ModelError, OutputError
from samesense.files import only_writer
from samesense.inference.collection import writer as collection_changes
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.collection.manifest import read_manifest
from tests.inference.made_vectors import cosines, embedder, encode, vector

TEXTS = [f"sentence {i % 150}" for i in range(200)]  # fifty of them come twice


def entries(texts=TEXTS):
    return [Entry(text, None, {"parity": i % 2, "tag": f"t{i % 5}"}) for i, text in enumerate(texts)]


def brute(kept, query, top):
    """(id, score) of the nearest of ``kept``, a dictionary from id to text."""
    scores = dict(zip(kept, cosines(vector(query), [vector(text) for text in kept.values()]), strict=True))
    return sorted(kept, key=lambda number: (-round(scores[number], 5), number))[:top]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # it guards against loss of power, and takes long


@pytest.fixture
def folder(tmp_path):
    Collection.build(tmp_path / "made", entries(), embedder())
    return tmp_path / "made"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_query_equals_sorting_everything(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr(collection_changes, "BLOCK_TEXTS", 64)
    collection = Collection.build(tmp_path / "made", entries(), embedder(), dtype=dtype)
    kept = dict(enumerate(TEXTS))
    queries = ["sentence 7", "something else", "sentence 149"]
    for query, answer in zip(queries, collection.query(queries, embedder(), top=12), strict=True):
        assert [one.id for one in answer] == brute(kept, query, 12)
        assert [one.text for one in answer] == [TEXTS[one.id] for one in answer]
        assert [dict(one.metadata) for one in answer] == [entries()[one.id].metadata for one in answer]
    first, second = collection.query(["sentence 7"], embedder(), top=2)[0]
    assert (first.id, second.id) == (7, 157)
    assert first.score == second.score == pytest.approx(1.0, abs=1e-4 if dtype == "float16" else 0)
    size = (tmp_path / "made/segments/000001/vectors.bin").stat().st_size
    assert size == 200 * 24 * (2 if dtype == "float16" else 4)


def test_add_delete_compact_against_a_dictionary(folder):
    """A long random history equals the same history of a plain dictionary, and a fresh reader sees the same."""
    random = np.random.default_rng(0)
    collection, kept, tags = Collection.open(folder), dict(enumerate(TEXTS)), {i: f"t{i % 5}" for i in range(200)}
    for step in range(12):
        texts = [f"added {step} {i}" for i in range(int(random.integers(1, 30)))]
        first = collection.manifest.next_id
        assert collection.add([Entry(text, metadata={"tag": "new"}) for text in texts], embedder()) == len(texts)
        kept |= {first + i: text for i, text in enumerate(texts)}
        tags |= {first + i: "new" for i in range(len(texts))}
        doomed = [int(i) for i in random.choice(list(kept), size=len(kept) // 6, replace=False)]
        assert collection.delete(doomed) == len(doomed)
        for number in doomed:
            del kept[number]
        if step == 6:
            collection.compact()
            assert len(collection.manifest.segments) == 1
        assert len(collection) == len(kept)
    fresh = Collection.open(folder)
    assert {entry.id: entry.text for entry in fresh} == kept == {entry.id: entry.text for entry in collection}
    for query in ("sentence 3", "added 4 2"):
        assert [one.id for one in fresh.query([query], embedder(), top=1000)[0]] == brute(kept, query, 1000)
        new = {number: text for number, text in kept.items() if tags[number] == "new"}
        assert [one.id for one in fresh.query([query], embedder(), top=9, where={"tag": "new"})[0]] == brute(
            new, query, 9
        )
    assert len(list((folder / "segments").iterdir())) == len(fresh.manifest.segments)


def test_half_dead_collections_and_many_segments_are_put_together(folder, monkeypatch):
    collection = Collection.open(folder)
    collection.delete(range(101))
    assert [note.rows for note in collection.manifest.segments] == [99]
    monkeypatch.setattr(collection_changes, "MOST_SEGMENTS", 3)
    for i in range(4):
        collection.add([Entry(f"more {i}")], embedder())
    assert [note.rows for note in collection.manifest.segments] == [102, 1]
    assert collection.delete(where={"parity": [0, 1]}) == 99
    assert collection.delete([entry.id for entry in collection]) == 4
    assert (len(collection), collection.manifest.segments) == (0, ())
    assert collection.query(["more 1"], embedder()) == [[]]
    collection.add([Entry("again")], embedder())
    assert [entry.id for entry in collection] == [204]  # ids are not given out twice


def test_metadata_filters(tmp_path):
    values = [1, 1.0, True, "1", None, ["a"], {"b": 2}, 1.5, "é", ""]
    texts = [Entry(f"text {i}", metadata={"v": value}) for i, value in enumerate(values)] + [Entry("bare")]
    collection = Collection.build(tmp_path / "made", texts, embedder())

    def ids(**where):
        return sorted(one.id for one in collection.query(["text 0"], embedder(), top=99, where=where)[0])

    assert [ids(v=value) for value in (1, 1.0, True, "1", None, 1.5, "é", "", {"b": 2})] == [
        [0, 1], [0, 1], [2], [3], [4], [7], [8], [9], [6],
    ]  # fmt: skip
    assert ids(v=[1, "é", "no such value"]) == [0, 1, 8]
    assert ids(v="no such value") == []
    with pytest.raises(DataError, match=r"No text has metadata named 'w'\. There are: v"):
        ids(w=1)
    with pytest.raises(DataError, match="No text has metadata named 'w'"):
        collection.delete(where={"w": 1})


def test_ids_of_the_user_and_automatic_ones(tmp_path):
    collection = Collection.build(tmp_path / "made", [Entry("a", 7), Entry("b"), Entry("c", 3), Entry("d")], embedder())
    assert {entry.id: entry.text for entry in collection} == {7: "a", 8: "b", 3: "c", 9: "d"}
    for twice in ([Entry("x", 3)], [Entry("x", 20), Entry("y", 20)]):
        with pytest.raises(DataError, match="Every text has an id of its own"):
            collection.add(twice, embedder())
    collection.delete([3])
    collection.add([Entry("c again", 3)], embedder())
    assert collection.get(3).text == "c again"
    with pytest.raises(DataError, match="no text with the id 4"):
        collection.get(4)
    for unknown in ([3, 4], [-1], [2**70]):
        with pytest.raises(DataError, match="Nothing was deleted"):
            collection.delete(unknown)
    assert len(collection) == 4


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry(" "), "text 2: a text that is not empty is needed"),
        (Entry("x", -1), "an id is a whole number from 0"),
        (Entry("x", True), "an id is a whole number from 0"),
        (Entry("x", 2**63 - 1), "leave room for the next"),
        (Entry("x", metadata={"n": float("nan")}), "must be JSON"),
        (Entry("x", metadata={"n": b"bytes"}), "must be JSON"),
        (Entry("x", metadata={1: "one"}), "names of metadata are texts"),
        (Entry("half \ud800"), "must be JSON: whole characters"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(folder, entry, words):
    before = read_manifest(folder)
    collection = Collection.open(folder)
    with pytest.raises(DataError, match=words):
        collection.add([Entry("fine"), entry], embedder())
    assert read_manifest(folder) == before
    assert len(collection.query(["fine"], embedder(), top=999)[0]) == 200
    collection.add([Entry("fine")], embedder())
    assert sorted(path.name for path in (folder / "segments").iterdir()) == ["000001", "000002"]


def test_another_model_is_refused(folder):
    collection, other = Collection.open(folder), embedder("other weights")
    for act in (lambda: collection.query(["x"], other), lambda: collection.add([Entry("x")], other)):
        with pytest.raises(ModelError, match=r"is used with the model it was built with; .* was built with 'hashed'"):
            act()
    wide = embedder(run=lambda texts: np.ones((len(texts), 5), dtype=np.float32))
    with pytest.raises(ModelError, match="vectors of 24 numbers; the model gave 5"):
        collection.add([Entry("x")], wide)
    with pytest.raises(ModelError, match="a matrix of 24 columns"):
        collection.search(np.ones((1, 5), dtype=np.float32))
    with pytest.raises(ModelError, match="with an identity"):
        Collection.build(folder, [Entry("x")], embedder(""), overwrite=True)


def test_places(tmp_path, folder):
    with pytest.raises(OutputError, match=r"holds a collection\. Add to it, or replace it"):
        Collection.build(folder, entries(), embedder())
    assert len(Collection.build(folder, entries(TEXTS[:3]), embedder("new"), overwrite=True)) == 3
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(OutputError, match=r"not empty: it holds thesis\.txt"):
            Collection.build(tmp_path / "full", entries(), embedder(), overwrite=overwrite)
    with pytest.raises(DataError, match="holds no collection"):
        Collection.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no text to keep"):
        Collection.build(tmp_path / "empty", [], embedder())
    assert len(Collection.build(tmp_path / "empty", entries(), embedder())) == 200


def test_misuse(folder):
    collection = Collection.open(folder)
    with pytest.raises(ConfigError, match="At least one text must be asked for; received 0"):
        collection.query(["x"], embedder(), top=0)
    with pytest.raises(DataError, match="query 2 is empty"):
        collection.query(["x", "  "], embedder())
    for ids, where in (([], None), ([1], {"parity": 1})):
        with pytest.raises(ConfigError, match="give one of the two"):
            collection.delete(ids, where=where)
    assert collection.query([], embedder()) == []


def test_damage_is_named(folder):
    path = folder / "segments/000001/vectors.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match="do not fit together"):
        Collection.open(folder)
    path.unlink()
    with pytest.raises(DataError, match=r"vectors\.bin is missing"):
        Collection.open(folder)
    (folder / "manifest.json").write_text("{")
    for act in (
        lambda: Collection.open(folder),
        lambda: Collection.build(folder, entries(), embedder(), overwrite=True),
    ):
        with pytest.raises(DataError, match=r"manifest\.json is damaged, .* anew in another folder, or delete"):
            act()


def test_one_writer_at_a_time_and_readers_go_on(folder, monkeypatch):
    monkeypatch.setattr(collection_changes, "WAIT", 0.05)
    reader = Collection.open(folder)
    started, go_on = threading.Event(), threading.Event()

    def slow(texts):
        started.set()
        assert go_on.wait(30)
        return encode(texts)

    writer = threading.Thread(target=lambda: Collection.open(folder).add([Entry("late")], embedder(run=slow)))
    writer.start()
    assert started.wait(30)
    with pytest.raises(OutputError, match="one writer at a time"):
        Collection.open(folder).delete([0])
    assert len(Collection.open(folder)) == len(reader.query(["x"], embedder(), top=999)[0]) == 200
    go_on.set()
    writer.join()
    assert len(reader.query(["x"], embedder(), top=999)[0]) == 200
    assert (reader.refresh(), reader.refresh(), len(reader)) == (True, False, 201)


def test_an_open_reader_outlives_a_compaction(folder):
    reader = Collection.open(folder)
    writer = Collection.open(folder)
    writer.delete(range(150))
    assert not (folder / "segments/000001").exists()
    assert [one.id for one in reader.query(["sentence 7"], embedder(), top=2)[0]] == [7, 157]
    assert len(reader.query(["sentence 7"], embedder(), top=999, where={"parity": 0})[0]) == 100


def test_a_lock_of_this_process_is_given_back_after_a_failure(folder):
    with pytest.raises(RuntimeError), only_writer(folder, 1):
        raise RuntimeError
    with only_writer(folder, 1):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_killed_writer_leaves_the_state_before_or_after(tmp_path, pytestconfig):
    """See killed_writer.py: killed at its file operations, each one with stride 1, and by SIGKILL at random moments."""
    stride, kills = (1, 4) if pytestconfig.getoption("--runslow") else (9, 1)
    done = subprocess.run(
        [sys.executable, "-m", "tests.inference.killed_writer", str(tmp_path), str(stride), str(kills)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before, after, killed = map(int, done.stdout.split())
    assert before * stride >= 100
    assert after >= 1
    assert killed == kills


def test_no_torch_is_imported_where_vectors_are_given():
    code = (
        "import sys; import samesense.inference.collection.collection, samesense.inference.search.mining, "
        "samesense.inference.search.mining, samesense.cli.index, samesense.cli.mine, samesense.cli.cluster; "
        "print([m for m in ('torch', 'sentence_transformers', 'sklearn', 'usearch') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
