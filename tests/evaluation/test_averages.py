"""The papers' averages, against the same figures worked out by hand."""

import random

import numpy as np
import pytest

import samesense
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, why_not_comparable
from samesense.errors import DataError
from samesense.evaluation import SUITES, averages
from samesense.evaluation.averages import suite_averages
from samesense.types import Evidence, Result
from tests.models import made_model

SEVEN, FIVE, TRANSFER = (average.members for suite in SUITES.values() for average in suite.averages)


def row(dataset, value, *, task="sts", metric="spearman", subset="all", model="m", seed=None, n=10, protocol="cosine"):
    return Result(
        task=task,
        dataset=dataset,
        split="test",
        subset=subset,
        metric=metric,
        value=value,
        n=n,
        protocol=protocol,
        model=model,
        seed=seed,
        seconds=2.0,
    )


def test_the_mean_is_that_of_figures_already_rounded():
    # SimCSE's published row: 68.40 82.41 74.38 80.91 78.56 76.85 72.23, average 76.25.
    values = [0.684049, 0.824149, 0.743849, 0.809149, 0.785649, 0.768549, 0.722349]
    (average,) = averages([row(name, value) for name, value in zip(SEVEN, values, strict=True)])
    assert f"{100 * average.value:.2f}" == "76.25"
    assert average.value == pytest.approx((68.4 + 82.41 + 74.38 + 80.91 + 78.56 + 76.85 + 72.23) / 700, abs=1e-15)
    assert (average.dataset, average.task, average.metric, average.subset) == ("sts-avg", "sts", "spearman", "all")
    assert (average.n, average.seconds, average.split) == (70, 14.0, "test")
    assert not why_not_comparable(average.protocol)


def test_against_decimal_text_at_random():
    source = random.Random(4)
    for _ in range(300):
        values = [source.uniform(-1, 1) for _ in SEVEN]
        (average,) = averages([row(name, value) for name, value in zip(SEVEN, values, strict=True)])
        printed = [float(f"{100 * value:.2f}") for value in values]
        assert 100 * average.value == pytest.approx(sum(printed) / 7, abs=1e-12)


def test_only_the_rows_of_all_pairs_count_and_in_any_order():
    rows = [row(name, 0.5) for name in reversed(SEVEN)]
    noise = [
        row("sts12.test", 0.9, metric="pearson"),
        row("sts12.test", 0.9, subset="MSRpar"),
        row("sts12.test", 0.9, subset="mean"),
        row("sts12.test", 0.9, task="ranking"),
        row("mine.tsv", 0.9),
        row("mine.tsv", 0.9),
    ]
    (average,) = averages([*noise, *rows])
    assert average.value == 0.5
    assert f"decimals: {', '.join(SEVEN)}" in average.protocol


def test_with_members_missing_it_has_another_name_and_says_why():
    rows = [row(name, 0.5) for name in SEVEN if name not in ("sts16.test", "sickr.test")]
    (average,) = averages(rows)
    assert average.dataset == "sts-avg-5 of 7"
    assert "without sts16.test, sickr.test" in average.protocol
    assert why_not_comparable(average.protocol) == "5 of 7 members"
    assert averages(rows[:1]) == []
    assert averages([]) == []


def test_a_member_on_other_rows_is_named():
    protocol = f"cosine; {NOT_COMPARABLE}atec.test has 10000 rows instead of 20000; all pairs"
    rows = [row(name, 0.4, protocol=protocol if name == "atec.test" else "cosine") for name in FIVE]
    (average,) = averages(rows)
    assert average.dataset == "sts-zh-avg"
    assert why_not_comparable(average.protocol) == "atec.test differ from what was published"


