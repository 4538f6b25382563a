import subprocess
import sys

import numpy as np
import pytest

from samesense.context.corpus import build as module
from samesense.context.corpus.corpus import Corpus, Shape, Window
from samesense.errors import ConfigError, DataError, OutputError
from tests.context.made_documents import documents

DOCUMENTS = [*documents(60), [[], []], [["也可以。", "Ünïcode \u2028 stays.", "\U0001f600"]], [["One alone."]], []]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_DOCUMENTS", 7)


@pytest.fixture
def corpus(tmp_path):
    return Corpus.build(tmp_path / "corpus", DOCUMENTS)


def flat():
    """Yield every sentence with the numbers of its document and section, and its position in the document."""
    section = -1
    for number, document in enumerate(DOCUMENTS):
        position = 0
        for section_texts in document:
            section += 1
            for text in section_texts:
                yield text, number, section, position
                position += 1


def test_sentences_documents_and_sections(corpus):
    expected = list(flat())
    assert len(corpus) == len(expected)
    assert corpus.documents == len(DOCUMENTS)
    assert list(corpus) == [text for text, *_ in expected]
    ids = np.arange(len(corpus))
    rows = zip(corpus.sentences(ids), corpus.documents_of(ids), corpus.sections_of(ids), strict=True)
    assert list(rows) == [row[:3] for row in expected]


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(left=1, right=3, least=0, chunk=4),
        Shape(left=2, right=2, least=2),
        Shape(left=0, right=1, least=0),
    ],
)
def test_windows_and_chunks_stay_within_documents(tmp_path, corpus, shape):
    corpus = Corpus(tmp_path / "corpus", shape)
    texts = [[text for section in document for text in section] for document in DOCUMENTS]
    expected = []
    chunk = -1
    members = {}
    for i, (_, number, _, position) in enumerate(flat()):
        chunk += position % shape.chunk == 0
        members.setdefault(chunk, []).append(i)
        sentences = texts[number]
        left = tuple(sentences[max(0, position - shape.left) : position])
        right = tuple(sentences[position + 1 : position + 1 + shape.right])
        if min(len(left), len(right)) >= shape.least and (left or right):
            expected.append(Window(left, sentences[position], right, i))
    assert [corpus.window(int(i)) for i in corpus.windows] == expected
    assert corpus.windows_at(corpus.windows[::-1]) == expected[::-1]
    assert corpus.chunks == chunk + 1
    starts, ends = corpus.chunk_bounds(np.arange(corpus.chunks))
    assert [list(range(s, e)) for s, e in zip(starts, ends, strict=True)] == list(members.values())
    assert all(corpus.chunks_of(np.array([i]))[0] == number for number, ids in members.items() for i in ids)


def test_what_is_no_window_is_refused(corpus):
    assert 0 not in corpus.windows
    with pytest.raises(DataError, match=r"sentence 0 of .* is too near an edge"):
        corpus.window(0)
    with pytest.raises(IndexError, match="numbered 0 to"):
        corpus.windows_at([1, len(corpus)])
    for i in (-1, len(corpus)):
        with pytest.raises(IndexError, match="numbered 0 to"):
            corpus.sentence(i)


def test_random_windows_are_different_and_seeded(corpus):
    drawn = corpus.random_windows(3, 50)
    assert len(set(drawn)) == 50
    assert set(drawn) <= set(corpus.windows)
    np.testing.assert_array_equal(drawn, corpus.random_windows(3, 50))
    assert set(drawn) != set(corpus.random_windows(4, 50))
    assert sorted(corpus.random_windows(0, len(corpus.windows))) == list(corpus.windows)
    with pytest.raises(ConfigError, match="windows were asked for"):
        corpus.random_windows(0, len(corpus.windows) + 1)


