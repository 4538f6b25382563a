"""Long texts in windows: all characters are covered, no window exceeds the model's length; and their vectors."""

import math

import numpy as np
import pytest

from samesense.encoder.assembly.build import build
from samesense.encoder.windows import Reading, cut_into_windows, describe_windows
from samesense.inference.models.load import load
from tests.conftest import WORDS


def by_characters(longest):
    """A model that reads characters, and adds two of its own."""
    return Reading(
        longest,
        lambda texts: [len(text) + 2 for text in texts],
        lambda text: [(index, index + 1) for index in range(len(text))],
    )


@pytest.mark.parametrize("longest", [5, 7, 12, 40])
def test_windows_hold_the_text_and_none_is_too_long(longest):
    text = " ".join(WORDS[:30])
    for long_text in (text, text.replace(" ", ""), "文" * 100, "a" + " " * 50 + "b"):
        windows_of_texts = cut_into_windows(["short"[: longest - 2], long_text], by_characters(longest))
        assert windows_of_texts.counts[0] == 1 and windows_of_texts.texts[0] == "short"[: longest - 2]
        windows = windows_of_texts.texts[1:]
        assert "".join("".join(windows).split()) == "".join(long_text.split())
        assert max(map(len, windows)) <= longest - 2
        assert windows_of_texts.figures == {"cut": 1, "windows": len(windows)}
    assert len(cut_into_windows(["文" * 100], by_characters(52)).texts) == 2


def test_windows_begin_with_words_and_are_of_like_length():
    words = [word[:4] for word in WORDS * 3]
    windows = cut_into_windows([" ".join(words)], by_characters(50)).texts
    assert " ".join(windows).split() == words
    assert min(map(len, windows)) >= 30


def test_a_window_that_has_more_tokens_alone_is_cut_smaller():
    """As where a word is read in other pieces without the space before it."""
    reading = by_characters(20)
    greedy = Reading(
        20, lambda texts: [len(text) + 2 + 4 * (not text.startswith("a ")) for text in texts], reading.spans
    )
    windows = cut_into_windows([" ".join("a bcd efg hij klm nop qrs tuv".split() * 3)], greedy).texts
    assert max(greedy.lengths(windows)) <= 20


def test_a_model_that_reads_everything_cuts_nothing():
    assert cut_into_windows(["x" * 9999], None).counts == [1]
    assert cut_into_windows(["x" * 9999], by_characters(None)).counts == [1]


@pytest.mark.parametrize("method", ["mean", "max"])
def test_vectors_are_joined_as_in_plain_python(method):
    windows = cut_into_windows(["ab", "abcdefghi", "c", "x" * 7], by_characters(5))
    assert windows.counts == [1, 3, 1, 3]
    rows = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
    expected = []
    start = 0
    for count in windows.counts:
        some = rows[start : start + count].tolist()
        start += count
        lengths = [math.sqrt(sum(value * value for value in row)) for row in some]
        joined = [max(column) if method == "max" else sum(column) / count for column in zip(*some, strict=True)]
        norm = math.sqrt(sum(value * value for value in joined))
        expected.append([value * sum(lengths) / count / norm for value in joined])
    np.testing.assert_allclose(windows.join(rows, method), expected, rtol=1e-5)
    np.testing.assert_array_equal(windows.join(rows, method)[[0, 2]], rows[[0, 4]])


def test_it_is_said_in_words():
    assert describe_windows({"cut": 0, "windows": 0}, 3, "mean") == "no text of 3 is longer than what the model reads"
    description = describe_windows({"cut": 2, "windows": 5}, 3, "mean")
    assert description == "2 of 3 texts are longer than what the model reads: cut into 5 windows, the mean is taken"


def test_a_real_model_reads_each_window_whole(tiny_trunk):
    model = load(str(tiny_trunk), precision="float32", device="cpu")
    encoder = build(str(tiny_trunk), device="cpu")
    longest = encoder.max_seq_length
    text = " ".join(WORDS[number * 7 % len(WORDS)] for number in range(3 * longest))
    windows = model.windows(["a dog runs", text])
    assert windows.counts[0] == 1 and windows.counts[1] >= 3
    assert " ".join(windows.texts[1:]) == text
    assert all(len(encoder.tokenizer(window)["input_ids"]) <= longest for window in windows.texts)
