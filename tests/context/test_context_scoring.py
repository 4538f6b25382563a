import math

import numpy as np
import pytest

from samesense.context.origin.similarity import Statistics, Weights, contributions, cosine, fit, vector
from samesense.errors import ConfigError, ModelError

PAIR = ("one", "other")


def slow_cosine(first, second):
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / math.sqrt(sum(a * a for a in first)) / math.sqrt(sum(b * b for b in second))


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def test_equation_3_in_a_plain_loop(draw):
    terms = draw.normal(size=(4, 700))
    weights = Weights(discriminative=0.5, sentence=2, left=0, right=1.25)
    expected = [0.5 * a + 2 * b + 1.25 * d for a, b, _, d in terms.T.tolist()]
    np.testing.assert_allclose(fit(terms, weights), expected, rtol=1e-12)
    assert weights.used().tolist() == [True, True, False, True]


def test_standardising_in_a_plain_loop(draw):
    reference = draw.normal(size=(4, 30, 9)) * 3 - 5
    statistics = Statistics(reference.mean(axis=1), reference.std(axis=1))
    terms = draw.normal(size=(4, 200)) - 5
    columns = draw.integers(0, 9, size=200)
    standardised = statistics.standardise(terms, columns)
    for term in range(4):
        for cell, column in enumerate(columns):
            usual = [reference[term, s, column] for s in range(30)]
            mean = sum(usual) / 30
            deviation = math.sqrt(sum((value - mean) ** 2 for value in usual) / 30)
            assert standardised[term, cell] == pytest.approx((terms[term, cell] - mean) / deviation, rel=1e-9)


def test_a_term_that_never_varies_makes_its_context_undefined_if_it_counts():
    statistics = Statistics(np.full((4, 2), -3.0), np.array([[1.0, 1], [1, 1], [1, 0], [1, 1e-9]]))
    assert statistics.defined(Weights()).tolist() == [True, False]
    assert statistics.defined(Weights(left=0)).tolist() == [True, False]
    assert statistics.defined(Weights(left=0, right=0)).tolist() == [True, True]
    assert statistics.standardise(np.full((4, 1), -2.0), np.array([1]))[2] == 0


@pytest.mark.parametrize("normalisation", ["raw", "centred", "standardised", "both"])
def test_equation_4_in_a_plain_loop_and_by_scipy(draw, normalisation):
    from scipy.spatial.distance import cosine as distance
    from scipy.stats import pearsonr

    for size in (2, 17, 1000):
        first, second = draw.normal(size=(2, size)) - 3
        vectors = vector(first, normalisation), vector(second, normalisation)
        value = cosine(*vectors, PAIR)
        if normalisation in ("centred", "both"):
            assert value == pytest.approx(pearsonr(first, second).statistic, abs=1e-9)
        else:
            assert value == pytest.approx(slow_cosine(first.tolist(), second.tolist()), abs=1e-12)
            assert value == pytest.approx(1 - distance(first, second), abs=1e-12)
        assert contributions(*vectors, PAIR).sum() == pytest.approx(value, abs=1e-12)


def test_equal_vectors_are_exactly_alike(draw):
    for _ in range(50):
        values = draw.normal(size=333)
        assert cosine(values, values.copy(), PAIR) == 1.0
        assert cosine(values, -values, PAIR) >= -1.0


def test_an_undefined_cosine_is_an_error():
    for first, second in [(np.zeros(3), np.ones(3)), (np.ones(3), np.zeros(3)), (np.zeros(3), np.zeros(3))]:
        with pytest.raises(ModelError, match=r"undefined: in its 3 contexts.*'one', 'other'"):
            cosine(first, second, PAIR)
    flat = vector(np.full(5, -7.0), "centred")
    with pytest.raises(ModelError, match="undefined"):
        cosine(flat, np.arange(5.0), PAIR)


@pytest.mark.parametrize("values", [{"left": -1}, {"left": math.nan}, dict.fromkeys(Weights().__dict__, 0)])
def test_weights_that_make_no_sense(values):
    with pytest.raises(ConfigError, match=r"weights of Eq\. 3"):
        Weights(**values)
