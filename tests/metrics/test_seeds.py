"""Methods compared over seeds and examples: an independent twin, and how often it errs."""

import numpy as np
import pytest
import scipy.stats

from samesense.errors import ConfigError, DataError
from samesense.metrics import paired_mean, paired_seeds
from samesense.metrics.resampling import resamples
from samesense.metrics.seeds import (
    Resampled,
    compare_resampled,
    interval_of_runs,
    mean_of_sets,
    resampled_figures,
)


def runs(rng, labels, seeds, *, skill=1.0, seed_effect=0.0):
    """Scores of ``seeds`` runs: errors in common, errors of their own, and a scale of errors that the seed decides."""
    common = rng.normal(size=len(labels))
    scores = []
    for _ in range(seeds):
        errors = 0.9 * common + 0.44 * rng.normal(size=len(labels))
        scores.append(skill * labels + 1.5 * np.exp(seed_effect * rng.normal()) * errors)
    return scores


def by_hand(first, second, labels, correlate, *, same_seeds, samples):
    """The test in plain loops, with scipy's correlations and its Welch and paired formulas."""
    figures = [[correlate(run, labels) for run in side] for side in (first, second)]
    again = []
    for drawn in resamples(len(labels), samples, 0):
        for rows in drawn:
            again.append([[correlate(run[rows], labels[rows]) for run in side] for side in (first, second)])
    differences = [np.mean(a) - np.mean(b) for a, b in again]
    n = len(labels)
    variance = np.var(differences, ddof=1) * n / (n - 1)  # a bootstrap divides by n
    spread = variance**2 / (n - 1)
    if same_seeds:
        sides = [
            (
                [a - b for a, b in zip(*figures, strict=True)],
                [[a - b for a, b in zip(*drawn_figures, strict=True)] for drawn_figures in again],
            )
        ]
    else:
        sides = [(figures[index], [drawn_figures[index] for drawn_figures in again]) for index in (0, 1)]
    for values, resampled in sides:
        count = len(values)
        if count == 1:
            continue
        columns = list(zip(*resampled, strict=True))
        each = np.mean([np.var(column, ddof=1) for column in columns])
        mean = np.var([np.mean(row) for row in resampled], ddof=1)
        own_examples = (each - mean) * count / (count - 1)  # variance of each run by itself
        of_seeds = np.var(values, ddof=1) / count
        variance += max(0.0, of_seeds - own_examples / count)
        spread += of_seeds**2 / (count - 1)
    difference = np.mean(figures[0]) - np.mean(figures[1])
    student = scipy.stats.t(variance**2 / spread)
    p_value = 2 * student.sf(abs(difference) / np.sqrt(variance))
    return difference, *(difference + np.array(student.interval(0.95)) * np.sqrt(variance)), p_value


@pytest.mark.parametrize(("sizes", "same_seeds"), [((4, 4), True), ((4, 4), False), ((3, 5), False), ((5, 1), False)])
@pytest.mark.parametrize("statistic", ["spearman", "pearson"])
def test_it_is_what_plain_loops_give(sizes, same_seeds, statistic):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 6, 60).astype(float)
    first, second = (
        runs(rng, labels, size, seed_effect=0.2, skill=skill) for size, skill in zip(sizes, (1, 1.1), strict=True)
    )
    correlate = {
        "spearman": lambda a, b: scipy.stats.spearmanr(a, b)[0],
        "pearson": lambda a, b: scipy.stats.pearsonr(a, b)[0],
    }[statistic]
    comparison = paired_seeds(first, second, labels, statistic, same_seeds=same_seeds, samples=60)
    expected = by_hand(first, second, labels, correlate, same_seeds=same_seeds, samples=60)
    assert (comparison.difference, comparison.low, comparison.high, comparison.p_value) == pytest.approx(
        expected, rel=1e-9
    )


