import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from samesense.context.corpus.corpus import Corpus, Shape
from samesense.context.corpus.words import words
from samesense.context.retrieval import postings as module
from samesense.context.retrieval.postings import counted, term_keys
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import ConfigError, DataError
from tests.context.made_documents import documents

DOCUMENTS = [*documents(150, seed=1, most=40), [["!!", "..."]], [["他来了。", "我们走吧！", "雨停了。"]]]
QUERIES = [
    "The dog saw the river in the morning.",
    "A tall woman sold a song, without a word; without a word.",
    "river",
    "我们来了",
    "the the the",
    "Nothing known there.",
    "zzz qqq",
    "?!",
    "",
]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_CHUNKS", 100)
    monkeypatch.setattr(module, "RANGE_POSTINGS", 3000)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("c") / "corpus", DOCUMENTS, Shape(chunk=4))


def terms(unigrams, texts):
    """Yield the unigrams and bigrams of some sentences as texts."""
    for text in texts:
        tokens = words(text)
        yield from (f"{first} {second}" for first, second in pairwise(tokens))
        if unigrams:
            yield from tokens


def reference(corpus, unigrams):
    """Return the cosines of the queries with all chunks, by scikit-learn."""
    vectorizer = TfidfVectorizer(analyzer=lambda texts: list(terms(unigrams, texts)), sublinear_tf=True)
    starts, ends = corpus.chunk_bounds(np.arange(corpus.chunks))
    chunks = vectorizer.fit_transform([corpus.sentences(range(s, e)) for s, e in zip(starts, ends, strict=True)])
    return (vectorizer.transform([[query] for query in QUERIES]) @ chunks.T).toarray()


@pytest.mark.parametrize("unigrams", [False, True])
def test_the_cosines_are_those_of_scikit_learn(tmp_path, corpus, unigrams):
    tfidf = Tfidf(corpus, tmp_path, unigrams=unigrams)
    expected = reference(corpus, unigrams)
    assert (expected > 0).any(axis=1).tolist() == [True, True, unigrams, True, unigrams, False, False, False, False]
    for query, row in zip(QUERIES, expected, strict=True):
        ids, cosines = tfidf.chunks(query, corpus.chunks)
        np.testing.assert_allclose(cosines, row[ids], rtol=1e-12)
        assert len(ids) == np.count_nonzero(row)
        assert list(ids) == sorted(ids, key=lambda chunk: (-round(row[chunk], 9), chunk))
        for k in (1, 7):
            np.testing.assert_array_equal(tfidf.chunks(query, k)[0], ids[:k])


def test_pairs_of_words_are_ordered_and_stay_within_a_sentence():
    assert len(np.unique(term_keys("a b a", unigrams=False))) == 2
    assert term_keys("a b", unigrams=False) == term_keys("A, b!", unigrams=False)
    assert len(term_keys("one", unigrams=False)) == 0
    split, whole = (counted(texts, unigrams=True) for texts in (["a b", "b a"], ["a b b a"]))
    assert (len(split[0]), len(whole[0])) == (4, 5)
    assert sorted(split[1]) == [1, 1, 2, 2]


def test_windows_of_the_best_chunks_without_the_sentence_itself(tmp_path, corpus):
    tfidf = Tfidf(corpus, tmp_path)
    window = int(corpus.windows[40])
    same = corpus.sentence(window).upper().rstrip(".")
    results = tfidf.search([*QUERIES, same], 5)
    for query, ids in zip([*QUERIES, same], results, strict=True):
        expected = [
            i
            for chunk in tfidf.chunks(query, 5)[0]
            for i in range(len(corpus))
            if corpus.chunks_of(np.array([i]))[0] == chunk
            and i in corpus.windows
            and words(corpus.sentence(i)) != words(query)
        ]
        assert list(ids) == expected
    assert window not in results[-1]
    assert corpus.chunks_of(np.array([window]))[0] in corpus.chunks_of(results[-1])
    assert len(results[6]) == len(results[7]) == 0


