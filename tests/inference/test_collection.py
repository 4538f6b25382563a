import os
import sqlite3
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.collection import store, writer
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.collection.migrate import check_vectors, migrate
from samesense.inference.models.functions import FunctionEncoder
from samesense.inference.models.model import Model
from tests.inference.made_vectors import cosines, embedder, encode, vector

TEXTS = [f"sentence {i % 150}" for i in range(200)]  # fifty of them come twice


def entries(texts=TEXTS):
    return [Entry(text, None, {"parity": i % 2, "tag": f"t{i % 5}"}) for i, text in enumerate(texts)]


def brute(texts, query, top):
    """(id, score) of the nearest of ``texts``, a dictionary from id to text."""
    scores = dict(zip(texts, cosines(vector(query), [vector(text) for text in texts.values()]), strict=True))
    return sorted(texts, key=lambda number: (-round(scores[number], 5), number))[:top]


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
    stored = dict(enumerate(TEXTS))
    queries = ["sentence 7", "something else", "sentence 149"]
    for query, answer in zip(queries, collection.query(queries, embedder(), top=12), strict=True):
        assert [hit.id for hit in answer] == brute(stored, query, 12)
        assert [hit.text for hit in answer] == [TEXTS[hit.id] for hit in answer]
        assert [dict(hit.metadata) for hit in answer] == [entries()[hit.id].metadata for hit in answer]
    first, second = collection.query(["sentence 7"], embedder(), top=2)[0]
    assert (first.id, second.id) == (7, 157)
    assert first.score == second.score == pytest.approx(1.0, abs=1e-4 if dtype == "float16" else 0)
    (name,) = files(tmp_path / "made")
    assert (tmp_path / "made" / name).stat().st_size == 200 * 24 * (2 if dtype == "float16" else 4)


def test_a_history_equals_that_of_a_dictionary(folder):
    """Random additions, replacements, deletions and compactions; a fresh reader sees the same."""
    random = np.random.default_rng(0)
    collection, expected, tags = Collection.open(folder), dict(enumerate(TEXTS)), {i: f"t{i % 5}" for i in range(200)}
    for step in range(12):
        texts = [f"added {step} {i}" for i in range(int(random.integers(1, 30)))]
        first = collection.about()["next_id"]
        assert collection.add([Entry(text, metadata={"tag": "new"}) for text in texts], embedder()) == len(texts)
        expected |= {first + i: text for i, text in enumerate(texts)}
        tags |= {first + i: "new" for i in range(len(texts))}
        changed = [int(i) for i in random.choice(list(expected), size=5, replace=False)]
        newer = [Entry(f"changed {step} {i}", i, {"tag": "new"}) for i in changed]
        assert collection.add(newer, embedder(), upsert=True) == 5
        expected |= {entry.id: entry.text for entry in newer}
        tags |= dict.fromkeys(changed, "new")
        doomed = [int(i) for i in random.choice(list(expected), size=len(expected) // 6, replace=False)]
        assert collection.delete(doomed) == len(doomed)
        for number in doomed:
            del expected[number]
        if step == 6:
            collection.compact()
            assert collection.about()["deleted"] == 0
        assert len(collection) == len(expected)
    fresh = Collection.open(folder)
    assert {entry.id: entry.text for entry in fresh} == expected == {entry.id: entry.text for entry in collection}
    new = {number: text for number, text in expected.items() if tags[number] == "new"}
    for query in ("sentence 3", new[max(new)]):
        assert [hit.id for hit in fresh.query([query], embedder(), top=1000)[0]] == brute(expected, query, 1000)
        hits = fresh.query([query], embedder(), top=9, where={"tag": "new"})[0]
        assert [hit.id for hit in hits] == brute(new, query, 9)
    assert {hit.id for hit in fresh.text_search(["added"], top=1000)[0]} == {
        number for number, text in expected.items() if text.startswith("added")
    }
    with sqlite3.connect(folder / store.DATABASE) as db:
        db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")  # full text as the texts are
        assert db.execute("SELECT count(*) FROM field").fetchone()[0] == sum(len(hit.metadata) for hit in fresh)
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
        return sorted(hit.id for hit in collection.query(["text 0"], embedder(), top=99, where={"v": value})[0])

    requested = (1, 1.0, True, "1", None, [["a"]], {"b": 2}, 1.5, "é", "", False, 2**70, 0, "no such value", [])
    assert [ids(value) for value in requested] == [
        [0, 1],
        [0, 1],
        [2],
        [3],
        [4],
        [5],
        [6],
        [7],
        [8],
        [9],
        [10],
        [11],
        [12],
        [],
        [],
    ]
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
    "where",
    [
        {"tag": {"a": float("nan")}},
        {"tag": [[float("nan")]]},
        {"\ud800": 1},
        {"tag": "\ud800"},
        {"tag": b"a"},
        {"tag": "s\0"},
        {"tag": ["a", "s\0"]},
        "tag = 's\0'",
        "tag LIKE 's\0%'",
        "tag = '\ud800'",
        ["tag"],
    ],
)
def test_values_that_no_metadata_can_have_are_refused(folder, where):
    collection = Collection.open(folder)
    for ask in (lambda: collection.text_search(["x"], where=where), lambda: collection.delete(where=where)):
        with pytest.raises(ConfigError, match="A condition is one text, or values by name"):
            ask()


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
        ('topic = sport AND (year = 2019 OR "two words" = x)', [0, 3]),
        ("year < -1e300", []),
    ],
)
def test_conditions(tmp_path, where, expected):
    collection = Collection.build(tmp_path / "made", [Entry("same", metadata=row) for row in ROWS], embedder())
    assert [hit.id for hit in collection.query(["same"], embedder(), where=where)[0]] == expected
    assert sorted(hit.id for hit in collection.text_search(["same"], where=where)[0]) == expected
    assert collection.delete(where=where) == len(expected)


