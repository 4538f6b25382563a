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
    order, adjusted, highest = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values), 0.0
    for step, at in enumerate(order):
        highest = max(highest, min(1.0, values[at] * (len(values) - step)))
        adjusted[at] = highest
    return adjusted


def test_every_other_model_is_compared_with_the_first():
    results, behind = scored(200)
    found, problems = paired_comparisons(behind, results)
    assert problems == []
    assert [(one.model, one.reference) for one in found] == [("b", "a"), ("c", "a")]
    by_model = {one.model: one for one in behind}
    for one in found:
        expected = paired_bootstrap(
            by_model[one.model].values, by_model["a"].values, behind[0].labels, "spearman", samples=SAMPLES, seed=0
        )
        assert (one.difference, one.low, one.high, one.p_value) == (
            expected.difference, expected.low, expected.high, expected.p_value,
        )  # fmt: skip
        assert (one.n, one.seeds, one.scope) == (200, None, "models")
    assert {one.model: one.finding for one in found} == {"b": "no", "c": "yes"}


def test_p_values_are_adjusted_over_the_data_sets_and_models_of_a_table():
    results, behind = scored(80)
    for at in range(1, 4):
        more = scored(80, seed=at, noise=(0.5, 0.62, 0.75), dataset=f"{at}.test")
        results, behind = results + more[0], behind + more[1]
    found, _ = paired_comparisons(behind, results)
    assert len(found) == 8
    assert [one.adjusted for one in found] == pytest.approx(holm_by_hand([one.p_value for one in found]))
    assert any(one.p_value < LEVEL <= one.adjusted for one in found)


def test_significance_stays_within_reach_of_large_tables():
    results, behind = [], []
    for at in range(45):
        rows, own = scored(40, seed=at, noise=(0.1, 4.0, 4.0), dataset=f"{at}.test")
        results, behind = results + rows[:2], behind + own[:2]
    found, _ = paired_comparisons(behind, results)
    assert len(found) == 45
    assert sum(one.significant for one in found) >= 40


def test_a_named_reference_and_lower_is_not_confused_with_better():
    results, behind = scored()
    found, _ = paired_comparisons(behind, results, against="c")
    assert [(one.model, one.reference) for one in found] == [("a", "c"), ("b", "c")]
    assert all(one.difference > 0 for one in found)


def test_it_is_said_where_the_reference_has_no_figure():
    first, second = scored(), scored(seed=1, dataset="two.test")
    results = [row for row in first[0] + second[0] if (row.model, row.dataset) != ("c", "two.test")]
    behind = [one for one in first[1] + second[1] if (one.model, one.dataset) != ("c", "two.test")]
    found, problems = paired_comparisons(behind, results, against="c")
    assert {(one.dataset, one.reference) for one in found} == {("one.test", "c")}
    assert problems == ["two.test, spearman: nothing is compared, since c has no figure."]


def test_outcomes_are_compared_by_their_mean():
    first, second = np.array([1, 1, 1, 0] * 30), np.array([1, 0, 0, 0] * 30)
    rows = [result(name, 0.75 if name == "a" else 0.25, task="transfer", metric="accuracy") for name in "ab"]
    behind = [
        evidence(name, values, task="transfer", metric="accuracy") for name, values in (("a", first), ("b", second))
    ]
    [one], _ = paired_comparisons(behind, rows)
    assert (one.model, one.reference, one.difference) == ("b", "a", pytest.approx(-0.5))
    assert one.significant


@pytest.mark.parametrize(("count", "scope", "finding"), [(5, "methods", "yes"), (3, "runs", "of these runs")])
def test_all_runs_of_a_method_count_and_few_of_them_say_little(count, scope, finding):
    _, behind = scored()
    labels = behind[0].labels
    rng = np.random.default_rng(5)
    rows, made = [], []
    for name, noise in (("a", 3.0), ("b", 0.1)):
        for seed in range(count):
            values = labels + noise * rng.normal(size=60)
            rows.append(result(name, spearman(values, labels), seed=seed))
            made.append(evidence(name, values, labels, seed=seed))
    [one], _ = paired_comparisons([*reversed(made)], rows)
    expected = paired_seeds(
        [run.values for run in made[count:]], [run.values for run in made[:count]], labels, same_seeds=True
    )
    assert (one.difference, one.low, one.high, one.p_value) == pytest.approx(
        (expected.difference, expected.low, expected.high, expected.p_value)
    )
    assert (one.seeds, one.scope, one.finding) == (count, scope, finding)


def test_a_method_is_compared_with_a_model_as_it_is():
    results, behind = scored(noise=(3.0, 0.6, 3.0))
    labels, rng = behind[0].labels, np.random.default_rng(5)
    values = [labels + 0.1 * rng.normal(size=60) for _ in range(5)]
    rows = [result("s", spearman(run, labels), seed=seed) for seed, run in enumerate(values)]
    runs = [evidence("s", run, labels, seed=seed) for seed, run in enumerate(values)]
    found, _ = paired_comparisons([behind[0], *runs], [results[0], *rows])
    assert [(one.model, one.reference, one.seeds, one.finding) for one in found] == [("s", "a", 5, "yes")]


