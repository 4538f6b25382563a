import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.base import KINDS
from samesense.context.harvest.scores import OriginScorer
from samesense.context.origin import origin as module
from samesense.context.origin.context_set import Selection
from samesense.context.origin.explain import Contribution, Explanation
from samesense.context.origin.origin import Origin
from samesense.context.origin.scheme import Scheme, reference_sentences
from samesense.context.origin.similarity import Weights
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.unread import counted
from tests.context.test_context_terms import Lengths
from tests.context.worlds import WordCounts, log_probability, small_generator, some_documents, some_sentences

LONG = "the cat sleeps " * 30  # 90 words: the discriminator reads 64 of them, the small generator 11 tokens
SCHEME = Scheme(selection=Selection(size=5, rescored=20), reference=7)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus.build(tmp_path_factory.mktemp("corpus") / "c", some_documents(15))


def origin_of(corpus, scheme=SCHEME, *, generator=None, folder=None, index=None, **options):
    windows = WordCounts([corpus.window(int(i)) for i in corpus.windows])
    tfidf = Tfidf(corpus, index or corpus.folder.parent / "index")
    return Origin(corpus, tfidf, windows, generator or small_generator(), scheme, folder=folder, **options)


def some_pairs():
    texts = some_sentences(6, seed=11)
    return [
        (texts[0], texts[1]),
        (texts[2], texts[0]),
        (texts[3], texts[3]),
        (texts[4], texts[5]),
        (texts[1], texts[0]),
    ]


def slow_score(origin, first_sentence, second):
    """Compute Eq. 3 and Eq. 4 in plain loops, with one call of the models for every number."""
    scheme = origin.scheme
    sets = origin.sets.of([first_sentence, second])
    ids = [*sets[first_sentence].tolist(), *sets[second].tolist()]
    if not scheme.twice:
        ids = list(dict.fromkeys(ids))

    cached = {}

    def terms(sentence, window):
        if (sentence, window.id) not in cached:
            cached[sentence, window.id] = computed(sentence, window)
        return list(cached[sentence, window.id])

    def computed(sentence, window):
        discriminator = origin.terms.discriminator
        first = discriminator.scores(discriminator.encode([sentence]), [window.id])[0, 0]
        return [first, *(log_probability(origin.generator, kind, [sentence], [window])[0][0, 0] for kind in KINDS)]

    def value(sentence, window):
        values = terms(sentence, window)
        if scheme.normalisation in ("standardised", "both"):
            usual = [terms(text, window) for text in origin.reference]
            for index in range(4):
                column = [row[index] for row in usual]
                mean = sum(column) / len(column)
                values[index] = (values[index] - mean) / math.sqrt(sum((x - mean) ** 2 for x in column) / len(column))
        return sum(weight * term for weight, term in zip(scheme.weights.values(), values, strict=True))

    vectors = [[value(text, origin.corpus.window(i)) for i in ids] for text in (first_sentence, second)]
    if scheme.normalisation in ("centred", "both"):
        vectors = [[x - sum(v) / len(v) for x in v] for v in vectors]
    a, b = vectors
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize("normalisation", ["raw", "centred", "standardised", "both"])
def test_scores_equal_plain_loops(corpus, normalisation, twice):
    weights = Weights(discriminative=0.5, left=2.0)
    small = replace(SCHEME, selection=Selection(size=3, rescored=9), reference=4)
    origin = origin_of(corpus, replace(small, normalisation=normalisation, twice=twice, weights=weights))
    pairs = [some_pairs()[index] for index in (0, 3, 2)]
    scores = origin(pairs)
    assert scores.dtype == np.float64
    for score, pair in zip(scores, pairs, strict=True):
        assert score == pytest.approx(slow_score(origin, *pair), abs=2e-4 if normalisation != "raw" else 1e-6)
    assert scores[2] == 1.0
    assert (np.diff(scores[:2]) != 0).all()


def test_a_score_depends_on_its_pair_alone(corpus, monkeypatch):
    pairs = some_pairs()
    whole = origin_of(corpus)(pairs)
    for index, pair in enumerate(pairs):
        assert origin_of(corpus)([pair])[0] == pytest.approx(whole[index], abs=1e-4)
    monkeypatch.setattr(module, "BLOCK_PAIRS", 2)
    np.testing.assert_allclose(origin_of(corpus)(pairs), whole, atol=1e-4)
    assert whole[0] == pytest.approx(whole[4], abs=1e-12), "not symmetric"
    assert origin_of(corpus)([]).shape == (0,)


def test_only_the_cells_of_the_pairs_are_computed(corpus):
    generator = Lengths()
    scheme = Scheme(selection=Selection(size=4, strategy="random"), normalisation="raw")
    origin = origin_of(corpus, scheme, generator=generator)
    pairs = some_pairs()
    origin(pairs)
    cells = {(text, int(i)) for pair in pairs for text in pair for both in pair for i in origin.sets.of([both])[both]}
    assert generator.asked == len(cells) * 3


def test_a_stopped_run_goes_on_and_another_model_starts_again(corpus, tmp_path):
    class Stops(Lengths):
        def measure(self, cells, kinds=KINDS):
            if self.asked > 400:
                raise KeyboardInterrupt
            return super().measure(cells, kinds)

    pairs = some_pairs()
    fresh = Lengths()
    expected = origin_of(corpus, generator=fresh, folder=tmp_path / "other")(pairs)
    with pytest.raises(KeyboardInterrupt):
        origin_of(corpus, generator=Stops(), folder=tmp_path / "kept")(pairs)
    again = Lengths()
    np.testing.assert_array_equal(origin_of(corpus, generator=again, folder=tmp_path / "kept")(pairs), expected)
    assert 0 < again.asked < fresh.asked
    third = Lengths()
    np.testing.assert_array_equal(origin_of(corpus, generator=third, folder=tmp_path / "kept")(pairs), expected)
    assert third.asked == 0
    another = Lengths("another")
    assert not np.array_equal(origin_of(corpus, generator=another, folder=tmp_path / "kept")(pairs), expected)
    assert another.asked == fresh.asked


