import gzip

import numpy as np
import pytest

from samesense.encoder.vectors.lookup import SIF_A, WORD, WordVectors, read_words
from samesense.errors import ModelError
from samesense.execution.unread import counted

TABLE = {
    "the": [1.0, 0.0],
    "cat": [0.0, 2.0],
    "does": [4.0, 4.0],
    "n't": [-1.0, 3.0],
    "'s": [5.0, 1.0],
    "Paris": [7.0, 7.0],
}
LINES = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in TABLE.items())


@pytest.fixture
def words():
    return WordVectors(list(TABLE), np.array(list(TABLE.values()), dtype=np.float32))


@pytest.mark.parametrize(
    ("text", "expected_words"),
    [
        ("The cat's tail doesn't move.", ["The", "cat", "'s", "tail", "does", "n't", "move", "."]),
        ("Don’t we'll I'm they've", ["Do", "n’t", "we", "'ll", "I", "'m", "they", "'ve"]),
        ("3.5 well-known: (naïve) 'so'", ["3", ".", "5", "well", "-", "known", ":", "(", "naïve", ")", "'", "so", "'"]),
        ("", []),
    ],
)
def test_cutting_into_words(text, expected_words):
    assert WORD.findall(text) == expected_words


def test_average_of_known_words_by_hand(words):
    vectors = words(["The cat does n't unheard-of", "Paris cat cat"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[0], [1.0, 2.25])
    np.testing.assert_allclose(vectors[1], [7 / 3, 11 / 3], rtol=1e-6)


def test_a_word_is_looked_up_as_it_stands_and_then_in_lower_case(words):
    np.testing.assert_array_equal(words(["THE"])[0], [1, 0])
    with counted(apart=True) as unread:
        words(["paris"])
    assert unread.figures == {"unknown": 1}


def test_a_text_of_no_known_word_gets_the_mean_and_is_counted(words):
    with counted(apart=True) as counts:
        vectors = words(["??", "cat", ""])
    assert (counts.texts, counts.unknown.count, counts.unknown.example) == (3, 2, "??")
    np.testing.assert_allclose(vectors[[0, 2]], [np.mean(list(TABLE.values()), axis=0)] * 2, rtol=1e-6)
    assert "a text of no known word gets the mean of all" in words.protocol


def test_sif_weights_against_a_plain_loop():
    draw = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(800)]
    vectors = draw.normal(size=(800, 9)).astype(np.float32)
    texts = [" ".join(draw.choice(vocabulary, size=draw.integers(1, 30))) for _ in range(200)]
    weighted = WordVectors(vocabulary, vectors, sif=True)(texts)
    total = sum(1 / rank for rank in range(1, 801))
    for text, row in zip(texts, weighted, strict=True):
        above = np.zeros(9)
        below = 0.0
        for word in text.split():
            frequency = 1 / ((int(word[1:]) + 1) * total)
            weight = SIF_A / (SIF_A + frequency)
            above = above + weight * vectors[int(word[1:])].astype(float)
            below = below + weight
        np.testing.assert_allclose(row, above / below, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", LINES),
        ("w2v.vec", f"6 2\n{LINES}"),
        ("spaced.txt", LINES.replace("\n", " \n")),
        ("z.txt.gz", LINES),
    ],
)
def test_every_format_gives_the_same_vectors(tmp_path, name, content, words):
    (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wt", encoding="utf-8").write(content)
    texts = ["the cat", "cat's", "Paris does n't"]
    np.testing.assert_array_equal(read_words(tmp_path / name)(texts), words(texts))


def test_a_folder_of_vectors_and_words(tmp_path, words):
    np.save(tmp_path / "vectors.npy", np.array(list(TABLE.values()), dtype=np.float16))
    (tmp_path / "words.txt").write_text("\n".join(TABLE) + "\n")
    np.testing.assert_array_equal(read_words(tmp_path)(["the cat"]), words(["the cat"]))


def test_a_word_may_hold_spaces_and_the_first_of_repeated_words_counts(tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\n. . . 3 4\na 9 9\n")
    np.testing.assert_array_equal(read_words(tmp_path / "v.txt")(["a"]), [[1, 2]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nb 1\n", r"row 2: every line must be a word and 2 numbers .* received 'b 1'"),
        ("a 1 2\nb 1 x\n", "row 2: every line"),
        ("a 1 2\nb 1 nan\n", r"The vector of 'b', row 2, holds a NaN"),
        ("alone\n", "row 1: every line must be a word and its numbers"),
        ("", "one vector a word; received 0 words"),
    ],
)
def test_broken_files_are_named(tmp_path, content, message):
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(ModelError, match=message):
        read_words(tmp_path / "v.txt")


def test_nothing_there(tmp_path):
    with pytest.raises(ModelError, match="There are no word vectors at"):
        read_words(tmp_path / "absent.txt")
    with pytest.raises(ModelError, match=r"holds vectors\.npy and words\.txt"):
        read_words(tmp_path)
