"""Copies in stores that people run: everything arrives, the same vectors find it, and nothing is lost by accident."""

import json
from contextlib import closing, contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest

from samesense.cli.main import main
from samesense.errors import ConfigError, DataError, MissingExtraError, OutputError
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.stores import copy as module
from samesense.inference.stores import source
from samesense.inference.stores.copy import copy
from samesense.locks import only_writer_of
from tests.inference.made_vectors import embedder

METADATA = [
    {"topic": "weather", "year": 2020, "score": 1, "hot": True, "mixed": 1},
    {"topic": "it's", "year": 2021, "score": 1.5, "hot": False, "mixed": "1", "list": [1, "ü"]},
    {},
    {"topic": None, "year": 2021, "score": 2, "big": 2**70, "nothing": None, "to pic": "x"},
]
TEXTS = ["Rain tomorrow.", "A tab\tand a\nline.", "Quotes ' \" and \\.", "Ünïcode 人."]
MODEL = {"model": "hashed", "identity": "hashed words", "precision": "float32"}


@pytest.fixture(params=["float32", "float16"])
def folder(request, tmp_path):
    """A collection with gaps: an id that is far off, and a text that was deleted."""
    entries = [
        Entry(text, 10 * index, metadata) for index, (text, metadata) in enumerate(zip(TEXTS, METADATA, strict=True))
    ]
    collection = Collection.build(
        tmp_path / "news.index", [Entry("gone", 5), *entries], embedder(), dtype=request.param
    )
    collection.delete([5])
    return tmp_path / "news.index"


class _Parquet:
    def __init__(self, tmp_path, request):
        self.output = str(tmp_path / "news.parquet")

    def rows(self, table="news"):
        return _of_arrow(pq.read_table(self.output))

    def nearest(self, vector):
        table = pq.read_table(self.output)
        vectors = np.stack(table["vector"].to_numpy()).astype(float)
        return table["text"].to_pylist()[int(np.argmax(vectors @ vector))]


class _Lancedb:
    def __init__(self, tmp_path, request):
        self.lancedb = pytest.importorskip("lancedb")
        self.output = str(tmp_path / "news.lance")

    def _table(self, table):
        return self.lancedb.connect(self.output).open_table(table)

    def rows(self, table="news"):
        return _of_arrow(self._table(table).to_arrow())

    def nearest(self, vector):
        return self._table("news").search(vector).metric("cosine").limit(1).to_list()[0]["text"]


class _Qdrant:
    def __init__(self, tmp_path, request):
        self.client = pytest.importorskip("qdrant_client").QdrantClient
        self.output = str(tmp_path / "qdrant")

    def rows(self, table="news"):
        with closing(self.client(path=self.output)) as client:
            points, _ = client.scroll(table, limit=100, with_vectors=True)
            model = client.get_collection(table).config.metadata["samesense"]
            return model, [
                (point.id, point.payload["text"], point.payload["metadata"], point.vector) for point in points
            ]

    def nearest(self, vector):
        with closing(self.client(path=self.output)) as client:
            return client.query_points("news", query=vector.tolist(), limit=1).points[0].payload["text"]


class _Pgvector:
    def __init__(self, tmp_path, request):
        self.output = request.getfixturevalue("postgres")
        self.psycopg = pytest.importorskip("psycopg")
        with self._open() as database:
            database.execute("DROP TABLE IF EXISTS news, old")

    @contextmanager
    def _open(self):
        with self.psycopg.connect(self.output) as database:
            yield database

    def rows(self, table="news"):
        with self._open() as database:
            (model,) = database.execute("SELECT obj_description(to_regclass(%s))", (table,)).fetchone()
            records = database.execute(f"SELECT id, text, metadata, vector::text FROM {table} ORDER BY id").fetchall()
        return json.loads(model)["samesense"], [(*row[:3], json.loads(row[3])) for row in records]

    def nearest(self, vector):
        with self._open() as database:
            query = "SELECT text FROM news ORDER BY vector <=> %s::vector LIMIT 1"
            return database.execute(query, (str(vector.tolist()),)).fetchone()[0]


STORES = {"parquet": _Parquet, "lancedb": _Lancedb, "qdrant": _Qdrant, "pgvector": _Pgvector}


def _of_arrow(table):
    """(model, rows), metadata without what is null."""
    bare = [{k: v for k, v in (row or {}).items() if v is not None} for row in table["metadata"].to_pylist()]
    columns = (table["id"].to_pylist(), table["text"].to_pylist(), bare, table["vector"].to_pylist())
    return json.loads(table.schema.metadata[b"samesense"]), list(zip(*columns, strict=True))


@pytest.fixture(params=list(STORES))
def store(request, tmp_path):
    opened_store = STORES[request.param](tmp_path, request)
    opened_store.name = request.param
    return opened_store


