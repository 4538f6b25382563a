"""Documents in JSON lines, read in order and refused by line; running text, split into paragraphs and sentences."""

import gzip
import json
import sys

import pytest

from samesense.data.documents import (
    document_files,
    document_sentences,
    holds_documents,
    read_documents,
    take_held_out,
)
from samesense.data.sentence_splitting import split_paragraphs, split_sentences
from samesense.errors import ConfigError, DataError, MissingExtraError

DOCUMENTS = [
    {"id": "one", "sections": [{"title": "", "sentences": ["Rain fell.", "It was cold."]}, {"sentences": ["Later."]}]},
    {"sections": [["A plain list.", "也可以。"]]},
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "documents.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(d) for d in DOCUMENTS).encode()))
    return path


def test_sections_in_order(file):
    assert list(read_documents(file)) == [[["Rain fell.", "It was cold."], ["Later."]], [["A plain list.", "也可以。"]]]


def test_texts_of_a_folder_with_endings_in_any_case(tmp_path):
    for name in ("A.TXT", "b.txt", "c.Txt.gz", "d.txt.rst"):
        (tmp_path / name).write_text("")
    assert [file.path.name for file in document_files(tmp_path)] == ["A.TXT", "b.txt", "c.Txt.gz"]


def test_only_json_lines_with_sections_hold_documents(file, tmp_path):
    assert holds_documents(file)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "a", "sentence2": "b", "score": 1}\n')
    assert not holds_documents(pairs)
    assert not holds_documents(tmp_path / "pairs.tsv")


@pytest.mark.parametrize("second", [{"text": "no sections"}, {"sections": "x"}, {"sections": [{"sentences": [1]}]}])
def test_a_line_that_is_no_document_is_named(tmp_path, second):
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(json.dumps(d) for d in [DOCUMENTS[0], second]))
    with pytest.raises(DataError, match="row 2, column 'sections': a list of lists of sentences is needed"):
        list(read_documents(path))


def test_an_empty_file_holds_no_document(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text("")
    with pytest.raises(DataError, match="holds no document"):
        list(read_documents(path))


def test_a_document_that_allows_no_comparison_is_never_held_out():
    """One section is compared by document; one sentence, however often, with nothing."""
    assert 160 < len(list(take_held_out([[[f"Sentence {number}.", "Another."]] for number in range(200)], 0.9))) < 200
    assert not list(take_held_out([[[f"Sentence {number}."] * 2] for number in range(200)], 0.9))


def test_paragraphs_are_parted_by_blank_lines():
    text = "\n\nOne line\nand another.\r\n\r\n  Indented.\n \t\n\n\nLast\rone.\n"
    assert split_paragraphs(text) == ["One line\nand another.", "Indented.", "Last\none."]
    assert split_paragraphs(" \n\n ") == []


def test_english_knows_abbreviations_and_joins_lines():
    text = (
        'Dr. Li left at 5 p.m. on Friday. "Are you\n  coming?" she asked. It was 3.50 in the U.S. then... Nobody paid!'
    )
    assert split_sentences(text) == [
        "Dr. Li left at 5 p.m. on Friday.",
        '"Are you coming?" she asked.',
        "It was 3.50 in the U.S. then...",
        "Nobody paid!",
    ]


def test_chinese_ends_at_its_marks_with_what_closes_them():
    text = "雨停了。他问：“走吗？”她笑了……\n天亮\n了；路很远！！（真的。）好"
    assert split_sentences(text) == [
        "雨停了。",
        "他问：“走吗？”",
        "她笑了……",
        "天亮了；",
        "路很远！！",
        "（真的。）",
        "好",
    ]


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("他在 Apple 工作。很忙。", True),
        ("The word 好 means good. It is short.", False),
        ("1984。2001。", False),
        ("全都是。对。", True),
    ],
)
def test_the_language_is_told_from_the_characters(text, chinese):
    assert split_sentences(text) == split_sentences(text, "zh" if chinese else "en")


