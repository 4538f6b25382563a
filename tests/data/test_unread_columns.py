"""Columns by their sides, and columns that are not read: said once, never dropped in silence."""

import json
import logging

import pytest

import samesense
from samesense.data import read_pairs
from samesense.data.benchmarks.sentences import read_sentences
from samesense.data.documents import read_documents
from samesense.data.kinds import detect_kind
from samesense.data.sentences import unlabelled_texts
from samesense.data.tuples.read import read_tuples
from tests.data.reading_rules import TRIPLET_NAMES

ROWS = [("a cat sleeps", "the cat is asleep", "it rains"), ("snow falls", "it is snowing", "noon")]


def table(path, header, rows):
    path.write_text("".join(",".join(row) + "\n" for row in [header, *rows]))
    return path


@pytest.mark.parametrize("names", TRIPLET_NAMES)
def test_three_columns_of_an_anchor_and_its_sides_are_triplets(tmp_path, names, caplog):
    caplog.set_level(logging.INFO, "samesense")
    path = table(tmp_path / "a.csv", names.split(","), ROWS)
    assert detect_kind(path).kind == "pairs"
    data = samesense.read(path)
    assert (data.kind, data.labels) == ("triplet", [1, 0, 1, 0])
    assert data.pairs()[:2] == [("a cat sleeps", "the cat is asleep"), ("a cat sleeps", "it rains")]
    assert read_pairs(path).pairs() == data.pairs()
    assert read_pairs(path, columns=names).pairs() == data.pairs()
    assert read_tuples(path).negatives == [["it rains"], ["noon"]]
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_several_sides_are_anchors_with_positives_and_negatives(tmp_path):
    names = ["text", "text_pos_1", "text_pos_2", "text_neg"]
    path = table(tmp_path / "a.csv", names, [("a cat", "b cat", "c cat", "d dog"), ("e", "f", "g", "h")])
    assert detect_kind(path).kind == "tuples"
    data = samesense.read(path)
    assert (data.positives[0], data.negatives[0]) == (["b cat", "c cat"], ["d dog"])
    lists = table(tmp_path / "b.csv", ["text", "text_pos"], [("a", "\"['b', 'c']\""), ("d", "['e']")])
    assert samesense.read(lists).positives == [["b", "c"], ["e"]]
    lone = table(tmp_path / "c.csv", ["text", "text_pos"], [row[:2] for row in ROWS])
    assert samesense.read(lone).positives == [["the cat is asleep"], ["it is snowing"]]


def test_a_side_beside_usual_names_is_read_too(tmp_path):
    path = table(tmp_path / "a.csv", ["anchor", "positive", "negative_text"], ROWS)
    assert samesense.read(path).negatives == [["it rains"], ["noon"]]


def test_numbers_of_a_side_are_no_texts(tmp_path):
    path = table(tmp_path / "a.csv", ["text", "pos", "neg"], [("good film", "0.9", "0.1"), ("bad film", "0.2", "0.8")])
    assert detect_kind(path).kind == "texts"
    scores = table(
        tmp_path / "b.csv", ["text", "pos_score", "neg_score"], [("good film", "0.9", "0.1"), ("x y", "1", "0")]
    )
    assert detect_kind(scores).kind == "texts"


def warned(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("text1,text2,score,remark", read_pairs),
        ("text1,text2,score,remark", samesense.read),
        ("text,remark", unlabelled_texts),
        ("anchor,positive,remark", samesense.read),
        ("text,label,remark", read_sentences),
    ],
)
def test_a_column_of_texts_that_is_not_read_is_warned_of_once(tmp_path, header, read, caplog):
    cells = {
        "text1": "a {}",
        "text2": "b {}",
        "text": "c {}",
        "anchor": "d {}",
        "positive": "e {}",
        "left": "f {}",
        "right": "g {}",
        "sentence1": "h {}",
        "sentence2": "i {}",
        "remark": "long remark no {}",
    }
    names = header.split(",")
    rows = [
        [cells.get(name, "{}").format(i % 2 if name in ("score", "label") else i) for name in names] for i in range(6)
    ]
    path = table(tmp_path / "a.csv", names, rows)
    for _ in range(2):
        read(path)
    (message,) = warned(caplog)
    assert f"{path}: column 'remark' holds texts and is not read; read " in message
    assert "`columns`" in message


