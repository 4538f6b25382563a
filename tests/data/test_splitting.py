import sys

import pytest

from samesense.data.documents import split_paragraphs, split_sentences
from samesense.errors import ConfigError, MissingExtraError


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


def test_blank_text_has_no_sentence():
    for language in ("auto", "en", "zh"):
        assert split_sentences(" \n ", language) == []


def test_errors(monkeypatch):
    with pytest.raises(ConfigError, match="auto, en, zh; received 'de'"):
        split_sentences("Guten Tag.", "de")
    monkeypatch.setitem(sys.modules, "nupunkt", None)
    with pytest.raises(MissingExtraError, match="nupunkt is needed here"):
        split_sentences("One. Two.")
    assert split_sentences("好。") == ["好。"]
