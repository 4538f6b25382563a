import random

import numpy as np
import pytest

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import words
from samesense.context.generator.base import Cells
from samesense.context.origin import context_set
from samesense.context.origin.context_set import ContextSets, Selection, diverse
from samesense.context.origin.similarity import Weights, fit
from samesense.context.origin.terms import Terms
from samesense.errors import ConfigError, DataError
from tests.context.test_context_terms import Lengths
from tests.context.worlds import WordCounts, some_documents, some_sentences


def slow_diverse(previous, chunks, size, jaccard):
    taken = []
    for index, (words_before, chunk) in enumerate(zip(previous, chunks, strict=True)):
        if len(taken) == size:
            break
        if any(chunks[taken_index] == chunk for taken_index in taken):
            continue
        overlaps = [
            len(words_before & previous[taken_index]) / len(words_before | previous[taken_index])
            if words_before | previous[taken_index]
            else 1.0
            for taken_index in taken
        ]
        if all(overlap < jaccard for overlap in overlaps):
            taken.append(index)
    return taken


@pytest.mark.parametrize("jaccard", [0.2, 0.5, 1.0])
def test_the_greedy_choice_is_the_slow_one(jaccard):
    draw = random.Random(0)
    for count, size in ((0, 3), (1, 3), (400, 40), (400, 400)):
        previous = [frozenset(draw.choices("abcdefgh", k=draw.randint(0, 6))) for _ in range(count)]
        chunks = np.array([draw.randrange(150) for _ in range(count)], dtype=np.int64)
        chosen = diverse(previous, chunks, size, jaccard)
        assert chosen.tolist() == slow_diverse(previous, chunks.tolist(), size, jaccard)
        if count == 400:
            assert 3 < len(chosen) <= size


def test_an_overlap_of_exactly_a_half_is_too_much():
    previous = [frozenset("abc"), frozenset("bcd"), frozenset("cdefg"), frozenset(), frozenset()]
    assert diverse(previous, np.arange(5), 5, 0.5).tolist() == [0, 2, 3]


class Everything:
    """Stub of a screening: returns all windows but the sentence's own, or the first few of them."""

    def __init__(self, corpus, most=10**6):
        self.corpus, self.most = corpus, most
        self.identity, self.asked = f"everything up to {most}", []

    def search(self, sentences, k):
        self.asked.append(len(sentences))
        return [
            np.array([i for i in self.corpus.windows if words(self.corpus.sentence(int(i))) != words(text)])[
                : self.most
            ]
            for text in sentences
        ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(15))


def sets_of(corpus, folder=None, *, most=10**6, weights=None, generator=None, reference=(), **selection):
    discriminator = WordCounts([corpus.window(int(i)) for i in corpus.windows])
    terms = Terms(discriminator, generator or Lengths(), weights or Weights())
    chosen = Selection(**{"size": 6, "rescored": 40, **selection})
    return ContextSets(corpus, Everything(corpus, most), terms, reference, chosen, folder)


def holding(corpus, sentence):
    """Windows with the sentence at their centre or on a side."""
    every = [corpus.window(i) for i in corpus.windows.tolist()]
    return [w.id for w in every if words(sentence) in [words(text) for text in (*w.left, w.centre, *w.right)]]


def slow_set(sets, sentence, *, by="raw", limit=True):
    corpus = sets.corpus
    terms = sets.terms
    selection = sets.selection
    held = set(holding(corpus, sentence))
    windows = [corpus.window(i) for i in corpus.windows.tolist() if i not in held]
    ranks = {w.id: terms.discriminator.scores(terms.discriminator.encode([sentence]), [w.id])[0, 0] for w in windows}
    windows = sorted(windows, key=lambda w: (-ranks[w.id], w.id))[: selection.rescored]
    cells = Cells.grid([sentence], windows)
    values = Terms(terms.discriminator, Lengths(), terms.weights).values(cells)
    if by == "standardised":
        values = terms.statistics(windows, sets.reference).standardise(values, cells.columns)
    scores = dict(zip([w.id for w in windows], fit(values, terms.weights), strict=True))
    ranked = sorted(windows, key=lambda w: (-scores[w.id], w.id))
    if not limit:
        return [w.id for w in ranked[: selection.size]]
    previous = [frozenset(words(w.left[-1])) for w in ranked]
    chunks = corpus.chunks_of(np.array([w.id for w in ranked]))
    taken = slow_diverse(previous, chunks, selection.size, selection.jaccard)
    return [ranked[index].id for index in taken]