def test_everything_arrives_and_is_found(folder, store, monkeypatch):
    monkeypatch.setattr(source, "BATCH_ROWS", 3)
    progress = []
    assert copy(folder, to=store.name, output=store.output, on_progress=progress.append) == 4
    assert progress == [3, 1]
    model, rows = store.rows()
    assert model == MODEL
    assert [row[:2] for row in rows] == [(10 * index, text) for index, text in enumerate(TEXTS)]
    half = Collection.open(folder).about()["vectors"] == "float16"
    expected = embedder().unit(TEXTS)
    np.testing.assert_allclose([row[3] for row in rows], expected, atol=1e-3 if half else 1e-6)
    assert store.nearest(expected[2]) == TEXTS[2]
    typed = [
        {"topic": "weather", "year": 2020, "score": 1.0, "hot": True, "mixed": "1"},
        {"topic": "it's", "year": 2021, "score": 1.5, "hot": False, "mixed": '"1"', "list": '[1,"ü"]'},
        {},
        {"year": 2021, "score": 2.0, "big": str(2**70), "to pic": "x"},
    ]
    if store.name in ("qdrant", "pgvector"):  # they hold JSON
        typed = METADATA
    assert [row[2] for row in rows] == typed


def test_a_table_is_not_replaced_unasked_and_the_others_stay(folder, store):
    copy(folder, to=store.name, output=store.output)
    before = store.rows()
    Collection.open(folder).delete([0])
    with pytest.raises(OutputError, match=r"there already.*`overwrite`"):
        copy(folder, to=store.name, output=store.output)
    assert store.rows() == before
    if store.name != "parquet":
        copy(folder, to=store.name, output=store.output, table="old")
        assert len(store.rows("old")[1]) == 3
        assert store.rows() == before
    copy(folder, to=store.name, output=store.output, overwrite=True)
    assert [row[0] for row in store.rows()[1]] == [10, 20, 30]


def test_a_copy_that_fails_leaves_nothing_that_looks_whole(folder, store):
    def stop(texts):
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, OutputError)):  # LanceDB reads in a thread of its own
        copy(folder, to=store.name, output=store.output, on_progress=stop)
    copy(folder, to=store.name, output=store.output)  # nothing is in the way
    assert len(store.rows()[1]) == 4


