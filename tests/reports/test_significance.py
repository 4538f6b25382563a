import numpy as np
import pytest

from samesense.metrics import paired_bootstrap
from samesense.reports.significance import LEVEL, SAMPLES, paired_comparisons
from tests.reports.made import evidence, result, scored


def holm_by_hand(values):
    order, adjusted, highest = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values), 0.0
    for step, at in enumerate(order):
        highest = max(highest, min(1.0, values[at] * (len(values) - step)))
        adjusted[at] = highest
    return adjusted


def test_every_other_model_is_compared_with_the_best():
    results, behind = scored(200)
    found, problems = paired_comparisons(behind, results)
    best = max(results, key=lambda row: row.value).model
    assert problems == []
    assert [(one.model, one.reference) for one in found] == [(name, best) for name in "abc" if name != best]
    by_model = {one.model: one for one in behind}
    for one in found:
        expected = paired_bootstrap(
            by_model[one.model].values, by_model[best].values, behind[0].labels, "spearman", samples=SAMPLES, seed=0
        )
        assert (one.difference, one.low, one.high, one.p_value) == (
            expected.difference, expected.low, expected.high, expected.p_value,
        )  # fmt: skip
        assert one.n == 200
    assert {one.model: one.significant for one in found}["c"]
    assert not next(one for one in found if one.model in "ab").significant


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


def test_it_is_said_where_the_named_reference_has_no_figure():
    first, second = scored(), scored(seed=1, dataset="two.test")
    results = [row for row in first[0] + second[0] if (row.model, row.dataset) != ("c", "two.test")]
    behind = [one for one in first[1] + second[1] if (one.model, one.dataset) != ("c", "two.test")]
    found, problems = paired_comparisons(behind, results, against="c")
    assert {one.reference for one in found if one.dataset == "one.test"} == {"c"}
    [other] = [one for one in found if one.dataset == "two.test"]
    assert problems == [f"two.test, spearman: c has no figure; the reference is the best, {other.reference}."]


def test_outcomes_are_compared_by_their_mean():
    first, second = np.array([1, 1, 1, 0] * 30), np.array([1, 0, 0, 0] * 30)
    rows = [result(name, 0.75 if name == "a" else 0.25, task="transfer", metric="accuracy") for name in "ab"]
    behind = [
        evidence(name, values, task="transfer", metric="accuracy") for name, values in (("a", first), ("b", second))
    ]
    [one], _ = paired_comparisons(behind, rows)
    assert (one.model, one.reference, one.difference) == ("b", "a", pytest.approx(-0.5))
    assert one.significant


def test_the_median_run_stands_for_several_seeds():
    results, behind = scored()
    labels = behind[0].labels
    rng = np.random.default_rng(5)
    values = {seed: labels + seed * rng.normal(size=60) for seed in (1, 2, 3, 4)}
    rows = [result("s", {1: 0.9, 2: 0.7, 3: 0.5, 4: 0.3}[seed], seed=seed) for seed in values]
    runs = [evidence("s", own, labels, seed=seed) for seed, own in values.items()]
    found, _ = paired_comparisons([*behind, *runs], [*results, *rows], against="a")
    expected = paired_bootstrap(values[3], behind[0].values, labels, "spearman", samples=SAMPLES, seed=0)
    assert next(one for one in found if one.model == "s").difference == expected.difference


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
