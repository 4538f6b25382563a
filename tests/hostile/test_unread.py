"""Random texts that a model cannot tell apart because they are truncated: never merged as duplicates."""

import random

import numpy as np
import pytest

import samesense
from tests.conftest import WORDS
from tests.hostile.conftest import figures, rounds

SIGNS = [chr(code) for code in (*range(0x1F600, 0x1F640), *range(0x10A00, 0x10A30), *range(0x4E00, 0x4E60))]


@pytest.fixture(scope="module")
def model(tiny_trunk):
    return samesense.load(str(tiny_trunk), precision="float32")


def pair(source):
    """Two texts that differ in what is not read, and whether they are the same but for case."""
    words = source.choices(WORDS, k=source.choice([3, 61, 62, 63, 90, 200]))
    kind = source.choice(["behind", "sign", "signs alone", "more", "case", "read"])
    changed = list(words)
    if kind == "behind" and len(words) > 62:
        position = source.randrange(62, len(words))
        changed[position] = source.choice([word for word in WORDS if word != words[position]])
    elif kind == "more" and len(words) > 61:
        changed += source.choices(WORDS, k=source.randint(1, 9))
    elif kind == "signs alone":
        words, changed = ([sign] for sign in source.sample(SIGNS, 2))
    elif kind == "case":
        return " ".join(words), " ".join(words).upper(), True
    else:
        position = source.randrange(min(60, len(words)))
        words[position], changed[position] = source.sample(SIGNS, 2)
    return " ".join(words), " ".join(changed), False


def test_what_was_not_read_is_never_the_same(model):
    source = random.Random(52)
    count = rounds(150, 5000)
    merged = 0
    for _ in range(count):
        first, second, same = pair(source)
        duplicates = samesense.dedup([first, second], model=model, threshold=source.choice([0.5, 0.9, 0.999999]))
        matched = samesense.match([first], [second], model=model, threshold=0.9)
        assert (len(duplicates.kept) == 1) is same, (first, second)
        assert (len(matched.pairs) == 1) is same, (first, second)
        merged += same
    figures("texts that differ in what was not read", {"pairs": count - merged, "merged": 0})


@pytest.mark.parametrize("by", ["representative", "linked"])
def test_many_texts_of_one_vector_fall_into_their_own_groups(model, by, monkeypatch):
    from samesense.inference.duplicates import links

    source = random.Random(by)
    head = " ".join(source.choices(WORDS, k=70))
    texts = [f"{head} {source.choice(WORDS)}" for _ in range(200)] + source.choices(SIGNS, k=200)
    source.shuffle(texts)
    monkeypatch.setattr(links, "LINKS_PER_ROW", 2)
    duplicates = samesense.dedup(texts, model=model, threshold=0.99, by=by)
    assert len(duplicates.kept) == len(set(texts))
    assert all(texts[row] == texts[representative] for row, representative in enumerate(duplicates.kept_by))


def test_the_same_text_is_found_among_many_of_one_vector(model):
    source = random.Random(7)
    signs = source.sample(SIGNS, len(SIGNS))
    matched = samesense.match(signs, SIGNS, model=model, threshold=0.99)
    assert [SIGNS[pair.match] for pair in matched.pairs] == signs
    assert np.all([pair.score == 1.0 for pair in matched.pairs])
