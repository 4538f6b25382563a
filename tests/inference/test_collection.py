import os
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, ModelError, OutputError, SamesenseError
from samesense.inference.collection import store, writer
from samesense.inference.collection.collection import Collection, Entry
from tests.inference.made_vectors import cosines, embedder, encode, vector

TEXTS = [f"sentence {i % 150}" for i in range(200)]  # fifty of them come twice


def entries(texts=TEXTS):
    return [Entry(text, None, {"parity": i % 2, "tag": f"t{i % 5}"}) for i, text in enumerate(texts)]


def brute(kept, query, top):
    """(id, score) of the nearest of ``kept``, a dictionary from id to text."""
    scores = dict(zip(kept, cosines(vector(query), [vector(text) for text in kept.values()]), strict=True))
    return sorted(kept, key=lambda number: (-round(scores[number], 5), number))[:top]


def files(folder):
    """Names of the files that the store names itself."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(store.DATABASE))


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # it guards against loss of power, and takes long


@pytest.fixture
def folder(tmp_path):
    Collection.build(tmp_path / "made", entries(), embedder())
    return tmp_path / "made"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_query_equals_sorting_everything(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 64)
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
    (name,) = files(tmp_path / "made")
    assert (tmp_path / "made" / name).stat().st_size == 200 * 24 * (2 if dtype == "float16" else 4)


def test_a_history_equals_that_of_a_dictionary(folder):
    """Random additions, replacements, deletions and compactions; a fresh reader sees the same."""
    random = np.random.default_rng(0)
    collection, kept, tags = Collection.open(folder), dict(enumerate(TEXTS)), {i: f"t{i % 5}" for i in range(200)}
    for step in range(12):
        texts = [f"added {step} {i}" for i in range(int(random.integers(1, 30)))]
        first = collection.about()["next_id"]
        assert collection.add([Entry(text, metadata={"tag": "new"}) for text in texts], embedder()) == len(texts)
        kept |= {first + i: text for i, text in enumerate(texts)}
        tags |= {first + i: "new" for i in range(len(texts))}
        changed = [int(i) for i in random.choice(list(kept), size=5, replace=False)]
        newer = [Entry(f"changed {step} {i}", i, {"tag": "new"}) for i in changed]
        assert collection.add(newer, embedder(), upsert=True) == 5
        kept |= {entry.id: entry.text for entry in newer}
        tags |= dict.fromkeys(changed, "new")
        doomed = [int(i) for i in random.choice(list(kept), size=len(kept) // 6, replace=False)]
        assert collection.delete(doomed) == len(doomed)
        for number in doomed:
            del kept[number]
        if step == 6:
            collection.compact()
            assert collection.about()["deleted"] == 0
        assert len(collection) == len(kept)
    fresh = Collection.open(folder)
    assert {entry.id: entry.text for entry in fresh} == kept == {entry.id: entry.text for entry in collection}
    new = {number: text for number, text in kept.items() if tags[number] == "new"}
    for query in ("sentence 3", new[max(new)]):
        assert [one.id for one in fresh.query([query], embedder(), top=1000)[0]] == brute(kept, query, 1000)
        found = fresh.query([query], embedder(), top=9, where={"tag": "new"})[0]
        assert [one.id for one in found] == brute(new, query, 9)
    assert {one.id for one in fresh.text_search(["added"], top=1000)[0]} == {
        number for number, text in kept.items() if text.startswith("added")
    }
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")  # full text as the texts are
        assert db.execute("SELECT count(*) FROM field").fetchone()[0] == sum(len(one.metadata) for one in fresh)
    assert len(files(folder)) == 1


def test_mostly_deleted_collections_are_compacted(folder):
    collection = Collection.open(folder)
    (before,) = files(folder)
    collection.delete(range(101))
    assert collection.about()["deleted"] == 0
    (after,) = files(folder)
    assert (folder / after).stat().st_size == 99 * 24 * 4
    assert before != after
    assert collection.delete(where={"parity": [0, 1]}) == 99
    assert (len(collection), collection.query(["more 1"], embedder())) == (0, [[]])
    collection.add([Entry("again")], embedder())
    assert [entry.id for entry in collection] == [200]  # ids are not given out twice


def test_metadata_by_value(tmp_path):
    values = [1, 1.0, True, "1", None, ["a"], {"b": 2}, 1.5, "é", "", False, 2**70, 0]
    texts = [Entry(f"text {i}", metadata={"v": value}) for i, value in enumerate(values)] + [Entry("bare")]
    collection = Collection.build(tmp_path / "made", texts, embedder())

    def ids(value):
        return sorted(one.id for one in collection.query(["text 0"], embedder(), top=99, where={"v": value})[0])

    asked = (1, 1.0, True, "1", None, [["a"]], {"b": 2}, 1.5, "é", "", False, 2**70, 0, "no such value", [])
    assert [ids(value) for value in asked] == [
        [0, 1], [0, 1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [], [],
    ]  # fmt: skip
    assert ids([1, "é", "no such value"]) == [0, 1, 8]
    for act in (lambda: collection.search(np.ones((1, 24)), where={"w": 1}), lambda: collection.delete(where="w = 1")):
        with pytest.raises(DataError, match=r"No text has metadata named 'w'\. There are: v"):
            act()


ROWS = [
    {"topic": "sport", "year": 2019, "on": True},
    {"topic": "news", "year": "2020", "on": False},
    {"topic": "it's; DROP TABLE text", "year": 2021.5, "on": None},
    {"topic": "sport", "year": "2020-05-01", "two words": "x"},
    {"year": "n/a"},
]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("topic=sport", [0, 3]),
        ("topic = 'it''s; DROP TABLE text'", [2]),
        ("topic != sport", [1, 2]),
        ("year = 2020", [1]),
        ("year = '2019'", []),
        ("year > 2019", [1, 2]),
        ("year <= 2020 and not topic = news", [0]),
        ("year >= '2020' AND topic IN ('sport', news)", [1, 3]),
        ("topic NOT IN (sport, news)", [2]),
        ("topic LIKE '%DROP%' OR on = true", [0, 2]),
        ("on = false", [1]),
        ("on IS NULL", [2, 3, 4]),
        ("on is not null", [0, 1]),
        ("NOT (topic = sport OR topic = news)", [2, 4]),
        ("topic = sport AND (year = 2019 OR \"two words\" = x)", [0, 3]),
        ("year < -1e300", []),
    ],
)  # fmt: skip
def test_conditions(tmp_path, where, expected):
    collection = Collection.build(tmp_path / "made", [Entry("same", metadata=row) for row in ROWS], embedder())
    assert [one.id for one in collection.query(["same"], embedder(), where=where)[0]] == expected
    assert sorted(one.id for one in collection.text_search(["same"], where=where)[0]) == expected
    assert collection.delete(where=where) == len(expected)


@pytest.mark.parametrize(
    "where",
    ["", "topic", "topic =", "= 1", "topic = 'open", "topic = a year = b", "topic = a) OR (topic = b", "TRUE",
     "topic = a; DROP TABLE text", "topic = a AND", "1 IN (SELECT 1)", "topic IN ()", "topic = a -- b",
     "(" * 5000 + "topic = a" + ")" * 5000, " OR ".join(["topic = a"] * 3000)],
)  # fmt: skip
def test_conditions_that_cannot_be_read_are_refused(folder, where):
    with pytest.raises(ConfigError, match="A condition is like topic = 'sport'"):
        Collection.open(folder).query(["x"], embedder(), where=where)


def test_hybrid_is_the_sum_of_reciprocal_ranks_of_both(folder):
    collection = Collection.open(folder)
    collection.add([Entry("sentence of other words", metadata={"tag": "new"}), Entry("nothing shared")], embedder())
    for where in (None, "tag = t1"):
        how = {"top": 300, "where": where}
        (near,), (words,) = (
            collection.query(["sentence 7"], embedder(), **how),
            collection.text_search(["sentence 7"], **how),
        )
        scores = {}
        for ranked in (near, words):
            for rank, one in enumerate(ranked, 1):
                scores[one.id] = scores.get(one.id, 0) + 1 / (60 + rank)
        (found,) = collection.query(["sentence 7"], embedder(), hybrid=True, **how)
        assert [one.id for one in found] == sorted(scores, key=lambda number: (-scores[number], number))
        assert [one.score for one in found] == pytest.approx([scores[one.id] for one in found])
    assert [one.text for one in words] == sorted([one.text for one in words], key=lambda text: text != "sentence 7")
    assert collection.text_search(["OTHER"])[0][0].text == "sentence of other words"
    for odd in ('"', "AND", "NEAR(", "* ^ : -", "'; --", "text:"):
        assert collection.text_search([odd]) == [[]]
    assert len(collection.text_search([" ".join(f"w{i}" for i in range(1500))])) == 1


def test_ids_of_the_user_and_automatic_ones(tmp_path):
    collection = Collection.build(tmp_path / "made", [Entry("a", 7), Entry("b"), Entry("c", 3), Entry("d")], embedder())
    assert {entry.id: entry.text for entry in collection} == {7: "a", 8: "b", 3: "c", 9: "d"}
    for twice in ([Entry("x", 3)], [Entry("x", 20), Entry("y", 20)]):
        with pytest.raises(DataError, match="Every text has an id of its own"):
            collection.add(twice, embedder())
    collection.delete([3])
    collection.add([Entry("c again", 3)], embedder())
    assert collection.get(3).text == "c again"
    collection.add([Entry("first", 30), Entry("last", 30, {"n": 1}), Entry("c anew", 3)], embedder(), upsert=True)
    assert (collection.get(30), collection.get(3)) == (Entry("last", 30, {"n": 1}), Entry("c anew", 3))
    with pytest.raises(DataError, match="no text with the id 4"):
        collection.get(4)
    for unknown in ([3, 4], [-1], [2**70]):
        with pytest.raises(DataError, match="Nothing was deleted"):
            collection.delete(unknown)
    assert len(collection) == 5


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry(" "), "text 2: a text that is not empty is needed"),
        (Entry("x", -1), "an id is a whole number from 0"),
        (Entry("x", True), "an id is a whole number from 0"),
        (Entry("x", 2**63 - 1), "an id is a whole number from 0"),
        (Entry("x", metadata={"n": float("nan")}), "must be JSON"),
        (Entry("x", metadata={"n": b"bytes"}), "must be JSON"),
        (Entry("x", metadata={1: "one"}), "names of metadata are texts"),
        (Entry("half \ud800"), "must be JSON: whole characters"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_changes_nothing(folder, entry, words):
    collection = Collection.open(folder)
    before, there = collection.about(), files(folder)
    with pytest.raises(DataError, match=words):
        collection.add([Entry("fine"), entry], embedder())
    assert (collection.about(), files(folder)) == (before, there)
    assert len(collection.query(["fine"], embedder(), top=999)[0]) == 200
    collection.add([Entry("fine")], embedder())
    assert collection.query(["fine"], embedder(), top=1)[0][0].id == 200


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
    assert len(files(folder)) == 1
    with pytest.raises(DataError, match="holds no collection"):
        Collection.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no text to keep"):
        Collection.build(tmp_path / "empty", [], embedder())
    with pytest.raises(DataError, match="holds no collection"):
        Collection.open(tmp_path / "empty")
    assert len(Collection.build(tmp_path / "empty", entries(), embedder())) == 200


def listing(place):
    return {path: path.read_bytes() if path.is_file() else None for path in place.rglob("*")}


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


def test_links_and_names_that_lead_elsewhere_are_refused(tmp_path, folder):
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    (vectors,) = files(folder)
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("UPDATE about SET value = '../outside' WHERE name = 'vectors'")
    for act in (Collection.open, lambda place: Collection.build(place, entries(), embedder(), overwrite=True)):
        with pytest.raises(DataError, match=r"names '\.\./outside'"):
            act(folder)
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("UPDATE about SET value = ? WHERE name = 'vectors'", (vectors,))
    (folder / vectors).rename(tmp_path / "vectors")
    (folder / vectors).symlink_to(tmp_path / "vectors")
    with pytest.raises(DataError, match="which is a link"):
        Collection.open(folder)
    for name in (store.DATABASE, f"{store.DATABASE}-wal"):
        place = tmp_path / f"link{name}"
        place.mkdir()
        (place / name).symlink_to(outside)
        with pytest.raises(SamesenseError):
            Collection.build(place, entries(), embedder(), overwrite=True)
    assert outside.read_bytes() == b"mine"


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
        with pytest.raises(DataError, match=r"is damaged, .* anew in another folder, or delete"):
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
    assert [one.id for one in reader.query(["sentence 7"], embedder(), top=2)[0]] == brute(
        dict(enumerate(TEXTS[150:], 150)), "sentence 7", 2
    )


def test_what_another_client_deletes_is_gone(folder):
    reader = Collection.open(folder)
    assert reader.query(["sentence 7"], embedder(), top=1)[0][0].id == 7
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("DELETE FROM text WHERE id = 7")
        db.execute('UPDATE text SET metadata = \'{"tag": "mine"}\' WHERE id = 8')
    assert reader.query(["sentence 7"], embedder(), top=1)[0][0].id == 157
    assert [one.id for one in reader.text_search(["7"])[0]] == [157]
    assert [one.id for one in reader.query(["x"], embedder(), where="tag = mine")[0]] == [8]
    assert 8 not in [one.id for one in reader.query(["x"], embedder(), top=300, where="tag = t3")[0]]


FULL = """
import resource, signal, sys
from samesense.cli.main import main
from samesense.cli import index
from tests.inference.made_vectors import embedder
index._embedder = lambda name, precision: embedder()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
sys.argv = ["samesense", "index", *sys.argv[1:]]
main()
"""


def test_a_full_disk_is_a_message_and_changes_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("first\nsecond\n")
    (tmp_path / "many.txt").write_text("".join(f"text {i}\n" for i in range(3000)))
    Collection.build(tmp_path / "made", [Entry("first")], embedder())
    for verb, place in (("add", "made"), ("build", "new")):
        done = subprocess.run(
            [sys.executable, "-c", FULL, verb, str(tmp_path / place), str(tmp_path / "many.txt")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        assert "cannot be read or written" in done.stderr
        assert "Traceback" not in done.stderr
    assert [entry.text for entry in Collection.open(tmp_path / "made")] == ["first"]
    assert len(files(tmp_path / "made")) == 1
    assert not files(tmp_path / "new")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_folder_that_may_only_be_read_is_read_and_not_written(folder):
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
            for act in (
                lambda: collection.delete([0]),
                lambda: Collection.build(folder / "new", entries(), embedder()),
            ):
                with pytest.raises(OutputError, match=r"full, or read-only|Permission denied"):
                    act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for path in folder.parents[:-2]:
        path.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_killed_writer_leaves_the_state_before_or_after(tmp_path, pytestconfig):
    """See killed_writer.py: killed at its steps, each one with stride 1, and by SIGKILL at random moments."""
    stride, kills = (1, 8) if pytestconfig.getoption("--runlong") else (9, 2)
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