def test_the_fingerprint_is_that_of_the_content(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_DOCUMENTS", 1000)
    assert Corpus.build(tmp_path / "same", iter(DOCUMENTS)).sha256 == corpus.sha256
    variants = [
        DOCUMENTS[::-1],
        [*DOCUMENTS, [["More."]]],
        [[[text for section in document for text in section]] for document in DOCUMENTS],
        [[text for document in DOCUMENTS for text in document]],
    ]
    fingerprints = {Corpus.build(tmp_path / str(number), changed).sha256 for number, changed in enumerate(variants)}
    assert len(fingerprints | {corpus.sha256}) == 5


def test_equal_words_have_equal_keys(tmp_path):
    texts = ["A man plays.", "a  man plays", "A man, plays!", "A man played.", "...", "!", "他来了。", "他来了"]
    keys = Corpus.build(tmp_path / "c", [[texts]]).text_keys
    assert keys[0] == keys[1] == keys[2]
    assert keys[6] == keys[7]
    assert len(set(keys)) == 5


def names(folder):
    return sorted(path.name for path in folder.iterdir())


KILLED = """
import os, sys
from pathlib import Path
from samesense.context.corpus import build as module
from tests.context.test_corpus import DOCUMENTS
module.BLOCK_DOCUMENTS = 7
left, inner = [int(sys.argv[2])], getattr(module, sys.argv[3])
def counted(*args):
    if left[0] == 0:
        os._exit(9)
    left[0] -= 1
    return inner(*args)
setattr(module, sys.argv[3], counted)
module.build_corpus(Path(sys.argv[1]) / "killed", DOCUMENTS)
"""


@pytest.mark.parametrize(("calls", "what"), [(0, "append"), (20, "append"), (0, "write_json")])
def test_a_killed_build_begins_again(tmp_path, corpus, calls, what):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(calls), what], check=False)
    assert done.returncode == 9
    assert not (tmp_path / "killed").exists()
    assert module.build_corpus(tmp_path / "killed", DOCUMENTS) == corpus.sha256
    assert names(tmp_path / "killed") == names(corpus.folder)
    for path in corpus.folder.iterdir():
        assert (tmp_path / "killed" / path.name).read_bytes() == path.read_bytes()
    assert names(tmp_path) == ["corpus", "killed"]


@pytest.mark.parametrize("bad", [[["fine", " "]], [["fine", 3]], ["a text"], [["half \ud800"]]])
def test_bad_sentences_are_named(tmp_path, bad):
    with pytest.raises(DataError, match="section 0 of document 1 "):
        module.build_corpus(tmp_path / "c", [[["good"]], bad])
    assert not (tmp_path / "c").exists()


def test_errors(tmp_path, corpus):
    with pytest.raises(OutputError, match="exists already"):
        module.build_corpus(corpus.folder, DOCUMENTS)
    with pytest.raises(DataError, match="2 documents were given and none holds one"):
        module.build_corpus(tmp_path / "empty", [[], [[]]])
    with pytest.raises(DataError, match="is no corpus"):
        Corpus(tmp_path)
    path = corpus.folder / "ends.bin"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"ends\.bin must hold \d+ bytes and holds \d+"):
        Corpus(corpus.folder)


@pytest.mark.parametrize("sizes", [{"left": 0, "right": 0, "least": 0}, {"left": -1}, {"chunk": 0}, {"least": 3}])
def test_impossible_shapes_are_refused(sizes):
    with pytest.raises(ConfigError):
        Shape(**sizes)


def test_windows_that_hold_a_sentence_anywhere_are_left_out(tmp_path):
    texts = ["One.", "Two.", "Three.", "Four.", "Five.", "Six.", "Seven.", "one!", "Nine."]
    corpus = Corpus.build(tmp_path / "holding", [[texts], [["Ten.", "Eleven.", "Twelve."]]])
    from samesense.context.corpus.words import text_keys

    remaining = corpus.without(corpus.windows, text_keys(["ONE"])[0])
    held = [
        i
        for i in corpus.windows
        if any(
            "one" in text.lower().strip(".!").split()
            for text in [*corpus.window(int(i)).left, corpus.window(int(i)).centre, *corpus.window(int(i)).right]
        )
    ]
    assert sorted([*remaining, *held]) == corpus.windows.tolist() and held == [1, 2, 5, 6, 7]
