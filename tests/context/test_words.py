import pytest

from samesense.context.corpus.words import joiner, key, text_keys, words, words_and_marks
from samesense.context.discriminator.lstm import UNKNOWN, Vocabulary
from samesense.errors import ConfigError, ModelError


def test_words_are_runs_of_letters_and_single_characters_of_chinese():
    assert words("The U.S. isn't ＡＢ1-2, 他在Apple工作。カナ") == [
        *"the u s isn t ab1 2 他 在 apple 工 作 カ ナ".split()
    ]
    assert words_and_marks("Well, 好! 3.5 %") == ["well", ",", "好", "!", "3", ".", "5", "%"]
    assert words("?! …") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("वह किताब पढ़ता है।", ["वह", "किताब", "पढ़ता", "है"]),
        ("كَتَبَ الوَلَدُ", ["كَتَبَ", "الوَلَدُ"]),
        ("இது ஒரு புத்தகம்.", ["இது", "ஒரு", "புத்தகம்"]),
        ("x̂ = 2 ❤️", ["x̂", "2"]),
        ("ที่นี่ดี", ["ที่", "นี่", "ดี"]),
        ("ฉันกิน", ["ฉั", "น", "กิ", "น"]),
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
    ],
)
def test_a_word_goes_on_over_combining_marks(text, expected):
    assert words(text) == expected


def test_texts_that_differ_in_marks_alone_are_no_copies():
    hindi = ("वह किताब पढ़ता है।", "वह कुतुब पढ़ती हो।")
    arabic = ("كَتَبَ", "كُتُب")
    for text, unmarked in (hindi, arabic):
        keys = text_keys([text, unmarked])
        assert keys[0] != keys[1]
    assert words_and_marks("❤️ ok") == ["❤️", "ok"]


def test_keys_are_the_same_in_every_process():
    assert key("a") == 0x2F42665B399EF840  # b2sum --length=64, little-endian
    assert key("a") != key("A")


def test_what_joins_sentences():
    assert [joiner(text) for text in ("He left.", "他走了。", " 「好」", "1984", "")] == [" ", "", "", " ", " "]


def test_a_vocabulary_counts_and_numbers():
    sentences = ["b a a.", "A b, c", "d"]
    vocabulary = Vocabulary.count(sentences)
    assert vocabulary.words == ["a", "b"]
    assert len(vocabulary) == 4
    assert vocabulary.numbers("B x a .", most=9) == [3, UNKNOWN, 2, UNKNOWN]
    assert vocabulary.numbers("a b a", most=2) == [2, 3]
    assert vocabulary.numbers("", most=2) == [UNKNOWN]
    assert Vocabulary.count(sentences, least=1, most=3).words == ["a", "b", ","]


def test_errors():
    with pytest.raises(ConfigError, match="No word of the corpus comes 5 times"):
        Vocabulary.count(["a a b"], least=5)
    for wrong in ([], ["a", "b", "a"]):
        with pytest.raises(ModelError, match="A vocabulary has one word at least"):
            Vocabulary(wrong)
