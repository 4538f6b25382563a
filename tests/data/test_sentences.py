"""Labelled sentences from files and the hub, and the rows that are refused."""

import pytest

from samesense.data import read_sentences
from samesense.errors import DataError


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_labels_and_texts_keep_their_order(tmp_path):
    path = write(tmp_path / "mood.tsv", ["label\tsentence", "1\tA bright day .", '0\t" Rain again', "1\tSo be it ."])
    data = read_sentences(path)
    assert data.texts == ["A bright day .", '" Rain again', "So be it ."]
    assert (data.labels, len(data)) == (["1", "0", "1"], 3)


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
    for fragment in (
        "row 2, column 'text': there is no text",
        "row 3, column 'label': -1 names no class",
    ):
        assert fragment in message
    sentences = read_sentences(path, drop_bad_rows=True)
    assert (sentences.texts, sentences.labels, sentences.dropped) == (["a", "e"], ["1", "0"], 3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["label\twords", "1\ta", "0\tb"], "need a text column .* Its columns: label, words"),
        (["mood\tsentence", "1\ta", "0\tb"], "and a label column .* Its columns: mood, sentence"),
        (["label\tsentence", "1\ta", "1\tb"], "two classes or more; all 2 sentences are of '1'"),
        (["label\tsentence"], "there are no rows"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, lines, message):
    with pytest.raises(DataError, match=message):
        read_sentences(write(tmp_path / "m.tsv", lines))