@pytest.mark.parametrize("by", ["raw", "standardised"])
def test_a_set_is_screened_ranked_scored_and_chosen(corpus, by):
    sets = sets_of(corpus, by=by, reference=some_sentences(9, seed=5))
    sentences = [corpus.sentence(17), *some_sentences(3, seed=8)]
    sets_found = sets.of(sentences)
    for sentence in sentences:
        assert sets_found[sentence].tolist() == slow_set(sets, sentence, by=by)
    assert 17 not in sets_found[sentences[0]]
    assert len({tuple(ids) for ids in sets_found.values()}) == 4


def test_without_diversity_the_best_are_taken(corpus):
    sets = sets_of(corpus, strategy="no-diversity", size=20)
    sentence = some_sentences(1)[0]
    assert sets.of([sentence])[sentence].tolist() == slow_set(sets, sentence, limit=False)
    chunks = corpus.chunks_of(sets.of([sentence])[sentence])
    assert len(set(chunks.tolist())) < 20


def test_random_contexts_depend_on_sentence_and_seed_only(corpus):
    first, second = some_sentences(2)
    corpus_sentence = corpus.sentence(17)
    sets_found = sets_of(corpus, strategy="random").of([first, second, corpus_sentence])
    assert sets_found[first].tolist() != sets_found[second].tolist()
    assert sets_of(corpus, strategy="random").of([first])[first].tolist() == sets_found[first].tolist()
    assert sets_of(corpus, strategy="random", seed=1).of([first])[first].tolist() != sets_found[first].tolist()
    everything = sets_of(corpus, strategy="random", size=40, seed=3)
    for text in (first, corpus_sentence):
        assert len(set(everything.of([text])[text].tolist())) == 40
    whole = sets_of(corpus, strategy="random", size=10**4, rescored=10**4).of([corpus_sentence])[corpus_sentence]
    assert sorted([*whole.tolist(), *holding(corpus, corpus_sentence)]) == corpus.windows.tolist()
    assert len(holding(corpus, corpus_sentence)) == 5


def test_too_few_screened_widens_the_ranking_and_says_so(corpus):
    sentence = some_sentences(1)[0]
    narrow = sets_of(corpus, most=3)
    wide = sets_of(corpus)
    assert narrow.of([sentence])[sentence].tolist() == wide.of([sentence])[sentence].tolist()
    assert (narrow.widened, wide.widened) == (1, 0)
    assert sets_of(corpus, size=40).of([sentence])[sentence].size < 40
    short = sets_of(corpus, size=40)
    short.of([sentence])
    assert short.short == 1


def test_what_screening_finds_is_held_for_some_sentences_at_a_time(corpus, monkeypatch):
    sentences = some_sentences(7, seed=8)
    whole = sets_of(corpus).candidates(sentences)
    monkeypatch.setattr(context_set, "BLOCK_SEARCHES", 3)
    sets = sets_of(corpus)
    candidates = sets.candidates(sentences)
    assert sets.tfidf.asked == [3, 3, 1]
    assert [ids.tolist() for ids in candidates] == [ids.tolist() for ids in whole]
    assert all(len(ids) == 40 and ids.base is None for ids in candidates), "what was cut off must not be held"


def test_sets_are_kept_by_content(corpus, tmp_path):
    sentences = some_sentences(3)
    first = sets_of(corpus, tmp_path).of(sentences)
    again = sets_of(corpus, tmp_path)
    assert {text: ids.tolist() for text, ids in again.of(sentences).items()} == {
        text: ids.tolist() for text, ids in first.items()
    }
    assert again.terms.computed == 0
    for change in ({"size": 5}, {"rescored": 39}, {"weights": Weights(left=2)}, {"generator": Lengths("another")}):
        changed_sets = sets_of(corpus, tmp_path, **change)
        changed_sets.of(sentences)
        assert changed_sets.terms.computed > 0, change
    narrow = sets_of(corpus, tmp_path, most=50)
    assert {text: ids.tolist() for text, ids in narrow.of(sentences).items()} == {
        text: ids.tolist() for text, ids in sets_of(corpus, most=50).of(sentences).items()
    }
    assert narrow.terms.computed > 0
    sets_of(corpus, tmp_path).of(sentences)


def test_refusals(corpus, tmp_path):
    for wrong in ({"size": 0}, {"size": 50, "rescored": 40}, {"jaccard": 0}, {"screened": 0}):
        with pytest.raises(ConfigError, match="A context set has"):
            sets_of(corpus, **wrong)
    single = Corpus.build(tmp_path / "c", [[["A cat.", "A dog.", "A bird."]]])
    with pytest.raises(DataError, match=r"no context for 'a dog'"):
        sets_of(single).of(["a dog"])
