"""Guarantees of a precision or a recall: their bound, their counts, and, by simulation, how often they hold."""

import numpy as np
import pytest
from scipy.stats import binomtest

from samesense.metrics.guarantee import CONFIDENCE, PromiseFinder, distinct_pairs, share_lower_bound, share_p_values


def apart(count):
    """Return the sentences of pairs that share no sentence."""
    return np.arange(2 * count).reshape(count, 2)


def finder_of(random, scores, right, quantity, sentences=None):
    folds = random.permutation(np.arange(len(scores)) % 5)
    if sentences is None:
        sentences = apart(len(scores))
    return PromiseFinder(distinct_pairs(scores, right, folds, sentences), quantity)


@pytest.mark.parametrize("level", [0.05, 0.01, 0.3])
def test_the_bound_is_that_of_clopper_and_pearson(level):
    hits = np.array([0, 1, 7, 59, 60, 999])
    trials = np.array([10, 1, 9, 60, 60, 1000])
    expected = [
        binomtest(h, n, alternative="greater").proportion_ci(1 - level, "exact").low
        for h, n in zip(hits.tolist(), trials.tolist(), strict=True)
    ]
    np.testing.assert_allclose(share_lower_bound(hits, trials, level), expected, atol=1e-12)
    for least in (0.05, 0.5, 0.7, 0.95):
        reached = share_p_values(hits, trials, least) <= level
        assert reached.tolist() == [bound >= least for bound in expected]


def test_as_many_pairs_as_theory_says_show_a_precision():
    """Of n pairs that are all right, the bound is 0.05 ** (1 / n): 59 for 95 %, as many more as folds may lose."""
    random = np.random.default_rng(0)

    def shows(yes):
        scores = np.concatenate([random.uniform(0.6, 1, yes), random.uniform(0, 0.4, 100)])
        right = np.repeat([1.0, 0.0], [yes, 100])
        return finder_of(random, scores, right, "precision").find(0.95) is not None

    assert not shows(57)
    assert shows(90)


def test_a_pair_that_is_repeated_or_turned_counts_once():
    random = np.random.default_rng(0)
    scores = random.uniform(size=50)
    right = (random.uniform(size=50) < 0.5).astype(float)
    sentences = apart(50)
    turned = np.concatenate([sentences, sentences[:, ::-1], sentences])
    folds = np.arange(50) % 5
    once = distinct_pairs(scores, right, folds, sentences)
    many = distinct_pairs(np.tile(scores, 3), np.tile(right, 3), np.tile(folds, 3), turned)
    for name in vars(once):
        np.testing.assert_allclose(getattr(once, name), getattr(many, name))
    both = distinct_pairs([0.2, 0.4], [1.0, 0.0], np.zeros(2, int), np.array([[3, 8], [8, 3]]))
    assert (both.scores.tolist(), both.right.tolist()) == ([pytest.approx(0.3)], [0.0])


def test_pairs_that_are_wrong_together_count_for_less():
    """Return 400 pairs of 20 sentences. A sentence decides the label of its pairs, so there are hardly 20 labels."""
    random = np.random.default_rng(1)
    sentences = np.column_stack([np.repeat(np.arange(20), 20), 20 + np.arange(400)])
    scores = random.uniform(0.5, 1, 400)
    right = np.repeat((np.arange(20) > 0).astype(float), 20)  # one of 20 sentences is always wrong
    assert finder_of(random, scores, right, "precision").find(0.85) is not None
    assert finder_of(random, scores, right, "precision", sentences).find(0.85) is None
    mixed = random.permutation(right)  # wrong pairs that have nothing in common
    assert finder_of(random, scores, mixed, "precision", sentences).find(0.85) is not None


def test_scores_that_tell_all_pairs_apart_promise_nearly_all():
    random = np.random.default_rng(0)
    scores = random.uniform(size=2000)
    right = (scores > 0.6).astype(float)
    for quantity in ("precision", "recall"):
        promise = finder_of(random, scores, right, quantity).find(0.98)
        assert 0.57 < promise.threshold < 0.63
        assert min(promise.precision, promise.recall) > 0.95


def test_nothing_is_promised_for_certain():
    random = np.random.default_rng(0)
    scores = random.uniform(size=3000)
    finder = finder_of(random, scores, (scores > 0.5).astype(float), "precision")
    assert finder.find(1.0) is None
    assert finder.pairs_needed(1.0) is None
    least, promise = finder.highest(1.0)
    assert 0.99 <= least < 1 and promise.precision > least


def normal(random, count):
    right = (random.uniform(size=count) < 0.5).astype(float)
    return random.normal(2.5 * right), right, None


def capped(random, count):
    """Of the highest scores a few are wrong too."""
    scores = random.uniform(size=count)
    return scores, (random.uniform(size=count) < np.clip(1.3 * scores - 0.1, 0, 0.93)).astype(float), None


def humped(random, count):
    """The highest scores are those of copies with another meaning: less precise than the ones below them."""
    scores = random.uniform(size=count)
    rate = np.where(scores > 0.85, 0.87, np.where(scores > 0.4, 0.97, 0.1))
    return scores, (random.uniform(size=count) < rate).astype(float), None


def tied(random, count):
    right = (random.uniform(size=count) < 0.4).astype(float)
    return np.round(2 * random.normal(2.5 * right)) / 2, right, None


def useless(random, count):
    return random.uniform(size=count), (random.uniform(size=count) < 0.88).astype(float), None


def clustered(random, count):
    """Return pairs of few anchors; some anchors are wrong more often than others."""
    anchors = np.arange(count) // 8
    ease = random.normal(scale=1.2, size=count // 8 + 1)[anchors]
    scores = random.normal(size=count)
    right = (random.uniform(size=count) < 1 / (1 + np.exp(-2.5 * scores - ease))).astype(float)
    return scores, right, np.column_stack([anchors, count + np.arange(count)])


WORLDS = (normal, capped, humped, tied, useless, clustered)


def broken_promises(world, quantity, least, count, runs):
    """Return the number of promises made, and of those that do not hold on many new pairs."""
    random = np.random.default_rng(7)
    many, theirs, _ = world(random, 400_000)
    promised = broken = 0
    for _ in range(runs):
        scores, right, sentences = world(random, count)
        promise = finder_of(random, scores, right, quantity, sentences).find(least)
        if promise is not None:
            promised += 1
            called = many >= promise.threshold
            broken += (theirs[called].mean() if quantity == "precision" else called[theirs == 1].mean()) < least
    return promised, int(broken)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("quantity", ["precision", "recall"])
def test_promises_are_kept(world, quantity):
    promised, broken = broken_promises(world, quantity, 0.9, 300, 40)
    assert binomtest(broken, 40, 1 - CONFIDENCE, alternative="greater").pvalue > 0.001, (promised, broken)


@pytest.mark.long
@pytest.mark.parametrize("count", [120, 600, 3000])
@pytest.mark.parametrize("least", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("quantity", ["precision", "recall"])
@pytest.mark.parametrize("world", WORLDS)
def test_promises_are_kept_as_often_as_they_say(world, quantity, least, count):
    """At most 5 of 100 sets of pairs lead to a promise that is broken."""
    runs = 300
    promised, broken = broken_promises(world, quantity, least, count, runs)
    assert binomtest(broken, runs, 1 - CONFIDENCE, alternative="greater").pvalue > 0.001, (promised, broken)
