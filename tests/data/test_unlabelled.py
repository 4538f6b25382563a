"""Unlabelled sentences from any source: joined, deduplicated, with one fingerprint."""

import gzip
import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from samesense.data.sentences import Sentences, read_unlabelled
from samesense.errors import ConfigError, DataError

TEXTS = ["A dog runs.", "Ein Hund läuft.", "雪が降る。", "a\tb"]


def fingerprint(texts):
    return Sentences(texts=list(texts), source="", name="").sha256


def plain(path, texts):
    path.write_text("\n".join(texts) + "\n", encoding="utf-8", newline="")


def zipped(path, texts):
    path.write_bytes(gzip.compress("\r\n".join(texts).encode()))


def lines(path, texts):
    path.write_text("".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts))


def parquet(path, texts):
    pq.write_table(pa.table({"label": [0] * len(texts), "sentence": texts}), path)


def documents(path, texts):
    sections = [{"title": "", "sentences": texts[:1]}, {"title": "x", "sentences": texts[1:3]}]
    last_sections = {"sections": [texts[3:]]}
    path.write_text(json.dumps({"sections": sections}) + "\n" + json.dumps(last_sections) + "\n")


def dataset(path, texts):
    from datasets import Dataset

    Dataset.from_dict({"text": texts}).save_to_disk(str(path))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.txt", plain),
        ("a.lines", plain),
        ("a.txt.gz", zipped),
        ("a.jsonl", lines),
        ("a.parquet", parquet),
        ("documents.jsonl", documents),
        ("folder", dataset),
    ],
)
def test_every_form_gives_the_same_sentences_and_fingerprint(tmp_path, name, write):
    write(tmp_path / name, TEXTS)
    corpus = read_unlabelled(tmp_path / name)
    assert corpus.texts == TEXTS
    assert corpus.sha256 == fingerprint(TEXTS)
    assert (corpus.source, len(corpus)) == (str(tmp_path / name), 4)
    assert corpus.summary == "4 sentences"


def test_a_table_of_pairs_gives_both_columns(tmp_path):
    (tmp_path / "pairs.tsv").write_text("score\tsentence1\tsentence2\n1\ta dog\ta cat\n2\ta bird\ta dog\n")
    assert read_unlabelled(tmp_path / "pairs.tsv").texts == ["a dog", "a cat", "a bird"]


def test_sources_are_joined_and_what_is_left_out_is_said(tmp_path):
    plain(tmp_path / "a.txt", ["one", "", "two", "one", "a longer sentence", "x"])
    plain(tmp_path / "b.txt", ["two", "three", "  "])
    sources = [tmp_path / "a.txt", str(tmp_path / "b.txt")]
    corpus = read_unlabelled(sources, min_chars=2, max_chars=10)
    assert corpus.texts == ["one", "two", "three"]
    assert corpus.left_out == {"empty": 2, "too short or too long": 2, "repeated": 2}
    assert corpus.summary == "3 sentences; left out: 2 empty, 2 too short or too long, 2 repeated"
    assert (corpus.name, corpus.source) == ("a.txt + b.txt", f"{sources[0]} + {sources[1]}")
    assert read_unlabelled(sources, keep_repeated=True, max_chars=5).texts == ["one", "two", "one", "x", "two", "three"]


def test_a_sentence_of_the_fewest_or_the_most_characters_stays(tmp_path):
    plain(tmp_path / "a.txt", ["a", "ab", "abc", "abcd"])
    assert read_unlabelled(tmp_path / "a.txt", min_chars=2, max_chars=3).texts == ["ab", "abc"]


def test_rows_are_taken_in_the_order_given(tmp_path):
    plain(tmp_path / "a.txt", TEXTS)
    corpus = read_unlabelled(tmp_path / "a.txt")
    taken = corpus.take(np.array([2, 0]))
    assert taken.texts == [TEXTS[2], TEXTS[0]]
    assert taken.sha256 == fingerprint(taken.texts)
    assert (taken.source, taken.name) == (corpus.source, corpus.name)


def test_the_fingerprint_knows_where_a_text_ends():
    assert fingerprint(["ab", "c"]) != fingerprint(["a", "bc"]) != fingerprint(["abc"])
    assert fingerprint(["a", "b"]) != fingerprint(["b", "a"])
    assert fingerprint(["é"]) == hashlib.sha256(b"\x02" + bytes(7) + "é".encode()).hexdigest()


def test_errors_name_the_place(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"fine\nna\xefve\n")
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{"text": \n')
    (tmp_path / "half.jsonl").write_text('{"text": "a"}\n{"text": "\\ud83d"}\n')
    (tmp_path / "half-documents.jsonl").write_text('{"sections": [["a"]]}\n{"sections": [["\\udc00"]]}\n')
    (tmp_path / "number.jsonl").write_text('{"text": "a"}\n{"text": 7}\n')
    (tmp_path / "none.txt").write_text("\n\n")
    for name, message in {
        "latin.txt": r"latin\.txt, row 2: text must be UTF-8",
        "bad.jsonl": r"bad\.jsonl, row 2: every line must be one JSON object",
        "half.jsonl": r"half\.jsonl, row 2, column 'text': the text holds half of a surrogate pair",
        "half-documents.jsonl": r"document 2: the text holds half of a surrogate pair",
        "number.jsonl": r"row 2, column 'text': a text is needed, received int",
        "none.txt": r"none\.txt: no sentence is left of 2, 2 of them empty",
        "absent.txt": r"absent\.txt: there is no such file",
    }.items():
        with pytest.raises(DataError, match=message):
            read_unlabelled(tmp_path / name)
    with pytest.raises(DataError, match="no sentence is left of 0"):
        read_unlabelled([])
    for min_chars, max_chars in ((5, 4), (0, None), (None, 0)):
        with pytest.raises(ConfigError, match="Lengths must be 1 or more and leave a range"):
            read_unlabelled(tmp_path / "none.txt", min_chars=min_chars, max_chars=max_chars)