@pytest.mark.parametrize(
    "where",
    [
        "",
        "topic",
        "topic =",
        "= 1",
        "topic = 'open",
        "topic = a year = b",
        "topic = a) OR (topic = b",
        "TRUE",
        "topic = a; DROP TABLE text",
        "topic = a AND",
        "1 IN (SELECT 1)",
        "topic IN ()",
        "topic = a -- b",
        "(" * 5000 + "topic = a" + ")" * 5000,
        " OR ".join(["topic = a"] * 3000),
        "(" * 90 + "topic = a" + ")" * 90,
        *(" OR ".join(["topic = a"] * count) for count in range(985, 1001)),
        f"topic LIKE '{'a' * 60_000}'",
    ],
)
def test_conditions_that_cannot_be_read_are_refused(folder, where):
    with pytest.raises(ConfigError, match="A condition is like topic = 'sport'"):
        Collection.open(folder).query(["x"], embedder(), where=where)


@pytest.mark.parametrize(
    "where", [{"year": float("nan")}, {"year": float("inf")}, {"year": 10**400}, f"year = {'9' * 400}"]
)
def test_numbers_that_are_not_finite_are_refused(folder, where):
    with pytest.raises(ConfigError, match="A condition compares with finite numbers"):
        Collection.open(folder).query(["x"], embedder(), where=where)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("x >= .5", [0, 1, 2]),
        ("x >= 0.5", [0, 1, 2]),
        ("x = .7", [1]),
        ("x > +.7", [0, 2]),
        ("x < 1.", [1, 2]),
        ("x = NaN", [3]),
        ("x < +1", [1, 2]),
    ],
)
def test_numbers_may_begin_or_end_with_a_point(tmp_path, where, expected):
    rows = [Entry("same", metadata={"x": x}) for x in (1, 0.7, "0.9", "NaN")]
    collection = Collection.build(tmp_path / "made", rows, embedder())
    assert [hit.id for hit in collection.query(["same"], embedder(), where=where)[0]] == expected


