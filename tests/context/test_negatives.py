import numpy as np
import pytest

from samesense.context.corpus.corpus import Corpus, Shape, hold_out, to_learn_from
from samesense.context.discriminator.batching import draw_negatives
from samesense.errors import DataError
from tests.context.made_documents import documents


@pytest.fixture
def corpus(tmp_path):
    return Corpus.build(tmp_path / "corpus", [*documents(80, seed=2, most=30), [["A."], ["B.", "C."]]])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_half_come_from_the_document_and_none_from_the_window(corpus, count):
    windows = corpus.windows
    drawn, near = draw_negatives(corpus, windows, count, [0, 7])
    assert drawn.shape == near.shape == (len(windows), count)
    first, end = corpus.window_bounds(windows)
    assert not ((drawn >= first[:, None]) & (drawn < end[:, None])).any()
    documents_of_windows = corpus.documents_of(windows)[:, None]
    assert (corpus.documents_of(drawn)[near] == np.broadcast_to(documents_of_windows, near.shape)[near]).all()
    assert (corpus.text_keys[drawn] != corpus.text_keys[windows][:, None]).all()
    assert not near[-1].any()  # that document is one window
    start, stop = corpus.document_bounds(windows)
    can = np.broadcast_to((stop - start > end - first)[:, None], near.shape)
    assert abs(near[can].mean() - 0.5) < 0.02


def test_every_other_sentence_is_as_likely(tmp_path):
    texts = [f"number {word}" for word in "one two three four five six seven eight nine ten".split()]
    corpus = Corpus.build(tmp_path / "c", [[texts[:7]], [texts[7:]]])
    window = np.full(20_000, 3)
    drawn, near = draw_negatives(corpus, window, 1, [1])
    assert near.sum() == 10_000
    inside, anywhere = (np.bincount(drawn[kind], minlength=10) / 10_000 for kind in (near, ~near))
    np.testing.assert_allclose(inside, [1 / 2, 0, 0, 0, 0, 0, 1 / 2, 0, 0, 0], atol=0.02)
    np.testing.assert_allclose(anywhere, [1 / 5, 0, 0, 0, 0, 0, 1 / 5, 1 / 5, 1 / 5, 1 / 5], atol=0.02)


def test_the_seed_decides(corpus):
    draws = [draw_negatives(corpus, corpus.windows, 1, seed)[0] for seed in ([1], [1], [2])]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_where_the_document_only_repeats_the_centre_another_gives(tmp_path):
    corpus = Corpus.build(tmp_path / "c", [[["Same."] * 9], [["Other one.", "Other two."]]], Shape(left=1, right=1))
    drawn, near = draw_negatives(corpus, np.full(50, 4), 1, [0])
    assert set(drawn[:, 0]) == {9, 10}
    assert not near.any()


@pytest.mark.parametrize("document", [["A.", "B.", "C."], ["Same."] * 9])
def test_no_replacement_is_an_error(tmp_path, document):
    corpus = Corpus.build(tmp_path / "c", [[document]])
    with pytest.raises(DataError, match="none was found in"):
        draw_negatives(corpus, corpus.windows, 1, [0])


def test_no_document_is_held_out_that_holds_most_of_the_windows(tmp_path):
    def document(name, sentences):
        return [[f"{name} sentence number {number} of a document." for number in range(sentences)]]

    corpus = Corpus.build(tmp_path / "c", [document("a", 12), document("b", 400), document("c", 12)])
    for seed in range(8):
        learnt, held = hold_out(corpus, 30, seed)
        assert 0 < len(held) <= len(corpus.windows) // 2 < len(learnt)


def test_only_allowed_sentences_replace_others(corpus):
    learnt, held = hold_out(corpus, 100, 0)
    allowed = to_learn_from(corpus, held)
    assert not np.isin(corpus.documents_of(np.flatnonzero(allowed)), corpus.documents_of(held)).any()
    assert allowed[learnt].all()
    drawn, near = draw_negatives(corpus, learnt, 2, [0])
    assert not allowed[drawn].all()
    drawn, near = draw_negatives(corpus, learnt, 2, [0], allowed)
    assert allowed[drawn].all() and abs(near.mean() - 0.5) < 0.05


def test_of_one_document_the_beginning_is_learnt_from(tmp_path):
    corpus = Corpus.build(tmp_path / "c", [[[f"Number {i}." for i in range(20)]]])
    allowed = to_learn_from(corpus, hold_out(corpus, 4, 0)[1])
    np.testing.assert_array_equal(np.flatnonzero(allowed), np.arange(13))
