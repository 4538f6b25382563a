"""The pages of every paper show what is in their results, and results of several runs are taken over together."""

import importlib
import json
import runpy
from dataclasses import replace

import pytest

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
    claim = next(one for one in claims.claims() if one["says"] == "below")
    one = replace(claims.compared(claim), difference=-0.1, adjusted=0.01, seeds=3)
    assert claims.outcome(claim, one) == "shown in these runs"
    assert claims.outcome({**claim, "says": "above"}, replace(one, seeds=5)) == "opposite"
    assert claims.outcome(claim, replace(one, adjusted=0.06)) == "not shown"
    monkeypatch.setattr(
        claims, "comparisons_of", lambda *_, **__: [replace(one, **dict(zip(NAMED, named(claim), strict=True)))]
    )
    with pytest.raises(DataError, match="does not agree with the runs"):
        claims.compared(claim)


NAMED = ("dataset", "model", "reference")


def named(claim):
    return claim["data"], claim["model"], claim["reference"]


def test_no_page_calls_significant_what_few_seeds_show(tables):
    for paper, pages in tables.PAGES.items():
        for name, part in pages.items():
            sweeps = [whole.sweep for whole in getattr(part, "wholes", [part])]
            if all(one.scope != "runs" for sweep in sweeps for one in tables.comparisons_of(paper, sweep)):
                continue
            text = (HOME / paper / f"{name}.md").read_text(encoding="utf-8")
            prose = text.split(tables.BEGIN)[0] + text.split(tables.END)[1]
            assert "significan" not in prose, f"{paper}/{name}.md"


def test_results_of_one_data_set_are_taken_beside_those_of_others(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HOME))
    taking = importlib.import_module("taking")
    one = {"task": "sts", "metric": "spearman", "model": "mse", "reference": "cosent", "difference": 0.1, "low": 0.0,
           "high": 0.2, "n": 9, "seeds": 5}  # fmt: skip
    folder = tmp_path / "sweep"
    folder.mkdir()
    for name, value, known in (("c", 0.1, "abc"), ("a", 0.4, "abc"), ("b", 0.7, "ab"), ("a", 0.5, "ab")):
        plan = {"tuning": [], "cells": [{"dataset": one} for one in known]}
        (folder / "sweep.json").write_text(json.dumps(plan))
        (folder / "results.jsonl").write_text(json.dumps(row("cosent", 4, value, test=name, dataset=name)) + "\n")
        compared = {**one, "dataset": name, "p_value": 0.04, "adjusted": 0.04, "significant": "yes"}
        (folder / "comparisons.jsonl").write_text(json.dumps(compared) + "\n")
        taking.take(tmp_path / "cosent" / "results", "toy", folder)
    rows, compared = (
        [json.loads(line) for line in (tmp_path / "cosent" / "results" / name).read_text().splitlines()]
        for name in ("toy.jsonl", "toy.comparisons.jsonl")
    )
    assert [(one["test"], one["spearman"]) for one in rows] == [("a", 0.5), ("b", 0.7)]
    assert [(one["dataset"], one["adjusted"], one["significant"]) for one in compared] == [
        ("a", 0.08, "no"), ("b", 0.08, "no"),
    ]  # fmt: skip


def test_means_over_all_sets_are_taken_where_all_were_run_together(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(HOME))
    taking = importlib.import_module("taking")
    known = [row("cosent", 4, 0.4, test=name, dataset=name) for name in ("a", "b")]
    one = {"task": "sts", "metric": "spearman", "model": "mse", "reference": "cosent", "difference": 0.1, "low": 0.0,
           "high": 0.2, "n": 9, "seeds": 5, "p_value": 0.04}  # fmt: skip
    compared = [{**one, "dataset": name, "adjusted": 0.04, "significant": "yes"} for name in ("mean of 2", "a", "b")]
    results = tmp_path / "cosent" / "results"
    for rows in (known, known[:1]):
        folder = tmp_path / f"sweep of {len(rows)}"
        folder.mkdir()
        (folder / "sweep.json").write_text(json.dumps({"tuning": [], "cells": known}))
        (folder / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
        own = [one for one in compared if one["dataset"] in ("a", "mean of 2") or len(rows) == 2]
        (folder / "comparisons.jsonl").write_text("".join(json.dumps(one) + "\n" for one in own))
        taking.take(results, f"of {len(rows)}", folder)
        lines = [json.loads(line) for line in (results / f"of {len(rows)}.comparisons.jsonl").read_text().splitlines()]
        wanted = [("mean of 2", 0.04), ("a", 0.08), ("b", 0.08)] if len(rows) == 2 else [("a", 0.04)]
        assert [(line["dataset"], line["adjusted"]) for line in lines] == wanted


def test_pages_of_the_origin_show_what_is_in_its_results(monkeypatch):
    monkeypatch.setattr("sys.argv", ["run.py", "--check"])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(HOME / "context" / "run.py"), run_name="__main__")
    assert not ended.value.code


