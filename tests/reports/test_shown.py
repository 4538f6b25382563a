"""Bold is earned: the best of a column is shown only where it differs from every rival, over seeds and pairs."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from samesense.reports.shown import shown_best
from samesense.reports.significance import paired_comparisons
from samesense.reports.standing import rank
from tests.reports.made import evidence, result

KEY = ("sts", "one.test", "spearman")


def runs(noise, seeds, dataset="one.test", n=300):
    """Return results and evidence of models by the noise in their scores, with this number of seeds each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 11, n) / 2
    results = []
    behind = []
    for model, spread in noise.items():
        for seed in range(seeds):
            values = labels + spread * rng.normal(size=n)
            value = float(spearmanr(values, labels).statistic)
            results.append(result(model, value, dataset=dataset, n=n, seed=seed))
            behind.append(evidence(model, values, labels, dataset=dataset, seed=seed))
    return results, behind


def best_of(noise, seeds, **options):
    results, behind = runs(noise, seeds)
    comparisons, _ = paired_comparisons(behind, results, against=next(iter(noise)))
    return shown_best(behind, results, comparisons, **options)


@pytest.mark.parametrize(
    ("noise", "best"),
    [
        ({"a": 0.5, "b": 3.0, "c": 3.0}, "a"),  # the reference, above both
        ({"a": 3.0, "b": 3.0, "c": 0.5}, "c"),  # another, above the reference and its rival
        ({"a": 3.0, "b": 0.5, "c": 0.5}, None),  # above the reference, not above its rival
        ({"a": 0.5, "b": 0.5, "c": 3.0}, None),
        ({"a": 0.5}, None),
    ],
)
def test_the_best_is_above_every_rival(noise, best):
    assert best_of(noise, 5) == ({} if best is None else {KEY: best})


def test_few_seeds_and_missing_seeds_show_nothing():
    noise = {"a": 0.5, "b": 3.0}
    assert best_of(noise, 5) == {KEY: "a"}
    assert best_of(noise, 4) == {}  # a difference between these runs
    assert best_of(noise, 5, incomplete={"one.test"}) == {}


def test_a_rival_without_evidence_is_not_beaten():
    results, behind = runs({"a": 0.5, "b": 3.0}, 5)
    behind = [item for item in behind if item.model == "a"]
    assert shown_best(behind, results, paired_comparisons(behind, results)[0]) == {}


def test_the_mean_of_sets_has_a_best_too():
    results, behind = runs({"a": 0.5, "b": 3.0, "c": 3.0}, 5)
    further_results, further_evidence = runs({"a": 0.5, "b": 3.0, "c": 3.0}, 5, dataset="two.test")
    results = [*results, *further_results]
    behind = [*behind, *further_evidence]
    ranking = rank(behind, results)
    winners = shown_best(behind, results, paired_comparisons(behind, results)[0], ranking)
    assert winners == dict.fromkeys([KEY, ("sts", "two.test", "spearman"), ("sts", "mean of 2", "spearman")], "a")
