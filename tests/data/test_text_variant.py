"""The format of a text is detected from its content."""

import pytest

from samesense.data.benchmarks.comparability import is_chinese, text_variant

RAW = ["A man eats, then sleeps.", "Where is it?", "Two dogs run"] * 50


def tokenised(texts):
    return [text.replace(",", " ,").replace(".", " .").replace("?", " ?") for text in texts]


@pytest.mark.parametrize(
    ("texts", "variant"),
    [
        (RAW, "raw text"),
        ([text.lower() for text in RAW], "lower-cased text"),
        (tokenised(RAW), "tokenised text"),
        ([text.lower() for text in tokenised(RAW)], "tokenised, lower-cased text"),
        (["a man eats .", "The end .", *["it is so ."] * 38], "tokenised, lower-cased text"),
        (["The end .", "A man eats .", "It rains .", *["it is so ."] * 37], "tokenised text"),
        (["no mark at all"] * 9, "lower-cased text"),
        (["No mark at all"] * 9, "raw text"),
        (["3.5 of 4.5", "1,000 men"], "lower-cased text"),
        (["一个人在吃饭。", "天 黑 了 。"], "raw text"),
    ],
)
def test_variants(texts, variant):
    assert text_variant(texts) == variant


def test_chinese_is_what_most_texts_are():
    assert is_chinese(["他来了", "ok", "下雨了"])
    assert not is_chinese(["他来了", "ok"])
    assert not is_chinese([])