def test_each_model_and_seed_and_each_suite_has_its_own():
    rows = [row(name, 0.1, model="a", seed=seed) for seed in (0, 1) for name in SEVEN]
    rows += [row(name, 0.8, task="transfer", metric="accuracy", model="b") for name in TRANSFER]
    rows += [row(name, 0.9, model="b") for name in FIVE]
    figures = [(r.model, r.seed, r.dataset, round(r.value, 6)) for r in averages(rows)]
    assert figures == [
        ("a", 0, "sts-avg", 0.1),
        ("a", 1, "sts-avg", 0.1),
        ("b", None, "sts-zh-avg", 0.9),
        ("b", None, "transfer-avg", 0.8),
    ]


def test_a_member_that_stands_twice_is_refused():
    rows = [row(name, 0.5) for name in SEVEN]
    with pytest.raises(DataError, match=r"sts-avg: there are two results on stsb\.test for model 'm', seed None"):
        averages([*rows, row("stsb.test", 0.6)])


def behind(dataset, values, labels=None, metric="accuracy", task="probes"):
    statistic = "mean" if labels is None else "spearman"
    examples = [str(index) for index in range(len(values))]
    return Evidence(
        task=task,
        dataset=dataset,
        metric=metric,
        model="m",
        statistic=statistic,
        values=values,
        labels=labels,
        examples=examples,
    )


def test_a_suite_without_an_average_of_its_own_has_the_mean_of_its_sets():
    rows = [row(name, value, task="probes", metric="accuracy") for name, value in (("a", 0.2), ("b", 0.4), ("c", 0.9))]
    (mean,) = suite_averages(rows)
    assert (mean.dataset, mean.task, mean.metric, mean.n) == ("mean of 3", "probes", "accuracy", 30)
    assert mean.value == pytest.approx(0.5)
    assert mean.low is mean.high is None
    assert not suite_averages(rows[:1])
    geometry = [row(name, 1.0, task="geometry", metric="uniformity") for name in "ab"]
    assert not suite_averages(geometry)
    papers = [row(name, 0.5) for name in SEVEN]
    assert [average.dataset for average in suite_averages([*papers, *rows])] == ["sts-avg", "mean of 3"]


def test_the_interval_of_a_mean_is_that_of_sets_drawn_each_by_itself():
    source = np.random.default_rng(3)
    outcomes = [(source.random(n) < rate).astype(float) for n, rate in ((400, 0.3), (900, 0.8))]
    rows = [
        row(name, values.mean(), task="probes", metric="accuracy", n=len(values))
        for name, values in zip("ab", outcomes, strict=True)
    ]
    evidence = [behind(name, values) for name, values in zip("ab", outcomes, strict=True)]
    (mean,) = suite_averages(rows, evidence)
    error = (
        sum(values.var() / len(values) for values in outcomes) ** 0.5 / 2
    )  # the standard error of a mean of two independent means
    assert (mean.low, mean.high) == pytest.approx((mean.value - 1.96 * error, mean.value + 1.96 * error), abs=0.003)
    assert suite_averages(rows, evidence[:1])[0].low is None


def test_a_mean_of_small_sets_may_have_no_interval(tmp_path):
    for name in ("a", "b"):
        rows = [f"{name} one {number}\t{name} two {number}\t{int(number == 4)}" for number in range(5)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    model = made_model(lambda pairs: np.array([hash(pair) % 97 for pair in pairs], float), name="m", protocol="made")
    results = samesense.evaluate(model, [tmp_path / "a.tsv", tmp_path / "b.tsv"])
    assert [(row.dataset, row.low) for row in results if row.metric == "spearman"][-1] == ("mean of 2", None)


def test_the_papers_average_has_an_interval_where_there_is_evidence():
    source = np.random.default_rng(4)
    labels = source.normal(size=(2, 500))
    values = labels + source.normal(size=(2, 500))
    rows = [row(name, 0.7, n=500) for name in SEVEN[:2]]
    evidence = [behind(SEVEN[index], values[index], labels[index], "spearman", "sts") for index in (0, 1)]
    (mean,) = suite_averages(rows, evidence)
    assert 0.6 < mean.low < 0.69 < mean.high < 0.75