def test_the_explanation_is_the_score(corpus):
    for normalisation in ("standardised", "both"):
        origin = origin_of(corpus, replace(SCHEME, normalisation=normalisation))
        first, second = some_pairs()[0]
        explanation = origin.explain(first, second, top=1000)
        assert explanation.score == origin([(first, second)])[0]
        entries = [*explanation.alike, *explanation.apart]
        assert sum(entry.share for entry in entries) == pytest.approx(explanation.score, abs=1e-9)
        shares = [entry.share for entry in explanation.alike]
        assert shares == sorted(shares, reverse=True)
        assert all(weight > 0 for weight in shares) and all(entry.share < 0 for entry in explanation.apart)
        sets = origin.sets.of([first, second])
        assert explanation.contexts == sum(map(len, sets.values()))
        for entry in entries:
            assert (entry.whose in ("first", "both")) == (entry.window in sets[first])
            assert (entry.whose in ("second", "both")) == (entry.window in sets[second])
            assert entry.left == corpus.window(entry.window).left
        assert json.loads(json.dumps(explanation.to_dict()))["alike"][0]["share"] == explanation.alike[0].share
        few = origin.explain(first, second, top=2)
        assert list(few.alike) == list(explanation.alike[:2])
        assert f"{explanation.score:.4f}  over {explanation.contexts} contexts" in few.table()
        assert " [...] ".join((" ".join(few.alike[0].left), " ".join(few.alike[0].right))) in few.table()


def test_contexts_where_nothing_varies_are_left_out(corpus):
    class Flat(Lengths):
        def total(self, kind, sentence, window):
            return -3.0 if window.id % 2 else super().total(kind, sentence, window)

    drawn = replace(SCHEME, selection=Selection(size=8, strategy="random"))
    origin = origin_of(corpus, drawn, generator=Flat())
    pairs = some_pairs()[:1]
    sets = origin.sets.of(pairs[0])
    odd = {int(i) for ids in sets.values() for i in ids if i % 2}
    assert math.isfinite(origin(pairs)[0])
    assert origin.undefined == len(odd) > 0
    assert all(entry.window % 2 == 0 for entry in origin.explain(*pairs[0], top=99).alike)

    class Deaf(Lengths):
        def total(self, kind, sentence, window):
            return -3.0

    with pytest.raises(DataError, match="do all terms vary over the reference"):
        origin_of(corpus, generator=Deaf())(pairs)
    scheme = replace(SCHEME, normalisation="centred", weights=Weights(discriminative=0))
    with pytest.raises(ModelError, match="cosine of a pair is undefined"):
        origin_of(corpus, scheme, generator=Deaf())(pairs)


def test_the_reference_is_drawn_by_its_seed(corpus):
    drawn = reference_sentences(corpus, 7, SCHEME.seed)
    assert len(set(drawn)) == 7
    assert drawn == reference_sentences(corpus, 7, SCHEME.seed) != reference_sentences(corpus, 7, SCHEME.seed + 1)
    assert set(drawn) <= set(corpus)
    with pytest.raises(ConfigError, match="the corpus has"):
        reference_sentences(corpus, 10**6, SCHEME.seed)


def test_a_scheme_comes_back_from_json():
    scheme = replace(SCHEME, weights=Weights(left=0.5), normalisation="both")
    assert Scheme.from_dict(json.loads(json.dumps(asdict(scheme)))) == scheme
    with pytest.raises(ConfigError, match="scheme of Origin"):
        Scheme.from_dict({"weights": {"up": 1}, "selection": {}})


def test_refusals(corpus, tmp_path):
    with pytest.raises(DataError, match="pair 1 has an empty one"):
        origin_of(corpus)([("a dog", "a cat"), ("a dog", " ")])
    with pytest.raises(DataError, match=r"no finished Origin: it has no origin\.json"):
        Origin.open(tmp_path)


def test_contexts_are_shown_as_their_script_has_them():
    entry = Contribution(
        window=3,
        left=("天黑了。", "He left."),
        centre="x",
        right=("门关了。", "灯灭了。"),
        whose="both",
        first=1.0,
        second=2.0,
        share=0.25,
    )
    explanation = Explanation(sentences=("a", "b"), score=0.5, contexts=4, alike=[entry], apart=[])
    assert "天黑了。 He left. [...] 门关了。灯灭了。" in explanation.table()


def test_what_either_model_does_not_read_is_counted(corpus):
    for weights, longest in ((Weights(), (11, "tokens")), (Weights(sentence=0, left=0, right=0), (64, "words"))):
        origin = origin_of(corpus, replace(SCHEME, weights=weights))
        for reading in (
            lambda reader=origin: reader([("a cat", LONG)]),
            lambda reader=origin: reader.explain("a cat", LONG),
        ):
            with counted(apart=True) as unread:
                reading()
            assert (unread.figures, unread.texts, unread.cut.example) == ({"cut": 1}, 2, LONG)
            assert (unread.longest, unread.unit) == longest
    with counted(apart=True) as unread:
        assert OriginScorer(origin).score([("a cat", LONG), (LONG, "a dog")]).rows.size == 2
    assert (unread.figures, unread.texts) == ({"cut": 1}, 3)
    assert "1 of 3 texts are longer than the 64 words that the model reads" in unread.lines()[0]
