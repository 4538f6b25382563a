import os
from functools import partial

import numpy as np
import pytest

from samesense.errors import DataError, MissingExtraError
from samesense.inference.collection import store, writer
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.search import hnsw as search_approximate
from tests.inference.made_vectors import embedder, encode

pytest.importorskip("usearch")
TEXTS = [f"text {i % 500}" for i in range(600)]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def collection(tmp_path, monkeypatch):
    build = partial(search_approximate.Graph.build, threads=1)  # several threads give another graph each time
    monkeypatch.setattr(search_approximate.Graph, "build", build)
    entries = [Entry(text, metadata={"half": i % 2}) for i, text in enumerate(TEXTS)]
    return Collection.build(tmp_path / "made", entries, embedder(), approximate="always")


def ids(collection, **options):
    return [
        [hit.id for hit in answer] for answer in collection.query(["text 3", "other"], embedder(), top=10, **options)
    ]


def counted(vectors, sample, answers):
    """Recall@10 by hand."""
    hits = 0
    for row, neighbours in zip(sample, answers, strict=True):
        scores = vectors.astype(np.float64) @ vectors[row]
        scores[row] = -2
        tenth = np.sort(scores)[-10]
        hits += min(10, sum(scores[row_found] >= tenth - 1e-7 for row_found in neighbours if row_found != row))
    return hits / 10 / len(sample)


def test_recall_is_what_a_count_by_hand_gives(collection):
    about = collection.about()
    vectors = encode(TEXTS)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sample = np.sort(np.random.default_rng(0).choice(600, size=200, replace=False))
    collection.query(["text 3"], embedder())
    answers = collection._reader.graph.search(vectors[sample], 11)
    assert about["recall_at_10"] == pytest.approx(counted(vectors, sample, answers), abs=1e-9)
    assert about["recall_queries"] == 200
    assert about["recall_at_10"] >= 0.95
    assert f"recall@10 {about['recall_at_10']:.3f} on 200 sampled texts" in about["search"]


def test_texts_are_counted_once_until_the_collection_changes(collection):
    counts = []
    collection._reader.db.set_trace_callback(lambda query: counts.append("count(*)" in query))
    for _ in range(3):
        ids(collection)
    assert sum(counts) == 1
    collection.delete([1])
    counts.clear()
    for _ in range(2):
        ids(collection)
    assert sum(counts) == 1


def test_a_worse_search_has_a_lower_recall(collection):
    collection.query(["text 3"], embedder())
    sample = np.arange(0, 600, 7)
    vectors = search_approximate.unit_rows(encode(TEXTS))
    rows, queries = vectors.__getitem__, vectors[sample]
    truth = search_approximate.neighbours(queries, lambda: [(np.arange(600), vectors)], sample)

    class Blind:
        def search(self, query_vectors, count):
            return [np.arange(count) for _ in query_vectors]

    few = counted(vectors, sample, Blind().search(sample, 11))
    assert 0 < few < 0.2
    assert search_approximate.measure_recall(Blind(), rows, queries, sample, truth) == pytest.approx(few)
    assert search_approximate.measure_recall(collection._reader.graph, rows, queries, sample, truth) >= 0.95


def test_a_row_is_no_neighbour_of_its_own():
    vectors, sample = search_approximate.unit_rows(np.random.default_rng(0).normal(size=(60, 6))), np.arange(0, 60, 7)
    truth = search_approximate.neighbours(vectors[sample], lambda: [(np.arange(60), vectors)], sample)

    class Itself:
        def search(self, queries, count):
            return [np.array([row]) for row in sample]

    assert search_approximate.measure_recall(Itself(), vectors.__getitem__, vectors[sample], sample, truth) == 0


def test_scores_and_ties_are_those_of_exact_search(collection):
    assert ids(collection) == ids(collection, exact=True)
    assert ids(collection)[0][:2] == [3, 503]
    first = collection.query(["text 3"], embedder(), top=2)[0]
    assert [hit.score for hit in first] == [1.0, 1.0]


def test_later_texts_and_deletions_count_at_once(collection):
    collection.add([Entry("text 3"), Entry("other")], embedder())
    assert collection.about()["search"].endswith("2 later texts are searched exactly")
    assert ids(collection)[0][:3] == [3, 503, 600]
    assert ids(collection)[1][0] == 601
    collection.delete([3, *(hit_id for hit_id in ids(collection, exact=True)[1] if hit_id != 601)])
    assert ids(collection) == ids(collection, exact=True)
    assert 3 not in ids(collection)[0]
    where = {"half": 1}
    assert ids(collection, where=where) == ids(collection, where=where, exact=True)


def test_more_deleted_than_looked_at(collection):
    near = [hit.id for hit in collection.query(["text 3"], embedder(), top=250, exact=True)[0]]
    collection.delete(near)
    assert collection.about()["search"].startswith("approximate")
    assert ids(collection)[0] == ids(collection, exact=True)[0]


def test_compaction_and_growth_make_it_anew(collection):
    (before,) = collection.folder.glob("graph-*")
    collection.delete([0])
    collection.compact()
    (compacted,) = collection.folder.glob("graph-*")
    assert compacted != before
    assert collection.about()["search"].endswith("with expansion 64")
    collection.add([Entry(f"later {i}") for i in range(598)], embedder())
    assert collection.about()["search"].endswith("; 598 later texts are searched exactly")
    collection.add([Entry(f"new {i}") for i in range(2)], embedder())
    (grown,) = collection.folder.glob("graph-*")
    assert grown != compacted
    assert ids(collection) == ids(collection, exact=True)


def test_auto_goes_by_size(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "AUTO_ROWS", 50)
    small = Collection.build(tmp_path / "small", [Entry(f"a {i}") for i in range(49)], embedder())
    assert small.about()["search"] == "exact"
    small.add([Entry("one more")], embedder())
    assert small.about()["search"].startswith("approximate")
    monkeypatch.setattr(writer, "has_usearch", lambda: False)
    bare = Collection.build(tmp_path / "bare", [Entry(f"a {i}") for i in range(60)], embedder())
    assert "pip install 'samesense[search]'" in bare.about()["search"]


def test_without_the_extra(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(search_approximate, "has_usearch", lambda: False)
    with pytest.raises(MissingExtraError, match=r"pip install 'samesense\[search\]'"):
        Collection.build(tmp_path / "other", [Entry("a")], embedder(), approximate="always")
    bare = Collection.open(collection.folder)
    with pytest.raises(MissingExtraError):
        ids(bare)
    assert ids(bare, exact=True) == ids(collection, exact=True)


def test_a_damaged_index_is_named_and_can_be_made_anew(collection):
    (path,) = collection.folder.glob("graph-*")
    path.write_bytes(b"nothing of the kind")
    damaged = Collection.open(collection.folder)
    with pytest.raises(DataError, match="samesense index compact"):
        ids(damaged)
    assert len(ids(damaged, exact=True)[0]) == 10
    damaged.compact()
    assert ids(Collection.open(collection.folder)) == ids(collection, exact=True)