def test_a_copy_is_of_one_state_while_others_write(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BATCH_ROWS", 1)
    collection = Collection.open(folder)

    def change(_):
        if len(collection) == 4:
            collection.delete([0, 20, 30])  # most of it, so that the vectors are written anew and the old file removed
            collection.add([Entry("new")], embedder())

    assert copy(folder, to="parquet", output=tmp_path / "news.parquet", on_progress=change) == 4
    rows = pq.read_table(tmp_path / "news.parquet")
    assert rows["text"].to_pylist() == TEXTS
    np.testing.assert_allclose(np.stack(rows["vector"].to_numpy()), embedder().unit(TEXTS), atol=1e-3)
    assert [entry.text for entry in collection] == [TEXTS[1], "new"]


def test_a_copy_is_of_one_state_from_its_first_look_on(tmp_path, monkeypatch):
    collection = Collection.build(tmp_path / "made", [Entry("one", metadata={"year": 1}), Entry("two")], embedder())
    looked = module.source_of

    def changed_meanwhile(*arguments):
        answer = looked(*arguments)
        collection.add([Entry("three", metadata={"month": 5})], embedder())
        return answer

    monkeypatch.setattr(module, "source_of", changed_meanwhile)
    assert copy(tmp_path / "made", to="parquet", output=tmp_path / "made.parquet") == 2
    assert pq.read_table(tmp_path / "made.parquet")["text"].to_pylist() == ["one", "two"]


def test_what_fails_in_a_store_is_not_taken_for_damage_of_the_collection(folder, tmp_path):
    def fail(_):
        raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        copy(folder, to="parquet", output=tmp_path / "news.parquet", on_progress=fail)
    assert not (tmp_path / "news.parquet").exists()


def test_texts_without_metadata(store, tmp_path):
    Collection.build(tmp_path / "bare", [Entry(text) for text in TEXTS], embedder())
    copy(tmp_path / "bare", to=store.name, output=store.output, table=None if store.name == "parquet" else "news")
    assert store.nearest(embedder().unit(TEXTS)[1]) == TEXTS[1]


@pytest.mark.parametrize("to", ["parquet", "lancedb", "qdrant"])
@pytest.mark.parametrize("name", ["collection.sqlite", "new"])
def test_nothing_is_written_into_the_collection_that_is_read(folder, to, name, monkeypatch):
    before = sorted(folder.iterdir())
    monkeypatch.chdir(folder)
    for output in (folder / name, name):
        with pytest.raises(OutputError, match=r"which is read here\. Name an output outside of it"):
            copy(folder, to=to, output=output, overwrite=True)
    assert (sorted(folder.iterdir()), len(Collection.open(folder))) == (before, 4)


def test_misuse(tmp_path, monkeypatch):
    collection = Collection.build(tmp_path / "made", [Entry("one")], embedder())
    with pytest.raises(ConfigError, match="leave `table` out"):
        copy(tmp_path / "made", to="parquet", output=tmp_path / "a.parquet", table="a")
    with pytest.raises(OutputError, match="is a folder"):
        copy(tmp_path / "made", to="parquet", output=tmp_path, overwrite=True)
    with pytest.raises(ConfigError, match=r"A file of Parquet ends in \.parquet; received .*a\.csv"):
        copy(tmp_path / "made", to="parquet", output=tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()
    collection.delete([0])
    with pytest.raises(DataError, match="holds no text to copy"):
        copy(tmp_path / "made", to="parquet", output=tmp_path / "a.parquet")
    with pytest.raises(DataError, match="holds no collection"):
        copy(tmp_path / "none", to="parquet", output=tmp_path / "a.parquet")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"psycopg is needed .* 'samesense\[pgvector\]'"):
        copy(tmp_path / "made", to="pgvector", output="postgresql://nobody@127.0.0.1:1/none")


def test_large_whole_numbers_arrive_as_they_are(tmp_path):
    metadata = [
        {"hash": 2**64 - 1, "beside": 2**53 + 1, "signed": -(2**63), "few": 1},
        {"hash": 1, "beside": 0.5, "few": 2.5},
    ]
    Collection.build(tmp_path / "made", [Entry("one", None, metadata[0]), Entry("two", None, metadata[1])], embedder())
    copy(tmp_path / "made", to="parquet", output=tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["metadata"].to_pylist() == [
        {"hash": str(2**64 - 1), "beside": str(2**53 + 1), "signed": -(2**63), "few": 1.0},
        {"hash": "1", "beside": "0.5", "signed": None, "few": 2.5},
    ]


@pytest.mark.parametrize(
    ("to", "package", "output"),
    [
        ("pgvector", "psycopg", "postgresql://me:secret@127.0.0.1:1/none?connect_timeout=2"),
        ("qdrant", "qdrant_client", "http://127.0.0.1:1"),
        pytest.param("lancedb", "lancedb", "/dev/null/x", marks=pytest.mark.posix),
    ],
)
def test_a_store_that_is_not_there_is_one_line_and_code_2(tmp_path, capsys, to, package, output):
    pytest.importorskip(package)
    Collection.build(tmp_path / "made", [Entry("one")], embedder())
    with pytest.raises(SystemExit) as stop:
        main(["index", "export", str(tmp_path / "made"), "--to", to, "--output", output])
    stderr = capsys.readouterr().err
    assert stop.value.code == 2
    assert "did not take the table 'made'" in stderr
    assert "secret" not in stderr


def test_an_export_to_a_file_that_another_process_writes_is_refused(folder, tmp_path):
    output = tmp_path / "news.parquet"
    with only_writer_of(output), pytest.raises(OutputError, match="another process writes to"):
        copy(folder, to="parquet", output=output, overwrite=True)
    assert not output.exists()


def test_a_table_of_lancedb_that_another_process_writes_is_refused(folder, tmp_path):
    pytest.importorskip("lancedb")
    output = tmp_path / "news.lance"
    with only_writer_of(output / "news.lance"):
        for overwrite in (False, True):
            with pytest.raises(OutputError, match="another process writes to"):
                copy(folder, to="lancedb", output=output, table="news", overwrite=overwrite)
        copy(folder, to="lancedb", output=output, table="other")
    copy(folder, to="lancedb", output=output, table="news")


@pytest.mark.parametrize("form", ["~/a.lance", "file://{}/a.lance"])
def test_a_database_of_lancedb_is_held_where_it_is_written(folder, tmp_path, monkeypatch, form):
    pytest.importorskip("lancedb")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    with only_writer_of(tmp_path / "a.lance" / "news.lance"), pytest.raises(OutputError, match="another process"):
        copy(folder, to="lancedb", output=form.format(tmp_path), table="news")
    assert not list((tmp_path / "here").iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_a_collection_of_qdrant_that_another_process_replaced_is_not_taken_for_a_copy(
    folder, tmp_path, monkeypatch, fails
):
    pytest.importorskip("qdrant_client")
    from samesense.inference.stores import qdrant

    def replace(client, source, table):
        client.delete_collection(table)
        client.create_collection(table, vectors_config={}, metadata={qdrant.WRITER: "another"})
        if fails:
            raise ValueError("the disk is full")

    monkeypatch.setattr(qdrant, "_fill", replace)
    message = "the disk is full" if fails else "another process replaced 'news' while this one wrote to it"
    with pytest.raises(OutputError, match=message):
        copy(folder, to="qdrant", output=tmp_path / "qdrant", table="news")
    with closing(qdrant.QdrantClient(path=str(tmp_path / "qdrant"))) as client:
        assert client.get_collection("news").config.metadata == {qdrant.WRITER: "another"}