def test_examples_are_matched_where_a_model_lacks_some():
    names = [f"query {at}" for at in range(40)]
    values = np.linspace(0, 1, 40)
    rows = [result(name, 0.5, task="ranking", metric="ndcg") for name in "ab"]
    whole = evidence("a", values, task="ranking", metric="ndcg", pairs=names)
    part = evidence("b", (values - 0.1)[::-1][:30], task="ranking", metric="ndcg", pairs=names[::-1][:30])
    [one], _ = paired_comparisons([whole, part], rows, against="a")
    assert one.n == 30
    assert one.difference == pytest.approx(-0.1)


@pytest.mark.parametrize("case", ["other examples", "twice", "other labels", "constant"])
def test_what_cannot_be_compared_is_said(case):
    results, behind = scored()
    labels, values = behind[0].labels, behind[0].values
    odd = {
        "other examples": evidence("b", values, labels, pairs=[("x", str(at)) for at in range(60)]),
        "twice": evidence("b", values, labels, pairs=[("x", "y")] * 60),
        "other labels": evidence("b", values, labels + 1),
        "constant": evidence("b", np.ones(60), labels),
    }[case]
    found, problems = paired_comparisons([behind[0], odd], results[:2], against="a")
    assert found == []
    assert len(problems) == 1
    assert problems[0].startswith("one.test, spearman: b against a is undefined: ")


def test_what_is_no_headline_and_what_is_alone_is_not_compared():
    results, behind = scored()
    assert paired_comparisons(behind[:1], results) == ([], [])
    assert paired_comparisons([], results) == ([], [])
    rows = [result(name, 0.5, metric="pearson") for name in "ab"]
    own = [evidence(name, behind[0].values, behind[0].labels, metric="pearson") for name in "ab"]
    assert paired_comparisons(own, rows) == ([], [])


@pytest.fixture
def few_resamples(monkeypatch):
    """Only their variance counts, so a few do."""
    monkeypatch.setattr(significance, "paired_seeds", partial(paired_seeds, samples=150))


def experiment(seed, *, seeds, seed_effect, gain=0.0, pairs=120):
    """What ``compare`` says of two methods trained ``seeds`` times, the second better by ``gain``; and the evidence."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, pairs).astype(float)
    behind, rows = [], []
    for name, skill in (("a", 1.0), ("b", 1.0 + gain)):
        for at, values in enumerate(runs(rng, labels, seeds, skill=skill, seed_effect=seed_effect)):
            behind.append(evidence(name, values, labels, seed=at))
            rows.append(result(name, scipy.stats.spearmanr(values, labels)[0], seed=at))
    [one], _ = paired_comparisons(behind, rows)
    return one, behind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "seed_effect"), [(5, 0.1), *(pytest.param(*it, marks=pytest.mark.long) for it in ((5, 0.0), (3, 0.1)))]
)
def test_equal_methods_seldom_differ(seeds, seed_effect, few_resamples):
    found = [experiment(at, seeds=seeds, seed_effect=seed_effect)[0].p_value < LEVEL for at in range(200)]
    assert np.mean(found) <= 0.07


@pytest.mark.slow
def test_median_runs_over_pairs_alone_would_differ_much_too_often(few_resamples):
    false = 0
    for at in range(60):
        _, behind = experiment(at, seeds=5, seed_effect=0.25)
        middle = []
        for name in "ab":
            own = sorted(
                (scipy.stats.spearmanr(one.values, one.labels)[0], number)
                for number, one in enumerate(behind)
                if one.model == name
            )
            middle.append(behind[own[2][1]])
        false += paired_bootstrap(middle[0].values, middle[1].values, middle[0].labels, "spearman").p_value < LEVEL
    assert false / 60 >= 0.1


@pytest.mark.slow
def test_a_gain_is_found(few_resamples):
    found = [experiment(at, seeds=5, seed_effect=0.05, gain=0.6)[0] for at in range(40)]
    assert np.mean([one.p_value < LEVEL and one.difference > 0 for one in found]) >= 0.8


@pytest.mark.slow
def test_the_luckiest_of_equal_models_is_not_called_better(monkeypatch):
    monkeypatch.setattr(significance, "SAMPLES", 500)
    false = 0
    for at in range(60):
        rng = np.random.default_rng(at)
        labels = rng.integers(0, 6, 100).astype(float)
        scores = {f"m{number}": run for number, run in enumerate(runs(rng, labels, 11))}
        rows = [result(name, scipy.stats.spearmanr(values, labels)[0]) for name, values in scores.items()]
        behind = [evidence(name, values, labels) for name, values in scores.items()]
        found, _ = paired_comparisons(behind, rows)
        assert {one.reference for one in found} == {"m0"}
        false += any(one.significant for one in found)
    assert false / 60 <= 0.07
