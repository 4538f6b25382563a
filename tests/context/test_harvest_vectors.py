"""Pairs of sentences with vectors: their kinds, no pair twice, and scores that an encoder could learn."""

import tracemalloc

import numpy as np
import pytest

from samesense.context.corpus.corpus import Corpus
from samesense.context.harvest.plan import Mixture, Planned
from samesense.context.harvest.vectors import RUN, check_targets, choose_sentences, draw_pairs, nearest_of
from samesense.errors import ConfigError, DataError, ModelError
from tests.context.worlds import some_documents


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(40))


def unit(rng, n, dim=16):
    rows = rng.normal(size=(n, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_runs_of_sentences_are_chosen_no_text_twice(corpus):
    mixture = Mixture(sentences=100, min_words=2, pairs=100)
    ids = choose_sentences(corpus, mixture)
    texts = corpus.sentences(ids)
    assert len(ids) == 100 == len({text.lower() for text in texts})
    assert all(2 <= len(text.split()) <= 64 for text in texts)
    assert (np.diff(ids) == 1).sum() >= 100 // RUN
    assert choose_sentences(corpus, mixture).tolist() == ids.tolist()
    assert choose_sentences(corpus, Mixture(sentences=100, min_words=2, pairs=100, seed=1)).tolist() != ids.tolist()
    with pytest.raises(DataError, match="has 0 of 60 to 64 words"):
        choose_sentences(corpus, Mixture(min_words=60))


def test_kinds_are_as_they_are_called_and_no_pair_comes_twice(corpus):
    mixture = Mixture(pairs=1000, sentences=400, min_words=1)
    ids = choose_sentences(corpus, mixture)
    vectors = unit(np.random.default_rng(0), len(ids))
    planned, scores = draw_pairs(corpus, ids, vectors, mixture)
    position_of = {int(i): position for position, i in enumerate(ids)}
    sections = corpus.sections_of(ids)
    ranks = {}
    nearest = nearest_of(len(ids))
    for position, row in enumerate(vectors @ vectors.T):
        row[sections == sections[position]] = -2
        ranks[position] = {
            int(neighbour): rank for rank, neighbour in enumerate(np.argsort(-row, kind="stable")[:nearest])
        }
    pairs = [(position_of[int(a)], position_of[int(b)]) for a, b in zip(planned.first, planned.second, strict=True)]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    for (a, b), kind, score in zip(pairs, planned.kinds, scores, strict=True):
        near = b in ranks[a] or a in ranks[b]
        assert kind == ("section" if sections[a] == sections[b] else "neighbours" if near else "random")
        assert score == pytest.approx(float(vectors[a] @ vectors[b]), abs=1e-6)
    counts = {kind: planned.kinds.count(kind) for kind in planned.requested}
    assert planned.requested == {"random": 400, "neighbours": 400, "section": 200}
    assert counts["random"] == counts["neighbours"] == 400
    near = [pair for pair, kind in zip(pairs, planned.kinds, strict=True) if kind == "neighbours"]
    best = [min(ranks[a].get(b, 99), ranks[b].get(a, 99)) for a, b in near]
    assert np.mean(np.array(best) < nearest / 4) > 0.4  # nearer pairs are drawn more often


def planned(rng, n, kind="random", sentences=1000):
    return Planned(*rng.integers(0, sentences, (2, n)), [kind] * n, {kind: n})


def test_scores_that_no_cosine_can_have_are_refused():
    rng = np.random.default_rng(0)
    check_targets(planned(rng, 2000), rng.normal(0, 0.1, 2000))
    check_targets(planned(rng, 200, "section"), rng.normal(-0.5, 0.1, 200))
    check_targets(planned(rng, 49), np.full(49, -0.5))
    with pytest.raises(
        ModelError, match=r"200 random pairs of \d+ sentences have a mean of -0\.[45].*no model could learn"
    ):
        check_targets(planned(rng, 200), rng.normal(-0.5, 0.1, 200))
    with pytest.raises(ModelError, match=r"a deviation of 0\.00\d+: all are alike"):
        check_targets(planned(rng, 200), rng.normal(0.2, 0.001, 200))


@pytest.mark.parametrize("sentences", [32, 200])
def test_cosines_are_never_refused_however_few_are_drawn(sentences):
    """400 pairs among few sentences have a mean far from that of all: of all pairs it is -1 / (n - 1) here."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        vectors = unit(rng, sentences, 5)
        vectors -= vectors.mean(axis=0)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        pairs = np.stack(np.triu_indices(sentences, 1))
        first, second = pairs[:, rng.permutation(pairs.shape[1])[:400]]
        check_targets(
            Planned(first, second, ["random"] * 400, {}), np.einsum("nd,nd->n", vectors[first], vectors[second])
        )


def test_kinds_without_a_share_do_not_exist(corpus):
    ids = choose_sentences(corpus, Mixture(sentences=100, min_words=2, pairs=100))
    vectors = unit(np.random.default_rng(0), len(ids))
    for kinds in ({"section": 0, "neighbours": 0}, {"section": 0, "random": 0}):
        planned, _ = draw_pairs(corpus, ids, vectors, Mixture(pairs=10**4, **kinds))
        within = corpus.sections_of(planned.first) == corpus.sections_of(planned.second)
        assert within.any() and len(set(planned.kinds)) == 1
        assert len(planned.kinds) > 4000 or "random" in kinds
    same_section = corpus.sections_of(ids) == corpus.sections_of(ids)[0]
    planned, _ = draw_pairs(corpus, ids[same_section], vectors[same_section], Mixture(pairs=10, section=0))
    assert set(planned.kinds) == {"random", "neighbours"}
    with pytest.raises(DataError, match="no pair of the kinds asked for, random, neighbours"):
        draw_pairs(corpus, ids[same_section], vectors[same_section], Mixture(pairs=10, section=1e-9))


def test_more_pairs_than_sentences_have_are_refused_before_any_is_read(corpus):
    with pytest.raises(ConfigError, match=r"100 sentences have 4,950 pairs; pairs is 4,951\. Raise sentences to 101"):
        choose_sentences(corpus, Mixture(sentences=100, min_words=2, pairs=4951))
    with pytest.raises(ConfigError, match=r"has no more that fit: give more documents, or lower pairs"):
        choose_sentences(corpus, Mixture(min_words=2, pairs=10**6))
    assert len(choose_sentences(corpus, Mixture(sentences=100, min_words=2, pairs=4950))) == 100


def test_all_pairs_are_had_and_each_kind_is_drawn_evenly(corpus):
    ids = choose_sentences(corpus, Mixture(sentences=100, min_words=2, pairs=100))
    vectors = unit(np.random.default_rng(0), len(ids))
    planned, _ = draw_pairs(corpus, ids, vectors, Mixture(pairs=4950, neighbours=0, section=1e-9))
    apart = corpus.sections_of(ids)[:, None] != corpus.sections_of(ids)
    assert planned.kinds.count("random") == apart.sum() / 2
    times = np.zeros((len(ids), len(ids)), dtype=int)
    position_of = {int(i): position for position, i in enumerate(ids)}
    for seed in range(200):
        planned, _ = draw_pairs(corpus, ids, vectors, Mixture(pairs=500, neighbours=0, section=0, seed=seed))
        for a, b in zip(planned.first, planned.second, strict=True):
            times[
                sorted((position_of[int(a)], position_of[int(b)]))[0],
                sorted((position_of[int(a)], position_of[int(b)]))[1],
            ] += 1
    every = times[np.triu_indices(len(ids), 1)]
    assert every.sum() == 200 * 500 and every.min() > 0 and abs(every.var() / every.mean() - 0.9) < 0.1


def test_a_pair_costs_no_copy_of_its_vectors(corpus):
    mixture = Mixture(pairs=40_000, sentences=400, min_words=1)
    ids = choose_sentences(corpus, mixture)
    vectors = unit(np.random.default_rng(0), len(ids), dim=512)
    tracemalloc.start()
    scores = draw_pairs(corpus, ids, vectors, mixture)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(scores) > 20_000 and peak < 100e6  # all at once they would be 290 MB
