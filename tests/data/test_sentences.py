"""Labelled sentences from files and the hub, and the rows that are refused."""

import random

import pytest

from samesense.data import read_sentences
from samesense.data.benchmarks.sentences import labelled_sentences
from samesense.errors import DataError


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_labels_and_texts_keep_their_order(tmp_path):
    path = write(tmp_path / "mood.tsv", ["label\tsentence", "1\tA bright day .", '0\t" Rain again', "1\tSo be it ."])
    data = read_sentences(path)
    assert data.texts == ["A bright day .", '" Rain again', "So be it ."]
    assert (data.labels, data.classes, data.name, len(data)) == ([1, 0, 1], ("0", "1"), "mood.tsv", 3)


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    rows = [("a dog", "1"), ("a cat", "0")]
    tsv = write(tmp_path / "a.tsv", ["label\tsentence", *(f"{label}\t{text}" for text, label in rows)])
    csv = write(tmp_path / "b.csv", ["text,label", *(f"{text},{label}" for text, label in rows)])
    other = write(tmp_path / "c.tsv", ["label\tsentence", "1\ta cat", "0\ta dog"])
    assert read_sentences(tsv).sha256 == read_sentences(csv).sha256 != read_sentences(other).sha256


def test_class_names_are_numbered_in_their_order_and_integers_by_size():
    named = labelled_sentences(["a", "b", "c"], ["NUM", "ABBR", "HUM"], "s")
    assert (named.classes, named.labels) == (("ABBR", "HUM", "NUM"), [2, 0, 1])
    counted = labelled_sentences(["a", "b", "c"], ["10", "2", "9"], "s")
    assert (counted.classes, counted.labels) == (("2", "9", "10"), [2, 0, 1])


def test_names_are_the_same_in_every_split():
    test = labelled_sentences(["d", "e", "f"], ["NUM", "HUM", "NUM"], "test")
    assert (test.labels, test.named()) == ([1, 0, 1], ["NUM", "HUM", "NUM"])


def test_numbering_at_size_against_a_plain_count():
    source = random.Random(3)
    names = [f"kind {number}" for number in range(40)]
    classes = [source.choice(names) for _ in range(5000)]
    data = labelled_sentences([f"text {i}" for i in range(5000)], classes, "s")
    assert [data.classes[label] for label in data.labels] == classes
    assert [sum(name > other for other in names) for name in classes] == data.labels


def test_empty_sentences_are_refused_unless_kept(tmp_path):
    path = write(tmp_path / "m.tsv", ["label\tsentence", "1\t", "0\tb"])
    with pytest.raises(DataError, match=r"1 of 2 rows cannot be used\.\n  row 2, column 'sentence': the text is empty"):
        read_sentences(path)
    assert read_sentences(path, keep_empty=True).texts == ["", "b"]


def test_bad_rows_are_numbered_and_can_be_dropped(tmp_path):
    path = write(
        tmp_path / "m.jsonl",
        [
            '{"text": "a", "label": 1}',
            '{"text": null, "label": 0}',
            '{"text": "c", "label": -1}',
            '{"text": "d", "label": 0.5}',
            '{"text": "e", "label": 0.0}',
        ],
    )
    with pytest.raises(DataError) as caught:
        read_sentences(path)
    message = str(caught.value)
    assert "3 of 5 rows cannot be used" in message
    for part in (
        "row 2, column 'text': a text is needed, received nothing",
        "row 3, column 'label': -1 names no class",
    ):
        assert part in message
    kept = read_sentences(path, drop_bad_rows=True)
    assert (kept.texts, kept.labels, kept.dropped) == (["a", "e"], [1, 0], 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["label\twords", "1\ta", "0\tb"], "need a text column .* found label, words"),
        (["mood\tsentence", "1\ta", "0\tb"], "and a label column .* found mood, sentence"),
        (["label\tsentence", "1\ta", "1\tb"], "two classes or more; all 2 sentences are of '1'"),
        (["label\tsentence"], "there are no rows"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        read_sentences(write(tmp_path / "m.tsv", lines))