def test_words_are_found_however_their_accents_are_written(tmp_path):
    words = ["résumé", "Präsident"]
    forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD") for word in words]
    collection = Collection.build(tmp_path / "made", [Entry(form) for form in forms], embedder())
    for number, form in enumerate(forms):
        assert {hit.id for hit in collection.text_search([form])[0]} == {number % 2, number % 2 + 2}


def test_a_text_that_has_just_been_given_an_id_is_not_replaced(folder):
    collection = Collection.open(folder)
    for new_entries in (
        [Entry("no id"), Entry("explicit", 200)],
        [Entry("no id"), Entry("other", 5), Entry("explicit", 200)],
    ):
        with pytest.raises(DataError, match="200 was given to a text before it that brings none"):
            collection.add(new_entries, embedder(), upsert=True)
        assert len(collection) == 200
    assert collection.add([Entry("explicit", 201), Entry("no id"), Entry("other", 5)], embedder(), upsert=True) == 3
    assert [hit.id for hit in collection.query(["no id"], embedder(), top=1)[0]] == [202]


def test_hybrid_is_the_sum_of_reciprocal_ranks_of_both(folder):
    collection = Collection.open(folder)
    collection.add([Entry("sentence of other words", metadata={"tag": "new"}), Entry("nothing shared")], embedder())
    for where in (None, "tag = t1"):
        options = {"top": 300, "where": where}
        (near,), (words,) = (
            collection.query(["sentence 7"], embedder(), **options),
            collection.text_search(["sentence 7"], **options),
        )
        scores = {}
        for ranked in (near, words):
            for rank, hit in enumerate(ranked, 1):
                scores[hit.id] = scores.get(hit.id, 0) + 1 / (60 + rank)
        (hits,) = collection.query(["sentence 7"], embedder(), hybrid=True, **options)
        assert [hit.id for hit in hits] == sorted(scores, key=lambda number: (-scores[number], number))
        assert [hit.score for hit in hits] == pytest.approx([scores[hit.id] for hit in hits])
    assert [hit.text for hit in words] == sorted([hit.text for hit in words], key=lambda text: text != "sentence 7")
    assert collection.text_search(["OTHER"])[0][0].text == "sentence of other words"
    for odd in ('"', "AND", "NEAR(", "* ^ : -", "'; --", "text:"):
        assert collection.text_search([odd]) == [[]]
    assert len(collection.text_search([" ".join(f"w{i}" for i in range(1500))])) == 1


def test_ids_of_the_user_and_automatic_ones(tmp_path):
    collection = Collection.build(tmp_path / "made", [Entry("a", 7), Entry("b"), Entry("c", 3), Entry("d")], embedder())
    assert {entry.id: entry.text for entry in collection} == {7: "a", 8: "b", 3: "c", 9: "d"}
    for twice in ([Entry("x", 3)], [Entry("x", 20), Entry("y", 20)]):
        with pytest.raises(DataError, match="every text has an id of its own"):
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