def row(variant, seed, value, **more):
    made = {"layers": 2, "start": "base", "test": "toy", "n": 9, "dataset": "toy", "commit": "abc", "spearman": value}
    sizes = {"rows": {"train": 5, "dev": 2}, "data": {"train": "1" * 64, "test": "2" * 64}, "outcome": {"steps": 4}}
    cosines = {"cosines": {"0": [0.1 * seed, 0.2, 4.0], "2": [0.3, 0.4, 5.0]}}
    return {"variant": variant, "seed": seed, **made, **sizes, **cosines, **more}


def test_a_page_says_what_differs_and_what_is_missing(tables):
    rows = [row("a", 4, 0.5), row("a", 5, 0.6), row("b", 4, 0.4, start="other", layers=None)]
    assert "| b | 40.00 (1 of 2 seeds) |" in tables.figures(rows)
    assert "| a | 55.00 ± 7.07 |" in tables.figures(rows)
    said = tables.origin(rows)
    assert said.startswith("Start point: base, its first 2 layers, never tuned for sentence embeddings or other. ")
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
    said = tables.convergence(rows)
    assert "| c | 70.00 | 100 | 50 (-50 %) |" in said
    assert "\n| b |" not in said
    assert said.endswith("No better on test than the start point, so no level: b.")
    assert "| b | 50.00 | 100 |" in tables.convergence(rows[1:])


@pytest.mark.parametrize(
    "path", sorted(HOME.glob("*/results/*.jsonl")), ids=lambda path: f"{path.parts[-3]}-{path.stem}"
)
def test_no_run_is_counted_under_two_names(path):
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if "spearman" in one and "variant" in one:
            found.setdefault(one["variant"], set()).add((one["seed"], one["test"], one["spearman"]))
    figures = [sorted(own, key=str) for own in found.values()]
    assert all(figures.count(own) == 1 for own in figures)


def test_what_is_kept_of_an_origin_is_a_mean_over_seeds(tables):
    kept = [{"pairs": 1125, "spearman": rho, "pearson": 0.5, "mse": rho / 2} for rho in (0.6, 0.8)]
    rows = [row("a", seed, 0.5) | {"kept": one} for seed, one in enumerate(kept)]
    said = tables.kept([*rows, *rows, {"variant": "start"}])
    assert "on 1,125 harvested pairs" in said
    assert "| a | 70.00 ± 14.14 | 50.00 ± 0.00 | 0.350 |" in said
    assert "start" not in said


def test_pairs_stand_in_their_order(tables):
    scores = [0.9, 0.1] * 6
    one = row("a", 4, 0.5, scores=scores, labels=[1.0] * 12, threshold=0.5)
    lines = tables.verdicts([one]).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in lines] == [str(at) for at in range(1, 13)]


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
        rows = [f"{label}\t{text} {WORDS[at % 40]} {WORDS[at // 2]}\n" for at, (text, label) in enumerate(words)]
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
    one = {row["test"]: row["accuracy"] for row in rows if (row["variant"], row["seed"]) == ("mse", 2)}
    assert one["mean of 2"] == pytest.approx((one["mr"] + one["subj"]) / 2)
    compared = tables.comparisons_of("transfer", "transfer", metric="accuracy")
    assert {(c.dataset, c.model, c.reference, c.seeds) for c in compared} == {
        (data, model, "cosent", 2) for data in ("mr", "subj", "mean of 2") for model in ("start", "mse")
    }
    assert "| mean of 2 (160) |" in tables.PAGES["supmpn"]["table3"].write("transfer")
    monkeypatch.setattr("sys.argv", [*map(str, words), "--variants", "cosent", "other"])
    with pytest.raises(SystemExit, match="has no variant other"):
        transfer.main()
