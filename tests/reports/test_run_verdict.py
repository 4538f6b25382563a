"""A verdict in words: its three values, its warnings, and its round trip through a file."""

import json
from dataclasses import replace

import numpy as np
import pytest

from samesense.errors import DataError
from samesense.metrics import paired_bootstrap
from samesense.reports.run_verdict import Finding, Merged, Verdict, compare, verdict_from
from samesense.types import Evidence, Result, TaskResult

FINDING = Finding(
    role="test",
    dataset="test.tsv",
    n=1379,
    metric="spearman",
    start=0.8214,
    end=0.8297,
    low=0.0036,
    high=0.0133,
    p_value=0.001,
)


def made(model, values, labels, value):
    pairs = [(str(row), "other") for row in range(len(values))]
    common = {"task": "sts", "dataset": "test.tsv", "metric": "spearman", "model": model}
    ends = {"low": round(value - 0.1, 3), "high": round(value + 0.1, 3)}
    result = Result(**common, **ends, split="test", subset="all", value=value, n=len(values), protocol="made")
    return TaskResult(
        [result], [Evidence(**common, statistic="spearman", values=values, labels=labels, examples=pairs)]
    )


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.001, 0.01, "better"),
        (-0.01, -0.001, "worse"),
        (-0.01, 0.01, "no difference"),
        (0.0, 0.01, "no difference"),
    ],
)
def test_the_word_is_that_of_the_interval(low, high, word):
    assert replace(FINDING, low=low, high=high).word == word


def test_the_interval_is_that_of_the_paired_bootstrap():
    source = np.random.default_rng(0)
    labels = source.normal(size=200)
    before, after = (labels + noise * source.normal(size=200) for noise in (1.5, 0.8))
    finding = compare("test", made("start", before, labels, 0.4), made("end", after, labels, 0.7))
    expected = paired_bootstrap(after, before, labels, "spearman", samples=2000)
    assert (finding.start_low, finding.start_high, finding.end_low, finding.end_high) == (0.3, 0.5, 0.6, 0.8)
    assert (finding.low, finding.high, finding.p_value) == (expected.low, expected.high, expected.p_value)
    assert (finding.start, finding.end, finding.n, finding.word) == (0.4, 0.7, 200, "better")
    turned = compare("guard", made("start", after, labels, 0.7), made("end", before, labels, 0.4))
    assert (turned.word, turned.low) == ("worse", pytest.approx(-finding.high))


def test_what_cannot_be_compared_is_an_error():
    labels = np.arange(20.0)
    with pytest.raises(DataError, match="undefined"):
        compare("test", made("start", labels, labels, 1.0), made("end", np.eye(20)[0] * 0, labels, 0.0))


def test_lines_begin_with_the_verdict_and_are_loud_about_harm():
    hurt = replace(FINDING, role="guard", dataset="guard.tsv", end=0.80, low=-0.03, high=-0.01)
    merged = Merged(share=0.6, dev={"0.6": 0.85, "1.0": 0.84}, beside_end=replace(FINDING, against="the end"))
    verdict = Verdict(task=FINDING, guards=(hurt,), merge=merged, advice=("rest",))
    assert verdict.lines() == [
        "verdict: better than the start on test.tsv, 1,379 examples",
        "Spearman x100      start  trained  difference   95 % interval      p",
        "-----------------  -----  -------  ----------  --------------  -----  ------",
        "test.tsv           82.14    82.97       +0.83  +0.36 to +1.33  0.001  better",
        "guard.tsv (guard)  82.14    80.00       -2.14  -3.00 to -1.00  0.001  worse",
        "guard: WORSE than the start on guard.tsv, 1,379 examples",
        "merge: 60% of the way from the start to the end, chosen on dev (85.00, the end 84.00); better than the end on "
        "test.tsv: +0.83 (95 % interval +0.36 to +1.33), Spearman 82.14 to 82.97, 1,379 examples",
        "advice: rest",
    ]
    assert (verdict.word, verdict.harmed) == ("better", True)
    none = Verdict(reason="there is nothing to compare on")
    assert (none.word, none.lines()) == ("none", ["no verdict: there is nothing to compare on"])
    assert "the end itself" in Merged(share=1.0, dev={"1.0": 0.5}).line()


@pytest.mark.parametrize(
    ("shared", "low", "word", "remark"),
    [
        (1200, 0.0036, "better than", "but 1,200 of them were trained on: this shows no gain"),
        (3, 0.0036, "better than", "but 3 of them were trained on: this raises it"),
        (3, -0.1, "no difference from", "3 of them were trained on"),
    ],
)
def test_a_test_that_was_trained_on_is_said_in_the_verdict(shared, low, word, remark):
    verdict = Verdict(task=replace(FINDING, trained_on=shared, low=low))
    assert verdict.lines()[0] == f"verdict: {word} the start on test.tsv, 1,379 examples, {remark}"
    assert f"1,379 examples, {remark}" in verdict.task.line()
    content = json.loads(json.dumps(verdict.to_dict()))
    assert content["sets"][0]["trained_on"] == shared and verdict_from(content).lines() == verdict.lines()


def test_sets_of_several_figures_have_theirs_beside_their_names():
    sections = replace(FINDING, role="held-out sections", dataset="held-out sections", metric="accuracy", p_value=1e-4)
    header, rows = Verdict(task=sections, guards=(replace(FINDING, role="guard", dataset="a\x1b[31m\nb.tsv"),)).table()
    assert header[0] == "set"
    assert [row[0] for row in rows] == ["held-out sections, accuracy x100", "a[31m b.tsv (guard), Spearman x100"]
    assert rows[0][5] == "< 0.001"
    assert Verdict(reason="none").table()[1] == []


def test_a_verdict_comes_back_from_a_file():
    merged = Merged(share=0.6, dev={"0.6": 0.85, "1.0": 0.84}, beside_end=replace(FINDING, against="the end"))
    for verdict in (
        Verdict(task=FINDING, guards=(replace(FINDING, role="guard"),), merge=merged, advice=("rest",)),
        Verdict(reason="none", problems=("a guard",)),
    ):
        content = json.loads(json.dumps(verdict.to_dict()))
        assert content["verdict"] == verdict.word
        assert verdict_from(content).lines() == verdict.lines()