def test_documents_say_that_titles_are_not_read(tmp_path, caplog):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"title": f"On {i}", "text": f"One {i}. Two."}) + "\n" for i in range(3)))
    assert len(list(read_documents(path))) == 3
    assert warned(caplog) == [
        f"{path}: column 'title' holds texts and is not read; read is 'text'. Only 'text' is read of documents."
    ]


def test_other_columns_are_named_once(tmp_path, caplog):
    caplog.set_level(logging.INFO, "samesense")
    rows = [(str(i), f"a {i}", f"b {i}", str(i % 2), "news", "2024-01-02") for i in range(6)]
    path = table(tmp_path / "a.csv", ["id", "text1", "text2", "score", "topic", "date"], rows)
    for _ in range(2):
        read_pairs(path)
    assert [record.getMessage() for record in caplog.records] == [f"{path}: not read: id, topic, date"]
    assert detect_kind(path).sure


def test_columns_of_parquet_that_are_not_read_are_named_by_their_types_alone(tmp_path, caplog):
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"\xff"]).buffers())
    columns = {"text1": ["a", "b"], "text2": ["c", "d"], "score": [0.0, 1.0], "remark": damaged, "size": [1, 2]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert len(read_pairs(tmp_path / "a.parquet")) == 2
    (message,) = warned(caplog)
    assert "column 'remark' holds texts and is not read" in message


def test_of_very_many_columns_the_first_are_named(tmp_path, caplog):
    names = [f"note {i}" for i in range(300)]
    path = table(
        tmp_path / "a.csv", ["text1", "text2", "score", *names], [["a", "b", "0", *names], ["c", "d", "1", *names]]
    )
    assert len(read_pairs(path)) == 2
    (message,) = warned(caplog)
    assert "'note 9' and 290 more hold texts" in message
    assert len(message) < 400 + len(str(path))


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (("a", "b", "score", "split"), "a,b,score"),
        (("a", "b", "split"), "a,b"),
        (("a", "label", "split"), "a,label"),
        (("a", "split"), "a"),
    ],
)
def test_a_column_of_splits_is_warned_of_beside_columns_that_are_named(tmp_path, names, columns, caplog):
    cells = {"a": "a text {}", "b": "another {}", "score": "{}", "label": "{}", "split": "train"}
    rows = [
        [cells[name].format(i % 2 if name in ("score", "label") else i) for name in names[:-1]]
        + ["test" if i > 4 else "train"]
        for i in range(6)
    ]
    path = table(tmp_path / "a.csv", list(names), rows)
    for _ in range(2):
        samesense.read(path, columns=columns)
    (message,) = warned(caplog)
    assert f"{path}: column 'split' names parts of the data, such as 'train', and is not read" in message


@pytest.mark.parametrize(
    "names", [("text", "label", "answer"), ("text1", "text2", "label", "answer"), ("text", "answer")]
)
@pytest.mark.parametrize(
    "given", [["accept", "reject", "accept"], ["accept", "reject", ""], [*150 * ["accept"], "reject"]]
)
def test_a_column_of_answers_of_annotators_is_warned_of(tmp_path, names, given, caplog):
    cells = {"text": "a text {}", "text1": "one {}", "text2": "another {}"}
    for refused in (False, True):
        rows = [
            [
                *(cells.get(name, str(row % 2)).format(row) for name in names[:-1]),
                given[row % len(given)] if refused else "accept",
            ]
            for row in range(300)
        ]
        path = table(tmp_path / f"{refused}.csv", list(names), rows)
        assert samesense.doctor(path)
        messages = [message for message in warned(caplog) if "annotator" in message]
        assert len(messages) == refused
    assert f"{path}: column 'answer' says what an annotator answered, such as 'reject', and is not read" in messages[0]
