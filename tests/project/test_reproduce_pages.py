"""The pages of every paper show what is in their results, and results of several runs are taken over together."""

import importlib
import json
import runpy
from dataclasses import replace

import numpy as np
import pytest
import torch

from samesense.errors import DataError
from tests.conftest import WORDS
from tests.project.test_reproduce import HOME, PAPERS, ROOT


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(HOME))
    return importlib.import_module("tables")


@pytest.mark.parametrize("paper", PAPERS)
def test_pages_show_what_is_in_the_results(tables, monkeypatch, paper):
    monkeypatch.setattr("sys.argv", ["tables.py", paper, "--check"])
    with pytest.raises(SystemExit) as ended:
        tables.main()
    assert ended.value.code == 0


def test_claims_are_what_the_runs_show(tables, monkeypatch):
    claims = importlib.import_module("claims")
    monkeypatch.setattr("sys.argv", ["claims.py", "--check"])
    claims.main()
    claim = next(claim for claim in claims.claims() if claim["says"] == "below")
    comparison = replace(claims.compared(claim), difference=-0.1, low=-0.15, high=-0.05, adjusted=0.01, seeds=3)
    assert claims.outcome(claim, comparison) == "shown, in these runs"
    assert claims.outcome({**claim, "says": "above"}, replace(comparison, seeds=5)) == "opposite"
    unsure = replace(comparison, difference=-0.001, low=-0.004, high=0.002, adjusted=0.6, seeds=5)  # 0.1 [-0.2, +0.4]
    assert claims.outcome({**claim, "paper": "80.50 against 80.00"}, unsure) == "smaller than the paper's (excluded)"
    assert claims.outcome({**claim, "paper": "80.30 against 80.00"}, unsure) == "could not be seen here"
    monkeypatch.setattr(
        claims, "comparisons_of", lambda *_, **__: [replace(comparison, **dict(zip(NAMED, named(claim), strict=True)))]
    )
    with pytest.raises(DataError, match="does not agree with the runs"):
        claims.compared(claim)


def test_the_least_visible_difference_is_seen_in_four_of_five_repetitions(tables):
    claims = importlib.import_module("claims")
    claim = claims.claims()[0]
    comparison = replace(claims.compared(claim), low=-0.0196, high=0.0196)  # a standard error of one point
    effect = claims.least_visible(comparison)
    differences = effect + np.random.default_rng(0).normal(size=20_000)
    assert np.mean(np.abs(differences) > 1.96) == pytest.approx(0.8, abs=0.01)


def test_p_is_adjusted_over_the_rows_of_one_paper(tables):
    claims = importlib.import_module("claims")
    pairs = [(claim, claims.compared(claim)) for claim in claims.claims()]
    adjusted = claims.adjusted_by_paper(pairs)
    for paper in PAPERS:
        rows = [row for row, (claim, _) in enumerate(pairs) if claim["page"].startswith(f"{paper}/")]
        lowest = min(rows, key=lambda row: pairs[row][1].p_value)
        assert adjusted[lowest].adjusted == pytest.approx(min(1, len(rows) * pairs[lowest][1].p_value))


def test_the_gradient_of_one_comparison_moves_two_pairs(monkeypatch):
    monkeypatch.syspath_prepend(str(HOME / "cosent"))
    shares = importlib.import_module("shares")
    pairs, total = shares.effective_pairs(torch.tensor([0.9, 0.1]), torch.tensor([0.0, 1.0]), 0.05)
    assert pairs == pytest.approx(2)
    # Of a comparison that is out of order by far, each pair has the whole scale.
    assert total == pytest.approx(2 * 20, rel=1e-4)
    assert shares.effective_pairs(torch.tensor([0.9, 0.1]), torch.tensor([1.0, 1.0]), 0.05) == (0, 0)


NAMED = ("dataset", "model", "reference")


def named(claim):
    return claim["data"], claim["model"], claim["reference"]


def test_no_page_calls_significant_what_few_seeds_show(tables):
    for paper, pages in tables.PAGES.items():
        for name, section in pages.items():
            sweeps = [whole.sweep for whole in getattr(section, "wholes", [section])]
            if all(
                comparison.scope != "runs" for sweep in sweeps for comparison in tables.comparisons_of(paper, sweep)
            ):
                continue
            text = (HOME / paper / f"{name}.md").read_text(encoding="utf-8")
            prose = text.split(tables.BEGIN)[0] + text.split(tables.END)[1]
            assert "significan" not in prose, f"{paper}/{name}.md"


