import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from samesense.context.corpus.corpus import Corpus
from samesense.context.harvest.scores import NO_CONTEXT, NO_COSINE, NOTHING_VARIES, OriginScorer
from samesense.context.origin.context_set import Selection
from samesense.context.origin.similarity import Weights
from samesense.errors import DataError
from tests.context.test_context_terms import Lengths
from tests.context.test_origin import SCHEME, origin_of, some_pairs
from tests.context.worlds import some_documents


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(15))


class Deaf(Lengths):
    """Stub that gives windows no value, except those of even number where it is told to."""

    def __init__(self, hears=lambda window: False):
        super().__init__("deaf")
        self.hears = hears

    def total(self, kind, sentence, window):
        return super().total(kind, sentence, window) if self.hears(window.id) else -3.0


def test_scores_are_those_of_the_origin_and_nothing_is_kept(corpus, tmp_path):
    origin = origin_of(corpus, folder=tmp_path / "cache")
    scorer = OriginScorer(origin)
    pairs = some_pairs()
    files = set((tmp_path / "cache").rglob("*"))
    threads = torch.get_num_threads()
    scored = scorer.score(pairs)
    again = scorer.score(pairs)
    assert scored.rows.tolist() == list(range(len(pairs))) and not scored.undefined
    assert scored.scores.tobytes() == again.scores.tobytes()
    assert scored.cells == again.cells > 0
    assert set((tmp_path / "cache").rglob("*")) == files
    assert torch.get_num_threads() == threads
    np.testing.assert_allclose(scored.scores, origin(pairs), atol=1e-5)


def test_sums_are_ordered_alike_with_any_threads_outside(corpus):
    thread_counts = set()

    class Counts(Lengths):
        def measure(self, cells, kinds=()):
            thread_counts.add((blas_threads(), torch.get_num_threads()))
            return super().measure(cells, kinds)

    def blas_threads():
        return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    scorer = OriginScorer(origin_of(corpus, generator=Counts("counts")))
    with threadpool_limits(3, user_api="blas"):
        scorer.score(some_pairs())
        assert blas_threads() == 3
    assert thread_counts == {(1, 1)}


def test_pairs_without_a_score_are_told_apart(corpus):
    pairs = some_pairs()
    nothing = OriginScorer(origin_of(corpus, generator=Deaf())).score(pairs)
    assert (nothing.rows.tolist(), nothing.undefined) == ([], {NOTHING_VARIES: len(pairs)})
    scheme = replace(SCHEME, normalisation="centred", weights=Weights(discriminative=0))
    nothing = OriginScorer(origin_of(corpus, scheme, generator=Deaf())).score(pairs)
    assert (nothing.rows.tolist(), nothing.undefined) == ([], {NO_COSINE: len(pairs)})


def test_the_pairs_beside_them_keep_their_scores(corpus):
    """Half of the windows have no value, so small sets, and pairs of them, may lack one altogether."""
    scheme = replace(SCHEME, selection=Selection(size=1, strategy="random"))
    origin = origin_of(corpus, scheme, generator=Deaf(lambda window: window % 2 == 0))
    texts = corpus.sentences(corpus.random_windows(0, 24))
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    scored = OriginScorer(origin).score(pairs)
    expected = {}
    for index, pair in enumerate(pairs):
        try:
            expected[index] = origin([pair])[0]
        except DataError as error:
            assert "do all terms vary" in str(error)
    assert scored.rows.tolist() == list(expected)
    assert scored.undefined == {NOTHING_VARIES: len(pairs) - len(expected)}
    assert 0 < len(expected) < len(pairs)
    np.testing.assert_allclose(scored.scores, list(expected.values()), atol=1e-6)


def test_a_sentence_without_context_costs_only_its_pairs(tmp_path):
    corpus = Corpus.build(
        tmp_path / "c",
        [[["A cat sleeps.", "A dog runs on.", "A bird sings."]], [["A dog runs on.", "Rain fell.", "We left."]]],
    )
    origin = origin_of(corpus, replace(SCHEME, reference=3))
    scored = OriginScorer(origin).score([("a dog RUNS on", "A cat sleeps."), ("A bird sings.", "A cat sleeps.")])
    assert (scored.rows.tolist(), scored.undefined) == ([1], {NO_CONTEXT: 1})


def test_a_fault_is_no_undefined_score(corpus):
    class Broken(Deaf):
        def measure(self, cells, kinds=()):
            raise DataError("a file of kept numbers is damaged")

    with pytest.raises(DataError, match="is damaged"):
        OriginScorer(origin_of(corpus, generator=Broken())).score(some_pairs())


def test_identity_tells_origins_apart(corpus):
    identity = OriginScorer(origin_of(corpus)).identity
    assert OriginScorer(origin_of(corpus)).identity == identity and json.dumps(identity)
    changes = {
        "scheme": origin_of(corpus, replace(SCHEME, twice=False)),
        "generator": origin_of(corpus, generator=Deaf()),
        "reference": origin_of(corpus, reference=["One text here.", "Another one there."]),
    }
    for name, origin in changes.items():
        other_identity = OriginScorer(origin).identity
        assert [key for key in identity if identity[key] != other_identity[key]] == [name]
