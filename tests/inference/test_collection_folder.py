"""The folder of a collection: places, files of others, damage, one writer, full disks and kills."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from samesense.encoder.unfinished import UnfinishedEmbeddings
from samesense.errors import ConfigError, DataError, OutputError, SamesenseError
from samesense.inference.collection import store, writer
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.collection.migrate import migrate
from tests.inference.made_vectors import embedder, encode
from tests.inference.test_collection import TEXTS, brute, entries, files


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # it guards against loss of power, and takes long


@pytest.fixture
def folder(tmp_path):
    Collection.build(tmp_path / "made", entries(), embedder())
    return tmp_path / "made"


def test_places(tmp_path, folder):
    with pytest.raises(OutputError, match=r"holds a collection\. Add to it, or replace it"):
        Collection.build(folder, entries(), embedder())
    assert len(Collection.build(folder, entries(TEXTS[:3]), embedder("new"), overwrite=True)) == 3
    assert len(files(folder)) == 1
    with pytest.raises(DataError, match="holds no collection"):
        Collection.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no text to keep"):
        Collection.build(tmp_path / "empty", [], embedder())
    with pytest.raises(DataError, match="holds no collection"):
        Collection.open(tmp_path / "empty")
    assert len(Collection.build(tmp_path / "empty", entries(), embedder())) == 200


def listing(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["segments/thesis.txt", "manifest.json", ".a.1-00000000.part", store.DATABASE])
def test_a_folder_that_is_not_ours_is_refused_and_left_as_it_is(tmp_path, name, overwrite):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if name == store.DATABASE:
        with sqlite3.connect(tmp_path / name) as db:
            db.execute("CREATE TABLE thesis (word)")
    else:
        (tmp_path / name).write_text("{}")
    before = listing(tmp_path)
    with pytest.raises(OutputError, match=r"not empty: it holds|of another program"):
        Collection.build(tmp_path, entries(), embedder(), overwrite=overwrite)
    assert listing(tmp_path) == before


def test_files_of_others_in_the_folder_stay(folder):
    for name in ("deleted-thesis.npy", "graph-1.usearch", "vectors-00000000-00000000.bin", ".a.1-00000000.part"):
        (folder / name).write_text("mine")
    (folder / "segments").mkdir()
    (folder / "segments/thesis.txt").write_text("mine")
    collection = Collection.build(folder, entries(), embedder(), overwrite=True)
    collection.delete(range(150))
    collection.compact()
    assert len([path for path in folder.rglob("*") if path.is_file() and path.read_bytes() == b"mine"]) == 5


@pytest.mark.posix
def test_links_and_names_that_lead_elsewhere_are_refused(tmp_path, folder):
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    (vectors,) = files(folder)
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("UPDATE about SET value = '../outside' WHERE name = 'vectors'")
    for act in (
        Collection.open,
        lambda collection_folder: Collection.build(collection_folder, entries(), embedder(), overwrite=True),
    ):
        with pytest.raises(DataError, match=r"names '\.\./outside'"):
            act(folder)
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("UPDATE about SET value = ? WHERE name = 'vectors'", (vectors,))
    (folder / vectors).rename(tmp_path / "vectors")
    (folder / vectors).symlink_to(tmp_path / "vectors")
    with pytest.raises(DataError, match="which is a link"):
        Collection.open(folder)
    for name in (store.DATABASE, f"{store.DATABASE}-wal"):
        collection_folder = tmp_path / f"link{name}"
        collection_folder.mkdir()
        (collection_folder / name).symlink_to(outside)
        with pytest.raises(SamesenseError):
            Collection.build(collection_folder, entries(), embedder(), overwrite=True)
    assert outside.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("name", "value"), [("rows", -1), ("rows", b"\x00"), ("dim", "many"), ("dtype", "int3"), ("extra", 1), ("files", 2)]
)
def test_a_description_with_a_wrong_value_is_refused_by_its_name(folder, name, value):
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("DELETE FROM about WHERE name = ?", (name,))
        db.execute("INSERT INTO about VALUES (?, ?)", (name, value))
    with pytest.raises(DataError, match=rf"{name}.* Rebuild the collection"):
        Collection.open(folder)


def stopping_after(blocks, encoded):
    """An embedder that is interrupted after so many blocks, and notes what it was asked."""

    def run(texts):
        if len(encoded) == blocks:
            raise KeyboardInterrupt
        encoded.append(texts)
        return encode(texts)

    return embedder(run=run)


@pytest.mark.parametrize("change", ["build", "build over another", "add", "migrate"])
def test_a_change_that_is_stopped_goes_on_where_it_was(change, tmp_path, folder, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 8)
    texts = [f"text {i}" for i in range(20)] + ["text 0"]

    def again(model):
        new_entries = [Entry(text) for text in texts]
        if change == "migrate":
            return migrate(folder, replace(model, identity="another"))
        if change == "add":
            return Collection.open(folder).add(new_entries, model)
        return Collection.build(tmp_path / "new" if change == "build" else folder, new_entries, model, overwrite=True)

    collection_folder = tmp_path / "new" if change == "build" else folder
    with pytest.raises(KeyboardInterrupt, match="What is encoded is kept"):
        again(stopping_after(2, []))
    assert (collection_folder / store.UNFINISHED).is_dir()
    if change == "build":
        with pytest.raises(DataError, match="holds no collection"):
            Collection.open(collection_folder)
    else:
        assert len(Collection.open(collection_folder)) == len(TEXTS)
    encoded = []
    texts[3] = "another text"
    again(stopping_after(None, encoded))
    if change == "migrate":  # nothing is missing at first, so that one text tells the width
        assert encoded.pop(0) == [TEXTS[0]]
    assert encoded[0][0] == (TEXTS[16] if change == "migrate" else "another text")
    assert not (collection_folder / store.UNFINISHED).exists()
    collection = Collection.open(collection_folder)
    there = [entry.text for entry in collection]
    assert there == {"add": TEXTS + texts, "migrate": TEXTS}.get(change, texts)
    model = embedder("another" if change == "migrate" else "hashed words")
    assert [hits[0].score for hits in collection.query(there, model, top=1)] == pytest.approx([1.0] * len(there))


def test_what_is_kept_of_a_change_is_of_one_model_and_no_link(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 8)
    new_entries, encoded = [Entry(f"text {i}") for i in range(20)], []
    with pytest.raises(KeyboardInterrupt):
        Collection.build(tmp_path / "new", new_entries, stopping_after(2, []))
    Collection.build(tmp_path / "new", new_entries, replace(stopping_after(None, encoded), identity="another"))
    assert sum(map(len, encoded)) == 20
    notes = folder / store.UNFINISHED / "mine" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    assert Collection.open(folder).add(new_entries, embedder()) == 20
    assert [path.name for path in (folder / store.UNFINISHED).iterdir()] == ["mine"]
    assert notes.read_text() == "mine"
    shutil.rmtree(folder / store.UNFINISHED)
    (folder / store.UNFINISHED).symlink_to(tmp_path)
    Collection.open(folder).delete([0])
    assert (folder / store.UNFINISHED).is_symlink()
    with pytest.raises(OutputError, match="is a link"):
        Collection.open(folder).add(new_entries, embedder())


@pytest.mark.parametrize("kind", ["keys", "vectors", "both", "width", "widths", "file", "home"])
def test_damaged_vectors_of_a_stopped_change_are_encoded_again(kind, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 8)
    new_entries = [Entry(f"text {number}") for number in range(40)]
    collection_folder = tmp_path / "new"
    with pytest.raises(KeyboardInterrupt):
        Collection.build(collection_folder, new_entries, stopping_after(3, []))
    (home,) = (collection_folder / store.UNFINISHED).iterdir()
    if kind in ("keys", "vectors", "both"):
        for path in sorted(home.glob(f"*{'' if kind == 'both' else kind}.npy"))[:1]:
            path.write_bytes(path.read_bytes()[:-7])
    elif kind in ("width", "widths"):
        for path in sorted(home.glob("*.npy")):
            path.unlink()
        unfinished = UnfinishedEmbeddings(collection_folder / store.UNFINISHED, embedder().identity)
        texts = [entry.text for entry in new_entries]
        wide = embedder(run=lambda some: np.ones((len(some), 99), dtype=np.float32))
        unfinished.rows(texts[:8], wide.unit)
        unfinished.rows(texts[8:16], (wide if kind == "width" else embedder()).unit)
    else:
        shutil.rmtree(collection_folder / store.UNFINISHED if kind == "file" else home)
        (collection_folder / store.UNFINISHED if kind == "file" else home).write_text("of others")
    Collection.build(collection_folder, new_entries, embedder())
    expected = Collection.build(tmp_path / "expected", new_entries, embedder())
    queries = [entry.text for entry in new_entries[:9]]
    answers = Collection.open(collection_folder).query(queries, embedder(), top=40)
    assert answers == expected.query(queries, embedder(), top=40)
    assert len(caplog.records) == (2 if kind == "both" else 1) or kind == "both", caplog.text
    assert (collection_folder / store.UNFINISHED).exists() == (kind in ("file", "home"))


def answers(collection):
    return [hit.text for hits in collection.query(["text 1"], embedder(), top=3) for hit in hits]


@pytest.mark.posix
@pytest.mark.parametrize("event", ["deleted and built", "moved into its place", "deleted", "being built", "put back"])
def test_a_collection_in_the_place_of_one_that_is_open_is_noticed(event, tmp_path):
    collection_folder = tmp_path / "C"
    Collection.build(collection_folder, [Entry("an old text")], embedder())
    served = Collection.open(collection_folder)
    assert answers(served) == ["an old text"]
    before = collection_folder.rename(tmp_path / "before")
    if event == "deleted and built":
        shutil.rmtree(before)
        Collection.build(collection_folder, [Entry("a new text")], embedder())
    elif event == "moved into its place":
        Collection.build(tmp_path / "D", [Entry("a new text")], embedder())
        (tmp_path / "D").rename(collection_folder)
    elif event == "being built":
        store.make_place(collection_folder)
    if event in ("deleted and built", "moved into its place"):
        assert answers(served) == ["a new text"] and len(served) == 1
        return
    for ask in (answers, len, lambda collection: collection.text_search(["text"]), Collection.about):
        with pytest.raises(store.NoCollectionError, match="holds no collection"):
            ask(served)
    if event == "put back":
        before.rename(collection_folder)
        assert answers(served) == ["an old text"]
    elif event == "being built":
        Collection.build(collection_folder, [Entry("a new text")], embedder())
        assert answers(served) == ["a new text"]


def test_misuse(folder):
    collection = Collection.open(folder)
    with pytest.raises(ConfigError, match="`top` is a whole number of 1 or more; received 0"):
        collection.query(["x"], embedder(), top=0)
    with pytest.raises(DataError, match="query 2 is empty"):
        collection.query(["x", "  "], embedder())
    for ids, where in (([], None), ([1], {"parity": 1})):
        with pytest.raises(ConfigError, match="give one of the two"):
            collection.delete(ids, where=where)
    assert collection.query([], embedder()) == []


def test_damage_is_named(folder):
    (name,) = files(folder)
    (folder / name).write_bytes((folder / name).read_bytes()[:-4])
    with pytest.raises(DataError, match="too short"):
        Collection.open(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"damaged: .*{name}"):
        Collection.open(folder)
    (folder / store.DATABASE).write_text("{" * 5000)
    for act in (
        lambda: Collection.open(folder),
        lambda: Collection.build(folder, entries(), embedder(), overwrite=True),
    ):
        with pytest.raises(DataError, match=r"is damaged, .* again in another folder, or delete"):
            act()


def test_one_writer_at_a_time_and_readers_go_on(folder, monkeypatch):
    monkeypatch.setattr(store, "WAIT", 0.05)
    reader = Collection.open(folder)
    started, go_on = threading.Event(), threading.Event()

    def slow(texts):
        started.set()
        assert go_on.wait(30)
        return encode(texts)

    late = threading.Thread(target=lambda: Collection.open(folder).add([Entry("late")], embedder(run=slow)))
    late.start()
    assert started.wait(30)
    with pytest.raises(OutputError, match="one writer at a time"):
        Collection.open(folder).delete([0])
    assert len(Collection.open(folder)) == len(reader.query(["x"], embedder(), top=999)[0]) == 200
    go_on.set()
    late.join()
    assert len(reader.query(["x"], embedder(), top=999)[0]) == len(reader) == 201


def test_an_open_reader_follows_a_compaction(folder):
    reader = Collection.open(folder)
    mapped = reader._reader.vectors
    Collection.open(folder).delete(range(150))
    assert np.isfinite(mapped).all()  # an answer that is being made goes on with the file it has
    assert [hit.id for hit in reader.query(["sentence 7"], embedder(), top=2)[0]] == brute(
        dict(enumerate(TEXTS[150:], 150)), "sentence 7", 2
    )


def test_what_another_client_deletes_is_gone(folder):
    reader = Collection.open(folder)
    assert reader.query(["sentence 7"], embedder(), top=1)[0][0].id == 7
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("DELETE FROM text WHERE id = 7")
        db.execute('UPDATE text SET metadata = \'{"tag": "mine"}\' WHERE id = 8')
    assert reader.query(["sentence 7"], embedder(), top=1)[0][0].id == 157
    assert [hit.id for hit in reader.text_search(["7"])[0]] == [157]
    assert [hit.id for hit in reader.query(["x"], embedder(), where="tag = mine")[0]] == [8]
    assert 8 not in [hit.id for hit in reader.query(["x"], embedder(), top=300, where="tag = t3")[0]]


FULL = """
import resource, signal, sys
from samesense.cli.main import main
from samesense.cli.commands import index
from tests.inference.made_vectors import embedder
index._embedder = lambda name, precision: embedder()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
sys.argv = ["samesense", "index", *sys.argv[1:]]
main()
"""


@pytest.mark.posix
def test_a_full_disk_is_a_message_and_changes_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("first\nsecond\n")
    (tmp_path / "many.txt").write_text("".join(f"text {i}\n" for i in range(2000)))
    Collection.build(tmp_path / "made", [Entry("first")], embedder())
    for verb, name in (("add", "made"), ("build", "new")):
        done = subprocess.run(
            [sys.executable, "-c", FULL, verb, str(tmp_path / name), str(tmp_path / "many.txt")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert "cannot be read or written" in done.stderr
        assert "Traceback" not in done.stderr
    assert [entry.text for entry in Collection.open(tmp_path / "made")] == ["first"]
    assert len(files(tmp_path / "made")) == 1
    assert not files(tmp_path / "new")


@pytest.mark.posix
def test_a_folder_that_may_only_be_read_is_read_and_not_written(folder):
    read, written = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for path in [*folder.parents[:-2], folder, *folder.iterdir()]:
                path.chmod(0o555)
            if os.getuid() == 0:
                os.setuid(65534)
            collection = Collection.open(folder)
            assert collection.query(["sentence 7"], embedder(), top=1)[0][0].id == 7
            os.write(read[1], b"open")
            os.read(written[0], 1)
            assert collection.query(["quite new"], embedder(), top=1)[0][0].id == 200
            for act in (
                lambda: collection.delete([0]),
                lambda: Collection.build(folder / "new", entries(), embedder()),
            ):
                with pytest.raises(OutputError, match=r"Permission denied.*see to its permissions"):
                    act()
            code = 0
        finally:
            os._exit(code)
    if os.read(read[0], 4) == b"open" and os.getuid() == 0:  # who may write adds a text
        Collection.open(folder).add([Entry("quite new")], embedder())
    os.write(written[1], b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for path in folder.parents[:-2]:
        path.chmod(0o755)


CHANGE_JOURNAL = (
    "import sqlite3, sys; print(sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode = DELETE'))"
)


@pytest.mark.posix
def test_a_writer_leaves_the_locks_of_other_connections_of_its_process(folder):
    """Else another process could delete the write-ahead log under them, which damages the collection."""
    with closing(store.connect(folder, write=True)) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("SELECT count(*) FROM about").fetchone()
        store.check_writable(folder)
        command = [sys.executable, "-c", CHANGE_JOURNAL, str(folder / store.DATABASE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr, done.stdout


@pytest.mark.posix
def test_a_killed_writer_leaves_the_state_before_or_after(tmp_path, pytestconfig):
    """See killed_writer.py: killed at its steps, each one with stride 1, and by SIGKILL at random moments."""
    stride, kills = (1, 8) if pytestconfig.getoption("--runlong") else (9, 2)
    done = subprocess.run(
        [sys.executable, "-m", "tests.inference.killed_writer", str(tmp_path), str(stride), str(kills)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    before, after, killed = map(int, done.stdout.split())
    assert before * stride >= 100
    assert after >= 1
    assert killed == kills