def test_a_named_language_is_used():
    assert split_sentences("He came. 他来了。She left.", "zh") == ["He came. 他来了。", "She left."]


@pytest.mark.parametrize(
    "sentences",
    [
        ["これはペンです。", "あれは本です！", "そうですか？", "はい。"],
        ["私は昨日学校へ行きました。", "とても楽しかった。"],
        ["ｶﾅです｡", "そうです｡"],
    ],
)
def test_japanese_ends_at_its_marks_as_chinese_does(sentences):
    assert split_sentences("".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["هل أكلت اليوم؟", "نعم، أكلت الخبز؛ ثم نمت.", "كان الجو جميلا."],
        ["यह एक वाक्य है।", "यह दूसरा है॥", "यह तीसरा है।"],
        ["یہ ایک جملہ ہے۔", "یہ دوسرا ہے۔”", "اور تیسرا۔"],
    ],
)
def test_marks_of_other_scripts_end_a_sentence_too(sentences):
    assert split_sentences(" ".join(sentences)) == sentences


def test_blank_text_has_no_sentence():
    for language in ("auto", "en", "zh"):
        assert split_sentences(" \n ", language) == []


def test_languages_that_cannot_be_split_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match="auto, en, zh; received 'de'"):
        split_sentences("Guten Tag.", "de")
    monkeypatch.setitem(sys.modules, "nupunkt", None)
    with pytest.raises(MissingExtraError, match="nupunkt is needed here"):
        split_sentences("One. Two.")
    assert split_sentences("好。") == ["好。"]


@pytest.mark.parametrize("mark", ["{}.", "({})", "{})", "§{}.", "-", "•", "Ann Lee:", "[{}]"])
def test_a_document_whose_lines_begin_with_a_mark_and_a_tab_is_read(tmp_path, mark):
    texts = ["The boat left early.", "Nobody asked why it went.", "It rains all day.", "The roof leaks."]
    lines = [f"{mark.format(number)}\t{text}" for number, text in enumerate(texts, 1)]
    (tmp_path / "law.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = " ".join(document_sentences(read_documents(tmp_path / "law.txt")))
    assert all(text[:-1] in words for text in texts)


@pytest.mark.parametrize(
    ("content", "description"),
    [
        ("A man eats.\tHe has a meal.\nA dog runs.\tIt is noon.\n", r"as many tabs each \(1\), so that it is a table"),
        ("5.0\n3.25\n0\n", "its lines are numbers"),
        ('{"text": "a"}\n{"text": "b"}\n', "each line is a JSON object"),
    ],
)
def test_tables_under_the_name_of_a_text_are_no_documents(tmp_path, caplog, content, description):
    (tmp_path / "table.txt").write_text(content)
    (tmp_path / "running.txt").write_text("It rains. The roof leaks.\n")
    assert list(read_documents(tmp_path)) == [[["It rains.", "The roof leaks."]]]
    assert "left out: " in caplog.text and "table.txt" in caplog.text
    with pytest.raises(DataError, match=rf"{description}.*end its name in \.md"):
        list(read_documents(tmp_path / "table.txt"))


@pytest.mark.parametrize("prefix", ["", "train/"])
def test_folders_that_may_be_classes_are_warned_of_once(tmp_path, caplog, prefix):
    for name in ("neg/0.txt", "neg/1.txt", "neg/2.txt", "pos/0.txt", "pos/1.txt", "pos/2.txt"):
        path = tmp_path / "reviews" / prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("It rains. The roof leaks.\n")
    for _ in range(2):
        assert len(list(read_documents(tmp_path / "reviews"))) == 6
    (message,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "the names of its folders, such as 'neg', are not read" in message
    assert "columns text and label" in message
    (tmp_path / "reviews" / "about.txt").write_text("It rains.\n")
    caplog.clear()
    list(read_documents(tmp_path / "reviews"))
    list(read_documents(f"{tmp_path}/reviews"))
    assert not caplog.records