def test_outcomes_are_compared_by_their_means():
    rng = np.random.default_rng(0)
    first, second = ((rng.random((5, 400)) < rate).astype(float) for rate in (0.8, 0.6))
    comparison = paired_seeds(list(first), list(second))
    assert comparison.difference == pytest.approx(first.mean() - second.mean(), abs=1e-14)
    assert 0 < comparison.low < comparison.difference < comparison.high
    turned = paired_seeds(list(second), list(first))
    assert (turned.low, turned.high, turned.p_value) == pytest.approx(
        (-comparison.high, -comparison.low, comparison.p_value)
    )


def test_a_few_outcomes_are_no_proof():
    won = [[1.0] * 5] * 3
    lost = [[0.0] * 5] * 3
    assert paired_seeds(won, lost, same_seeds=True).p_value == 2**-4
    assert paired_mean(won[0], lost[0]).p_value == 2**-4
    assert paired_mean([1.0, 1.0], [0.0, 0.0]).p_value == 0.5
    sets = [resampled_figures([run], None, samples=999, seed=1) for run in (won[0], lost[0])]
    assert compare_resampled(*(mean_of_sets([values, values]) for values in sets)).p_value == 2**-8


def test_several_sets_prove_what_their_product_does_and_have_the_examples_of_the_smallest():
    few, many = (
        Resampled(np.array([figure]), np.full((1, 9), figure), least, n)
        for figure, least, n in ((0.5, 1 / 3, 3), (0.7, 1 / 8, 40))
    )
    both = mean_of_sets([many, few])
    assert (both.figures.tolist(), both.least_p, both.examples) == ([pytest.approx(0.6)], pytest.approx(1 / 24), 3)


def test_the_interval_of_a_method_is_that_of_its_difference_from_nothing():
    rng = np.random.default_rng(0)
    outcomes = [(rng.random(200) < rate).astype(float) for rate in (0.6, 0.7, 0.8, 0.9)]
    comparison = paired_seeds(outcomes, [np.zeros(200)], samples=200)
    low, high = interval_of_runs(resampled_figures(outcomes, None, samples=200, seed=0))
    assert (low, high) == pytest.approx((comparison.low, comparison.high), rel=1e-9)
    assert high - low > 0.2  # from the seeds, which differ; the examples alone give 0.06


def test_runs_that_are_all_alike_do_not_differ():
    labels = np.arange(50.0)
    scores = labels + np.random.default_rng(0).normal(size=50)
    same = [scores] * 5
    assert paired_seeds(same, same, labels).p_value == 1
    always = paired_seeds([np.ones(20)] * 5, [np.zeros(20)])
    assert (always.difference, always.low, always.high) == (1, 1, 1)
    assert always.p_value == 2**-19
    comparison = paired_seeds(same, [scores[::-1]], labels)
    assert comparison.p_value < 1e-6


@pytest.mark.parametrize("n", [6, 12])
def test_equal_methods_seldom_differ_on_few_examples(n):
    rng = np.random.default_rng(n)
    p_values = []
    for _ in range(300):
        sides = [list(rng.normal(size=(3, n)) + 0.5 * rng.normal(size=n)) for _ in range(2)]
        p_values.append(paired_seeds(*sides, samples=200).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.08


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[1.0, 2.0]], [[2.0, 1.0]]), DataError, "two runs or more on a side, got 1 and 1"),
        (([[1.0, 2.0]] * 2, []), DataError, "got 2 and 0"),
        (([[1.0, 2.0]] * 2, [[1.0]]), DataError, r"the same 2 examples or more, got \[1, 2\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        paired_seeds(*arguments)


def test_equal_seeds_need_equal_numbers():
    with pytest.raises(ConfigError, match="as many runs on both sides, got 3 and 2"):
        paired_seeds([[1.0, 2.0]] * 3, [[1.0, 2.0]] * 2, same_seeds=True)


def test_a_correlation_that_is_mostly_undefined_is_said():
    labels = np.zeros(30)
    scores = np.zeros(30)
    labels[0] = scores[-1] = 1  # each side is constant on more than a third of the resamples
    with pytest.raises(DataError, match="More pairs are needed"):
        paired_seeds([scores] * 3, [scores], labels)