def test_results_of_one_data_set_are_taken_beside_those_of_others(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HOME))
    taking = importlib.import_module("taking")
    entry = {
        "task": "sts",
        "metric": "spearman",
        "model": "mse",
        "reference": "cosent",
        "difference": 0.1,
        "low": 0.0,
        "high": 0.2,
        "n": 9,
        "seeds": 5,
    }
    folder = tmp_path / "sweep"
    folder.mkdir()
    for name, value, datasets in (("c", 0.1, "abc"), ("a", 0.4, "abc"), ("b", 0.7, "ab"), ("a", 0.5, "ab")):
        plan = {"tuning": [], "cells": [{"dataset": entry} for entry in datasets]}
        (folder / "sweep.json").write_text(json.dumps(plan))
        (folder / "results.jsonl").write_text(json.dumps(row("cosent", 4, value, test=name, dataset=name)) + "\n")
        compared = {**entry, "dataset": name, "p_value": 0.04, "adjusted": 0.04, "significant": "yes"}
        (folder / "comparisons.jsonl").write_text(json.dumps(compared) + "\n")
        taking.take(tmp_path / "cosent" / "results", "toy", folder)
    rows, compared = (
        [json.loads(line) for line in (tmp_path / "cosent" / "results" / name).read_text().splitlines()]
        for name in ("toy.jsonl", "toy.comparisons.jsonl")
    )
    assert [(entry["test"], entry["spearman"]) for entry in rows] == [("a", 0.5), ("b", 0.7)]
    assert [(entry["dataset"], entry["adjusted"], entry["significant"]) for entry in compared] == [
        ("a", 0.08, "no"),
        ("b", 0.08, "no"),
    ]