def test_ids_and_values_of_numpy(tmp_path):
    rows = [Entry("a", 1, {"n": np.int64(4), "some": np.array([1.5, 2])}), Entry("b", 2, {"n": 5})]
    collection = Collection.build(tmp_path / "made", rows, embedder())
    assert collection.get(np.int64(1)) == Entry("a", 1, {"n": 4, "some": [1.5, 2]})
    for where in ({"n": np.int64(4)}, {"n": np.array([4, 9])}):
        assert [hit.id for hit in collection.query(["a"], embedder(), where=where)[0]] == [1]
    with pytest.raises(ConfigError, match="An id is a whole number"):
        collection.get("1")
    assert len(collection) == 2
    collection.delete(np.array([1]))
    assert [entry.id for entry in collection] == [2]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (Entry(" "), "text 2: a text that is not empty is needed"),
        (Entry("x", -1), "an id is a whole number from 0"),
        (Entry("x", True), "an id is a whole number from 0"),
        (Entry("x", 2**63 - 1), "an id is a whole number from 0"),
        (Entry("x", metadata={"n": float("nan")}), "must be JSON"),
        (Entry("x", metadata={"n": b"bytes"}), "must be JSON"),
        (Entry("x", metadata={"fine": 1, "n": b"bytes"}), "text 2, column 'n': text and metadata must be JSON"),
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
    collection, other_model = Collection.open(folder), embedder("other weights")
    for act in (lambda: collection.query(["x"], other_model), lambda: collection.add([Entry("x")], other_model)):
        with pytest.raises(ModelError, match=r"is used with the model it was built with; .* was built with 'hashed'"):
            act()
    wide = embedder(run=lambda texts: np.ones((len(texts), 5), dtype=np.float32))
    with pytest.raises(ModelError, match="vectors of 24 numbers; the model gave 5"):
        collection.add([Entry("x")], wide)
    with pytest.raises(ModelError, match="a matrix of 24 columns"):
        collection.search(np.ones((1, 5), dtype=np.float32))
    with pytest.raises(ModelError, match="holds the vectors of another model by now, 'hashed' in"):
        collection.search(other_model.unit(["x"]), identity=other_model.identity)
    with pytest.raises(ModelError, match="with an identity"):
        Collection.build(folder, [Entry("x")], embedder(""), overwrite=True)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_arithmetic_of_a_model_with_a_map_is_that_of_the_model(precision):
    model = Model(FunctionEncoder(encode, f"cosine, in {precision}, first 2 dimensions", lambda: "identity"))
    assert embedder_of(model, "m+dim:2").precision == precision


def test_no_torch_is_imported_where_vectors_are_given():
    code = (
        "import sys; import samesense.inference.collection.collection, samesense.inference.search.mining, "
        "samesense.cli.commands.index, samesense.cli.commands.mine, samesense.cli.commands.dedup; "
        "print([m for m in ('torch', 'sentence_transformers', 'sklearn', 'usearch') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def turned(texts):
    """Another model's vectors of the same texts."""
    return encode([f"other {text}" for text in texts])


def test_migration_encodes_anew_and_keeps_all_else(folder, monkeypatch):
    monkeypatch.setattr(writer, "BLOCK_TEXTS", 64)
    collection = Collection.open(folder)
    collection.delete([3, 199])
    new = embedder("hashed words, 2", turned)
    before = {entry.id: entry for entry in collection}
    reader = Collection.open(folder)
    done = []
    assert migrate(folder, new, on_progress=done.append) == sum(done) == 198
    for reopened in (collection, reader, Collection.open(folder)):
        assert {entry.id: entry for entry in reopened} == before
        ((first, *_),) = reopened.query(["sentence 7"], new, top=1)
        assert (first.id, first.score) == (7, pytest.approx(1.0))
        with pytest.raises(ModelError, match="used with the model it was built with"):
            reopened.query(["sentence 7"], embedder())
    assert (collection.about()["deleted"], collection.about()["next_id"]) == (0, 200)
    assert len(files(folder)) == 1


def test_a_migration_that_fails_leaves_the_old_model(folder):
    collection, before = Collection.open(folder), files(folder)
    encoded = []

    def breaks(texts):
        encoded.append(texts)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        migrate(folder, embedder("hashed words, 2", breaks))
    assert encoded
    assert files(folder) == before
    assert collection.query(["sentence 7"], embedder(), top=1)[0][0].id == 7
    with pytest.raises(ConfigError, match="is the model of the collection already"):
        migrate(folder, embedder())


def test_a_model_that_has_changed_unnoticed_is_found_by_its_vectors(folder):
    collection = Collection.open(folder)
    assert check_vectors(folder, embedder()) == pytest.approx(1.0)
    with pytest.raises(ModelError, match=r"gives other vectors now than when .* the lowest of 8 cosines is"):
        check_vectors(folder, embedder(run=turned))
    collection.delete(range(200))
    assert check_vectors(folder, embedder(run=turned)) == 1.0
