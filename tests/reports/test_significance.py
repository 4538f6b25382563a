from functools import partial

import numpy as np
import pytest
import scipy.stats

from samesense.metrics import paired_bootstrap, paired_seeds, spearman
from samesense.reports import significance
from samesense.reports.significance import LEVEL, SAMPLES, paired_comparisons
from tests.metrics.test_seeds import runs
from tests.reports.made import evidence, result, scored


def holm_by_hand(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    adjusted = [0.0] * len(values)
    highest = 0.0
    for step, index in enumerate(order):
        highest = max(highest, min(1.0, values[index] * (len(values) - step)))
        adjusted[index] = highest
    return adjusted


def test_every_other_model_is_compared_with_the_first():
    results, behind = scored(200)
    comparisons, problems = paired_comparisons(behind, results)
    assert problems == []
    assert [(item.model, item.reference) for item in comparisons] == [("b", "a"), ("c", "a")]
    by_model = {item.model: item for item in behind}
    for item in comparisons:
        expected = paired_bootstrap(
            by_model[item.model].values, by_model["a"].values, behind[0].labels, "spearman", samples=SAMPLES, seed=0
        )
        assert (item.difference, item.low, item.high, item.p_value) == (
            expected.difference,
            expected.low,
            expected.high,
            expected.p_value,
        )
        assert (item.n, item.seeds, item.scope) == (200, None, "models")
    assert {item.model: item.finding for item in comparisons} == {"b": "no", "c": "yes"}


def test_p_values_are_adjusted_over_the_data_sets_and_models_of_a_table():
    results, behind = scored(80)
    for seed in range(1, 4):
        scored_set = scored(80, seed=seed, noise=(0.5, 0.62, 0.75), dataset=f"{seed}.test")
        results = results + scored_set[0]
        behind = behind + scored_set[1]
    comparisons, _ = paired_comparisons(behind, results)
    assert len(comparisons) == 8
    assert [comparison.adjusted for comparison in comparisons] == pytest.approx(
        holm_by_hand([comparison.p_value for comparison in comparisons])
    )
    assert any(comparison.p_value < LEVEL <= comparison.adjusted for comparison in comparisons)


def test_significance_stays_within_reach_of_large_tables():
    results = []
    behind = []
    for seed in range(45):
        rows, evidence_of_set = scored(40, seed=seed, noise=(0.1, 4.0, 4.0), dataset=f"{seed}.test")
        results = results + rows[:2]
        behind = behind + evidence_of_set[:2]
    comparisons, _ = paired_comparisons(behind, results)
    assert len(comparisons) == 45
    assert sum(comparison.significant for comparison in comparisons) >= 40


def test_a_named_reference_and_lower_is_not_confused_with_better():
    results, behind = scored()
    comparisons, _ = paired_comparisons(behind, results, against="c")
    assert [(comparison.model, comparison.reference) for comparison in comparisons] == [("a", "c"), ("b", "c")]
    assert all(comparison.difference > 0 for comparison in comparisons)


def test_it_is_said_where_the_reference_has_no_figure():
    first = scored()
    second = scored(seed=1, dataset="two.test")
    results = [row for row in first[0] + second[0] if (row.model, row.dataset) != ("c", "two.test")]
    behind = [item for item in first[1] + second[1] if (item.model, item.dataset) != ("c", "two.test")]
    comparisons, problems = paired_comparisons(behind, results, against="c")
    assert {(item.dataset, item.reference) for item in comparisons} == {("one.test", "c")}
    assert problems == ["two.test, spearman: nothing is compared, since c has no figure."]


def test_outcomes_are_compared_by_their_mean():
    first = np.array([1, 1, 1, 0] * 30)
    second = np.array([1, 0, 0, 0] * 30)
    rows = [result(name, 0.75 if name == "a" else 0.25, task="transfer", metric="accuracy") for name in "ab"]
    behind = [
        evidence(name, values, task="transfer", metric="accuracy") for name, values in (("a", first), ("b", second))
    ]
    [comparison], _ = paired_comparisons(behind, rows)
    assert (comparison.model, comparison.reference, comparison.difference) == ("b", "a", pytest.approx(-0.5))
    assert comparison.significant


@pytest.mark.parametrize(("count", "scope", "finding"), [(5, "methods", "yes"), (3, "runs", "of these runs")])
def test_all_runs_of_a_method_count_and_few_of_them_say_little(count, scope, finding):
    _, behind = scored()
    labels = behind[0].labels
    rng = np.random.default_rng(5)
    rows = []
    evidence_of_runs = []
    for name, noise in (("a", 3.0), ("b", 0.1)):
        for seed in range(count):
            values = labels + noise * rng.normal(size=60)
            rows.append(result(name, spearman(values, labels), seed=seed))
            evidence_of_runs.append(evidence(name, values, labels, seed=seed))
    [comparison], _ = paired_comparisons([*reversed(evidence_of_runs)], rows)
    expected = paired_seeds(
        [run.values for run in evidence_of_runs[count:]],
        [run.values for run in evidence_of_runs[:count]],
        labels,
        same_seeds=True,
    )
    assert (comparison.difference, comparison.low, comparison.high, comparison.p_value) == pytest.approx(
        (expected.difference, expected.low, expected.high, expected.p_value)
    )
    assert (comparison.seeds, comparison.scope, comparison.finding) == (count, scope, finding)


def test_a_method_is_compared_with_a_model_as_it_is():
    results, behind = scored(noise=(3.0, 0.6, 3.0))
    labels = behind[0].labels
    rng = np.random.default_rng(5)
    values = [labels + 0.1 * rng.normal(size=60) for _ in range(5)]
    rows = [result("s", spearman(run, labels), seed=seed) for seed, run in enumerate(values)]
    runs = [evidence("s", run, labels, seed=seed) for seed, run in enumerate(values)]
    comparisons, _ = paired_comparisons([behind[0], *runs], [results[0], *rows])
    assert [
        (comparison.model, comparison.reference, comparison.seeds, comparison.finding) for comparison in comparisons
    ] == [("s", "a", 5, "yes")]


def test_examples_are_matched_where_a_model_lacks_some():
    names = [f"query {number}" for number in range(40)]
    values = np.linspace(0, 1, 40)
    rows = [result(name, 0.5, task="ranking", metric="ndcg") for name in "ab"]
    whole = evidence("a", values, task="ranking", metric="ndcg", pairs=names)
    fewer = evidence("b", (values - 0.1)[::-1][:30], task="ranking", metric="ndcg", pairs=names[::-1][:30])
    [comparison], _ = paired_comparisons([whole, fewer], rows, against="a")
    assert comparison.n == 30
    assert comparison.difference == pytest.approx(-0.1)


@pytest.mark.parametrize("case", ["other examples", "twice", "other labels", "constant"])
def test_what_cannot_be_compared_is_said(case):
    results, behind = scored()
    labels = behind[0].labels
    values = behind[0].values
    odd = {
        "other examples": evidence("b", values, labels, pairs=[("x", str(index)) for index in range(60)]),
        "twice": evidence("b", values, labels, pairs=[("x", "y")] * 60),
        "other labels": evidence("b", values, labels + 1),
        "constant": evidence("b", np.ones(60), labels),
    }[case]
    comparisons, problems = paired_comparisons([behind[0], odd], results[:2], against="a")
    assert comparisons == []
    assert len(problems) == 1
    assert problems[0].startswith("one.test, spearman: b against a is undefined: ")


def test_what_is_no_headline_and_what_is_alone_is_not_compared():
    results, behind = scored()
    assert paired_comparisons(behind[:1], results) == ([], [])
    assert paired_comparisons([], results) == ([], [])
    rows = [result(name, 0.5, metric="pearson") for name in "ab"]
    pearson_evidence = [evidence(name, behind[0].values, behind[0].labels, metric="pearson") for name in "ab"]
    assert paired_comparisons(pearson_evidence, rows) == ([], [])


@pytest.fixture
def few_resamples(monkeypatch):
    """Only their variance counts, so a few do."""
    monkeypatch.setattr(significance, "paired_seeds", partial(paired_seeds, samples=150))


def experiment(seed, *, seeds, seed_effect, gain=0.0, pairs=120):
    """Compare two methods trained ``seeds`` times, the second better by ``gain``; return comparison and evidence."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, pairs).astype(float)
    behind = []
    rows = []
    for name, skill in (("a", 1.0), ("b", 1.0 + gain)):
        for run_seed, values in enumerate(runs(rng, labels, seeds, skill=skill, seed_effect=seed_effect)):
            behind.append(evidence(name, values, labels, seed=run_seed))
            rows.append(result(name, scipy.stats.spearmanr(values, labels)[0], seed=run_seed))
    [comparison], _ = paired_comparisons(behind, rows)
    return comparison, behind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "seed_effect"), [(5, 0.1), *(pytest.param(*it, marks=pytest.mark.long) for it in ((5, 0.0), (3, 0.1)))]
)
def test_equal_methods_seldom_differ(seeds, seed_effect, few_resamples):
    significant = [experiment(seed, seeds=seeds, seed_effect=seed_effect)[0].p_value < LEVEL for seed in range(200)]
    assert np.mean(significant) <= 0.07


@pytest.mark.slow
def test_median_runs_over_pairs_alone_would_differ_much_too_often(few_resamples):
    false = 0
    for seed in range(60):
        _, behind = experiment(seed, seeds=5, seed_effect=0.25)
        middle = []
        for name in "ab":
            ranked = sorted(
                (scipy.stats.spearmanr(item.values, item.labels)[0], number)
                for number, item in enumerate(behind)
                if item.model == name
            )
            middle.append(behind[ranked[2][1]])
        false += paired_bootstrap(middle[0].values, middle[1].values, middle[0].labels, "spearman").p_value < LEVEL
    assert false / 60 >= 0.1


@pytest.mark.slow
def test_a_gain_is_found(few_resamples):
    comparisons = [experiment(seed, seeds=5, seed_effect=0.05, gain=0.6)[0] for seed in range(40)]
    assert np.mean([comparison.p_value < LEVEL and comparison.difference > 0 for comparison in comparisons]) >= 0.8


@pytest.mark.slow
def test_the_luckiest_of_equal_models_is_not_called_better(monkeypatch):
    monkeypatch.setattr(significance, "SAMPLES", 500)
    false = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 6, 100).astype(float)
        scores = {f"m{number}": run for number, run in enumerate(runs(rng, labels, 11))}
        rows = [result(name, scipy.stats.spearmanr(values, labels)[0]) for name, values in scores.items()]
        behind = [evidence(name, values, labels) for name, values in scores.items()]
        comparisons, _ = paired_comparisons(behind, rows)
        assert {comparison.reference for comparison in comparisons} == {"m0"}
        false += any(comparison.significant for comparison in comparisons)
    assert false / 60 <= 0.07