def test_a_bounded_search_reads_the_rarest_terms_first(tmp_path, corpus):
    exact = Tfidf(corpus, tmp_path)
    bounded = Tfidf(corpus, tmp_path, most_postings=60)
    query = QUERIES[1]
    all_ids, _ = exact.chunks(query, corpus.chunks)
    few, cosines = bounded.chunks(query, corpus.chunks)
    assert 0 < len(few) <= 60 < len(all_ids)
    assert (cosines > 0).all()
    keys = np.unique(term_keys(query, unigrams=True))
    _, starts, ends = exact._postings.find(keys)
    rare = [exact._postings.read(starts[[t]], ends[[t]])[0] for t in np.argsort(ends - starts, kind="stable")]
    sizes = np.cumsum([len(chunks) for chunks in rare])
    assert set(few) == set(np.concatenate([chunks for chunks, size in zip(rare, sizes, strict=True) if size <= 60]))
    least = Tfidf(corpus, tmp_path, most_postings=1).chunks("the", corpus.chunks)[0]
    np.testing.assert_array_equal(np.sort(least), np.sort(exact.chunks("the", corpus.chunks)[0]))


@pytest.fixture
def counted_chunks(monkeypatch):
    """Record the number of counted chunks of each block."""
    counts = []
    real = module._write_block

    def write_block(path, start, texts, unigrams):
        counts.append(len(texts))
        return real(path, start, texts, unigrams)

    monkeypatch.setattr(module, "_write_block", write_block)
    return counts


def test_the_index_is_made_once_for_corpus_and_settings(tmp_path, corpus, counted_chunks):
    first = Tfidf(corpus, tmp_path)
    assert sum(counted_chunks) == corpus.chunks
    assert Tfidf(corpus, tmp_path).folder == first.folder
    assert sum(counted_chunks) == corpus.chunks
    variants = [
        Tfidf(corpus, tmp_path, unigrams=False),
        Tfidf(Corpus(corpus.folder, Shape(chunk=3)), tmp_path),
    ]
    assert len({first.folder, *(index_of_variant.folder for index_of_variant in variants)}) == 3
    bounded = Tfidf(corpus, tmp_path, most_postings=60)
    assert bounded.folder == first.folder
    assert len({first.identity, bounded.identity, *(index_of_variant.identity for index_of_variant in variants)}) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(index.folder.name for index in (first, *variants))


@pytest.mark.parametrize(("block", "postings"), [(17, 500), (10**6, 10**9)])
def test_blocks_and_ranges_do_not_matter(tmp_path, corpus, monkeypatch, block, postings):
    first = Tfidf(corpus, tmp_path / "one").folder
    monkeypatch.setattr(module, "BLOCK_CHUNKS", block)
    monkeypatch.setattr(module, "RANGE_POSTINGS", postings)
    second = Tfidf(corpus, tmp_path / "two").folder
    for name in ("keys", "ends", "chunks", "counts"):
        assert (first / f"{name}.bin").read_bytes() == (second / f"{name}.bin").read_bytes()
    norms = [np.fromfile(folder / "norms.bin") for folder in (first, second)]
    np.testing.assert_allclose(*norms, rtol=1e-12)


KILLED = """
import os, sys
from pathlib import Path
from samesense.context.retrieval import postings as module
from samesense.context.corpus.corpus import Corpus
from samesense.context.retrieval.tfidf import Tfidf
from samesense.context.corpus.corpus import Shape
module.BLOCK_CHUNKS = 100
left = [int(sys.argv[3])]
real = Path.replace
def replace(self, target):
    if left[0] == 0:
        os._exit(9)
    left[0] -= 1
    return real(self, target)
Path.replace = replace
Tfidf(Corpus(Path(sys.argv[1]), Shape(chunk=4)), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("blocks", [0, 3])
def test_a_killed_build_goes_on(tmp_path, corpus, counted_chunks, blocks):
    arguments = [str(corpus.folder), str(tmp_path), str(blocks)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False)
    assert done.returncode == 9
    again = Tfidf(corpus, tmp_path)
    assert sum(counted_chunks) == corpus.chunks - 100 * blocks
    whole = Tfidf(corpus, tmp_path / "whole")
    for path in whole.folder.iterdir():
        assert path.read_bytes() == (again.folder / path.name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([again.folder.name, "whole"])


def test_errors(tmp_path, corpus):
    with pytest.raises(ConfigError, match="most_postings must be at least 1"):
        Tfidf(corpus, tmp_path, most_postings=0)
    tfidf = Tfidf(corpus, tmp_path)
    with pytest.raises(ConfigError, match="At least 1 chunk"):
        tfidf.chunks("a", 0)
    path = tfidf.folder / "chunks.bin"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"chunks\.bin must hold"):
        Tfidf(corpus, tmp_path)
