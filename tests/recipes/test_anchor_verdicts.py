"""Anchors with positives end in a verdict: some are held out, and the positives of these are to be found."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import samesense
from samesense.recipes.held_out.pairs import HELD_OUT_TUPLES
from samesense.recipes.methods import METHODS
from samesense.recipes.planning.plan import plan
from samesense.recipes.run.outcome.conclude import reason_to_keep
from samesense.reports.run_verdict import Finding, Verdict
from tests.recipes.conftest import WORDS

QUICK = {"max_steps": 4, "batch_size": 16, "precision": "float32", "learning_rate": 1e-4, "report": False}


def some_rows(count):
    drawn = np.random.default_rng(0)
    texts = [" ".join(drawn.permutation(WORDS)[:6]) for _ in range(2 * count)]
    return [
        {"question": f"{number} {texts[2 * number]}", "answer": f"{number + count} {texts[2 * number + 1]}"}
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def run(reader, tmp_path_factory):
    return samesense.train(some_rows(120), output=tmp_path_factory.mktemp("runs") / "run", model=reader, **QUICK)


def test_a_run_has_a_verdict_on_anchors_held_out(run):
    task = run.verdict.task
    assert (task.role, task.metric, task.n) == ("held-out anchors", "mrr", 24)
    assert "24 examples held out, each to find its positives among 24 texts" in task.examples()
    rows = [json.loads(line) for line in (run.folder / HELD_OUT_TUPLES).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 24
    assert set(rows[0]) == {"anchor", "positives", "negatives"}


def test_the_model_is_then_trained_on_all_unless_the_start_is_kept(reader, run, tmp_path):
    assert bool(run.verdict.keep_reason) != bool(run.verdict.refit)
    trained = samesense.train(some_rows(120), output=tmp_path / "run", model=reader, keep_start="never", **QUICK)
    assert trained.verdict.refit == "model/ was then trained on all 120 anchors, by the same settings"
    once = samesense.train(
        some_rows(120), output=tmp_path / "once", model=reader, keep_start="never", refit=False, **QUICK
    )
    assert once.verdict.task.end == pytest.approx(trained.verdict.task.end, abs=1e-6)
    vectors = [samesense.load(run.folder, precision="float32").encode(["0 red blue"]) for run in (trained, once)]
    assert not np.allclose(*vectors, atol=1e-5)


def test_a_test_of_their_kind_gives_the_verdict_and_chooses_nothing(reader, tmp_path):
    rows = some_rows(90)
    run = samesense.train(rows[:60], test=[*rows[60:], *rows[:2]], output=tmp_path / "run", model=reader, **QUICK)
    task = run.verdict.task
    assert (task.role, task.metric, task.n, task.trained_on) == ("test", "mrr", 32, 2)
    assert "32 examples each to find its positives among 32 texts" in task.examples()
    assert not run.verdict.keep_reason and not run.verdict.refit


@pytest.mark.parametrize(
    ("role", "rarer", "high", "is_kept"),
    [
        ("held-out anchors", None, 0.01, False),
        ("held-out anchors", None, -0.01, True),
        ("out of fold", None, 0.01, True),
        ("out of fold", 8, 0.01, True),
        ("cross-fitted dev", None, 0.01, True),
        ("cross-fitted dev", 20, 0.01, True),
        ("cross-fitted dev", 19, 0.01, False),
        ("cross-fitted dev", 19, -0.01, True),
    ],
)
def test_what_cannot_choose_keeps_the_start_only_where_harm_is_shown(reader, role, rarer, high, is_kept):
    figures = {"n": 200, "metric": "mrr", "start": 0.90, "end": 0.88, "low": -0.05, "high": high, "p_value": 0.2}
    finding = Finding(role=role, dataset="made", rarer=rarer, **figures)
    job = SimpleNamespace(settings=METHODS["cosent"].settings(model=reader), data=None)
    reason = reason_to_keep(job, Verdict(task=finding), untuned=False)
    assert bool(reason) == is_kept


@pytest.mark.parametrize(
    ("settings", "high", "is_kept"),
    [
        ({"loss": "angle"}, 0.01, False),
        ({"loss": "angle"}, -0.01, True),
        ({"loss": "angle", "in_batch_weight": 0}, 0.01, True),
        ({"loss": "info-nce"}, 0.01, False),
        ({}, 0.01, True),
    ],
)
def test_nli_labels_choose_only_where_nothing_more_is_learnt_than_they_measure(settings, high, is_kept):
    figures = {"n": 200, "metric": "spearman", "start": 0.30, "end": 0.28, "low": -0.05, "high": high, "p_value": 0.2}
    finding = Finding(role="cross-fitted dev", dataset="made", **figures)
    rows = [(f"a{number}", f"b{number}", ("entailment", "contradiction")[number % 2]) for number in range(8)]
    pairs = samesense.read([{"premise": first, "hypothesis": second, "label": label} for first, second, label in rows])
    job = SimpleNamespace(settings=METHODS["cosent"].settings(**settings), data=pairs)
    assert bool(reason_to_keep(job, Verdict(task=finding), untuned=False)) == is_kept


@pytest.mark.parametrize("way", ["dev", "none", "few"])
def test_no_anchors_are_held_out_where_others_decide_or_they_are_too_few(reader, way):
    options = {"dev": "none"} if way == "none" else {}
    rows = some_rows(50 if way == "few" else 120)
    if way == "dev":
        options["dev"] = samesense.read([("a b", "a c", 1), ("d e", "f g", 0), ("h i", "h k", 1)])
    planned = plan(rows, settings={"model": reader}, **options)
    held_out = planned.train.held_out
    assert held_out is None or held_out.data is None
    assert not planned.refit
    text = "\n".join(planned.lines())
    assert ("no verdict: a verdict takes 20 anchors held out" in text) == (way == "few")