def test_means_over_all_sets_are_taken_where_all_were_run_together(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HOME))
    taking = importlib.import_module("taking")
    all_rows = [row("cosent", 4, 0.4, test=name, dataset=name) for name in ("a", "b")]
    entry = {
        "task": "sts",
        "metric": "spearman",
        "model": "mse",
        "reference": "cosent",
        "difference": 0.1,
        "low": 0.0,
        "high": 0.2,
        "n": 9,
        "seeds": 5,
        "p_value": 0.04,
    }
    compared = [{**entry, "dataset": name, "adjusted": 0.04, "significant": "yes"} for name in ("mean of 2", "a", "b")]
    results = tmp_path / "cosent" / "results"
    for rows in (all_rows, all_rows[:1]):
        folder = tmp_path / f"sweep of {len(rows)}"
        folder.mkdir()
        (folder / "sweep.json").write_text(json.dumps({"tuning": [], "cells": all_rows}))
        (folder / "results.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rows))
        comparisons = [entry for entry in compared if entry["dataset"] in ("a", "mean of 2") or len(rows) == 2]
        (folder / "comparisons.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in comparisons))
        taking.take(results, f"of {len(rows)}", folder)
        lines = [json.loads(line) for line in (results / f"of {len(rows)}.comparisons.jsonl").read_text().splitlines()]
        expected = [("mean of 2", 0.04), ("a", 0.08), ("b", 0.08)] if len(rows) == 2 else [("a", 0.04)]
        assert [(line["dataset"], line["adjusted"]) for line in lines] == expected


def test_pages_of_the_origin_show_what_is_in_its_results(monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py", "--check"])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(HOME / "context" / "run.py"), run_name="__main__")
    assert not ended.value.code


def row(variant, seed, value, **fields):
    defaults = {
        "layers": 2,
        "start": "base",
        "test": "toy",
        "n": 9,
        "dataset": "toy",
        "commit": "abc",
        "spearman": value,
    }
    sizes = {"rows": {"train": 5, "dev": 2}, "data": {"train": "1" * 64, "test": "2" * 64}, "outcome": {"steps": 4}}
    cosines = {"cosines": {"0": [0.1 * seed, 0.2, 4.0], "2": [0.3, 0.4, 5.0]}}
    return {"variant": variant, "seed": seed, **defaults, **sizes, **cosines, **fields}


def test_a_page_says_what_differs_and_what_is_missing(tables):
    rows = [row("a", 4, 0.5), row("a", 5, 0.6), row("b", 4, 0.4, start="other", layers=None)]
    assert "| b | 40.00 (1 of 2 seeds) |" in tables.figures(rows)
    assert "| a | 55.00 ± 7.07 |" in tables.figures(rows)
    text = tables.origin(rows)
    assert text.startswith("Start point: base, its first 2 layers, never tuned for sentence embeddings or other. ")
    rows[2]["data"] = {**rows[2]["data"], "train": "3" * 64}
    assert "toy 5/2 (11111111); toy 5/2 (33333333)" in tables.origin(rows)
    cosines = tables.cosines(rows)
    assert "| data | variant | label 0 | label 2 | distance / deviation |" in cosines
    # means .4 and .5 against .3, both a deviation of sqrt((.2 ** 2 + .4 ** 2) / 2) = .316
    assert "| toy | a | 0.450 ± 0.200 | 0.300 ± 0.400 | -0.47 ± 0.22 |" in cosines
    tables.check_same_data(rows)
    with pytest.raises(DataError, match="toy: b was judged on other pairs"):
        tables.check_same_data([*rows, row("b", 5, 0.4, data={"train": "1" * 64, "test": "4" * 64})])


def test_a_loss_that_ends_below_the_start_point_sets_no_level(tables):
    trained = {"a": 0.8, "b": 0.4, "c": 0.6}
    rows = [row(name, 4, value, curve=[[50, value], [100, value + 0.1]]) for name, value in trained.items()]
    rows.insert(0, row("start", 0, 0.5) | {"seed": None})
    text = tables.convergence(rows)
    assert "| c | 70.00 | 100 | 50 (-50 %) |" in text
    assert "\n| b |" not in text
    assert text.endswith("No better on test than the start point, so no level: b.")
    assert "| b | 50.00 | 100 |" in tables.convergence(rows[1:])


@pytest.mark.parametrize(
    "path", sorted(HOME.glob("*/results/*.jsonl")), ids=lambda path: f"{path.parts[-3]}-{path.stem}"
)
def test_no_run_is_counted_under_two_names(path):
    results = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        if "spearman" in result and "variant" in result:
            results.setdefault(result["variant"], set()).add((result["seed"], result["test"], result["spearman"]))
    figures = [sorted(variant_figures, key=str) for variant_figures in results.values()]
    assert all(figures.count(variant_figures) == 1 for variant_figures in figures)


def test_what_is_kept_of_an_origin_is_a_mean_over_seeds(tables):
    agreements = [{"pairs": 1125, "spearman": rho, "pearson": 0.5, "mse": rho / 2} for rho in (0.6, 0.8)]
    rows = [row("a", seed, 0.5) | {"kept": agreement} for seed, agreement in enumerate(agreements)]
    text = tables.kept([*rows, *rows, {"variant": "start"}])
    assert "on 1,125 harvested pairs" in text
    assert "| a | 70.00 ± 14.14 | 50.00 ± 0.00 | 0.350 |" in text
    assert "start" not in text


def test_pairs_stand_in_their_order(tables):
    scores = [0.9, 0.1] * 6
    case = row("a", 4, 0.5, scores=scores, labels=[1.0] * 12, threshold=0.5)
    lines = tables.verdicts([case]).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == [str(number) for number in range(1, 13)]


def test_transfer_tasks_of_a_sweep_become_rows_and_comparisons(tables, monkeypatch, tmp_path, tiny_trunk):
    pytest.importorskip("matplotlib")
    transfer = importlib.import_module("transfer")
    from samesense.encoder.assembly.build import build

    cells = [("start", None), ("mse", 2), ("mse", 1), ("cosent", 1), ("cosent", 2), ("left out", 1)]
    for variant, seed in cells[1:5]:
        folder = tmp_path / "sweep" / "runs" / f"{variant}-{seed}"
        model = build(str(tiny_trunk), device="cpu")
        model[0].model.embeddings.word_embeddings.weight.data.add_(seed / 10)
        model.save(str(folder))
        (folder / "manifest.json").write_text(json.dumps({"settings": {"seed": seed}}))
    plan = {"cells": [{"variant": name, "seed": seed, "folder": f"{name}-{seed}"} for name, seed in cells]}
    (tmp_path / "sweep" / "sweep.json").write_text(json.dumps(plan))
    words = [("the cat sleeps", 1), ("a small dog sings", 0)] * 40
    for name in ("mr", "subj"):
        rows = [
            f"{label}\t{text} {WORDS[number % 40]} {WORDS[number // 2]}\n" for number, (text, label) in enumerate(words)
        ]
        (tmp_path / f"{name}.tsv").write_text("label\tsentence\n" + "".join(rows))
    (tmp_path / "transfer" / "results").mkdir(parents=True)
    monkeypatch.setattr(transfer, "__file__", str(tmp_path / "transfer.py"))
    words = ["transfer.py", "transfer", tmp_path / "sweep", "--start", tiny_trunk, "--data", tmp_path, "--fast"]
    monkeypatch.setattr("sys.argv", [*map(str, words), "--variants", "cosent", "mse"])
    transfer.main()
    monkeypatch.setattr(tables, "HOME", tmp_path)
    rows = tables.rows_of("transfer", "transfer")
    assert {(row["variant"], row["seed"]) for row in rows} == {*cells[:5]}
    assert {row["test"] for row in rows} == {"mr", "subj", "mean of 2"}
    accuracies = {row["test"]: row["accuracy"] for row in rows if (row["variant"], row["seed"]) == ("mse", 2)}
    assert accuracies["mean of 2"] == pytest.approx((accuracies["mr"] + accuracies["subj"]) / 2)
    compared = tables.comparisons_of("transfer", "transfer", metric="accuracy")
    assert {(c.dataset, c.model, c.reference, c.seeds) for c in compared} == {
        (data, model, "cosent", 2) for data in ("mr", "subj", "mean of 2") for model in ("start", "mse")
    }
    assert "| mean of 2 (160) |" in tables.PAGES["supmpn"]["table3"].write("transfer")
    monkeypatch.setattr("sys.argv", [*map(str, words), "--variants", "cosent", "other"])
    with pytest.raises(SystemExit, match="has no variant other"):
        transfer.main()
