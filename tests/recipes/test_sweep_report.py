"""Reports of cells from other versions, under other names, or missing."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import spearmanr

from samesense.data import read_pairs
from samesense.errors import ConfigError
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep.cell import write_scores
from samesense.recipes.sweep.file import SweepFile
from samesense.recipes.sweep.gather import Tried, gather, rows
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.report import _tried_table, write_report
from samesense.recipes.sweep.run import begin
from samesense.reports import append_results
from tests.reports.made import result

pytest.importorskip("matplotlib")


@pytest.fixture
def file(tiny_trunk, toy_pairs):
    files = {split: str(toy_pairs / f"{split}.tsv") for split in ("train", "dev", "test")}
    base = {"model": str(tiny_trunk), "max_steps": 4}
    return {"seeds": [1, 2], "base": base, "grid": {"temperature": [0.05, 0.1]}, "data": [{"name": "toy", **files}]}


def plan_of(file, **overrides):
    return make_plan(SweepFile(**{**file, **overrides}))


def leave(plan, output, which=None, versions=None, precision="float32"):
    """Write the files of finished cells, with random scores."""
    begin(plan, output)
    for cell in plan.cells if which is None else [plan.cells[index] for index in which]:
        splits = plan.splits_of(cell)
        folder = cell.folder(output)
        work = cells.CellJob(cell, splits, folder, "float32")
        cells.record(work, "running")
        random = np.random.default_rng(len(list(folder.parent.iterdir())))
        scores_of_task = {}
        for name, test in splits.tests.items():
            scores_of_task[f"sts:{name}:spearman"] = scores = np.asarray(test.labels) + random.normal(size=len(test))
            value = float(spearmanr(scores, test.labels).statistic)
            append_results(folder / "results.jsonl", [result("x", value, dataset=name, n=len(test), seed=cell.seed)])
        write_scores(folder / "scores.npz", scores_of_task)
        provenance = {"versions": versions or {"samesense": "1.0"}, "precision": [precision, "measured"], "outcome": {}}
        scores_of_task = {"settings": cell.settings.model_dump(), **provenance}
        (folder / "manifest.json").write_text(json.dumps(scores_of_task), encoding="utf-8")
        cells.record(work, "finished", seconds=1.0)


def test_pairs_may_hold_any_sign_that_ends_a_line(file, tmp_path):
    table = [f"{number % 4}.5\tone\u2028{number}\ttwo\x85{number}" for number in range(12)]
    path = tmp_path / "odd.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *table]) + "\n", encoding="utf-8")
    assert "\u2028" in read_pairs(path).sentences1[0]
    plan = plan_of(file, seeds=[1], data=[{**file["data"][0], "test": str(path)}])
    leave(plan, tmp_path / "out")
    evidence = gather(tmp_path / "out")[0].evidence[0]
    assert list(evidence.examples) == read_pairs(path).pairs()


def test_a_variant_has_its_present_name_everywhere(file, tmp_path):
    names = {"grid": {}, "seeds": [1]}
    leave(plan_of(file, **names, case=[{"name": "old", "temperature": 0.1}]), tmp_path)
    begin(plan_of(file, **names, case=[{"name": "new", "temperature": 0.1}]), tmp_path)
    assert [row["variant"] for row in rows(gather(tmp_path))] == ["new"]
    assert "old" not in write_report(tmp_path)[0]


def test_the_start_is_another_one_with_a_prompt_and_guards_are_refused(file):
    base = file["base"]
    keys = {
        next(cell.key for cell in plan_of(file, start=True, base={**base, **overrides}).cells if cell.seed is None)
        for overrides in ({}, {"prompt": "query: "})
    }
    assert len(keys) == 2
    for overrides in ({"guard": ["a.tsv"]}, {"learning_curve": True}):
        with pytest.raises(ConfigError, match="is of a single run's report"):
            plan_of(file, base={**base, **overrides})


def test_a_name_with_a_bar_stays_one_cell():
    table = _tried_table([Tried("toy", "a | b", "learning_rate 0.1", 0.5, chosen=True, status="finished", error="")])
    assert table.markdown().splitlines()[-1] == r"| toy | a \| b | learning_rate 0.1 | 50.00 | yes |"


def test_cells_that_were_not_made_alike_are_named(file, tmp_path):
    plan = plan_of(file)
    leave(plan, tmp_path, [0, 1])
    assert "Not made alike" not in write_report(tmp_path)[0]
    leave(plan, tmp_path, [2], {"samesense": "2.0"}, "bfloat16")
    text, _ = write_report(tmp_path)
    assert "## Not made alike" in text
    assert "- trained with samesense 1.0 and 2.0: " in text
    assert "- trained with arithmetic float32 and bfloat16: " in text
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1.0 / 2.0" in page
    assert "## Not run\n\n- toy, temperature 0.1, seed 2: not run yet" in text


def fail(plan, output, which, error="Traceback\nMemoryError: no room"):
    for cell in which:
        cells.record(cells.CellJob(cell, plan.splits_of(cell), cell.folder(output), "float32"), "failed", error=error)


def test_a_failed_run_is_said_wherever_its_figure_is_missing(file, tmp_path):
    tests = dict.fromkeys(("one", "two"), file["data"][0]["test"])
    plan = plan_of(file, data=[{**file["data"][0], "test": tests}])
    leave(plan, tmp_path, [0, 2])
    fail(plan, tmp_path, [plan.cells[1], plan.cells[3]])
    table = write_report(tmp_path)[0].splitlines()
    assert next(line for line in table if line.startswith("| temperature 0.1 ")).count("failed") == 2
    leave(plan, tmp_path, [1])
    text, _ = write_report(tmp_path)
    line = next(line for line in text.splitlines() if line.startswith("| temperature 0.1 "))
    assert line.count("(1 of 2 runs)") == 3  # on both sets, and on their mean
    assert "## Failed\n\n- toy, temperature 0.1, seed 2: MemoryError: no room\n" in text
    assert "- Not in the mean of 2 sts sets, since a test set or seed is missing: temperature 0.1\n" in text
    assert "| mean of 2 | Spearman |" not in text  # survivors are not ranked
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "training and evaluation, s" in page and "Encoding:" not in page and "The speed above" not in page
    assert "failed: toy, temperature 0.1, seed 2: MemoryError: no room" in page and "undefined." not in page


def test_what_failed_or_waits_among_what_was_tried_is_said(file, tmp_path):
    plan = plan_of(file, seeds=[1], grid={}, tune={"temperature": [0.05, 0.1]})
    begin(plan, tmp_path)
    fail(plan, tmp_path, plan.tuning[:1])
    text, _ = write_report(tmp_path)
    assert "| toy | base | temperature 0.05 | failed |  |\n| toy | base | temperature 0.1 | not run yet |" in text
    assert "## Failed\n\n- toy, base: temperature 0.05: MemoryError: no room\n" in text
    assert "## Not run\n\n- toy, base: not tuned yet\n" in text


def test_a_reference_without_a_figure_is_named_in_the_tables(file, tmp_path):
    plan = plan_of(file, grid={"temperature": [0.05, 0.1, 0.2]}, seeds=[1], against="temperature 0.05")
    leave(plan, tmp_path, [1, 2])
    assert (
        "## Not compared\n\n- toy, spearman: nothing is compared, since temperature 0.05 has no figure."
        in write_report(tmp_path)[0]
    )


def test_the_reference_is_the_first_variant_and_no_start(file, tmp_path):
    leave(plan_of(file, seeds=[1], start=True), tmp_path)
    text, _ = write_report(tmp_path)
    assert "## Differences from temperature 0.05" in text
    assert "temperature 0.05 - start" not in text and "start - temperature 0.05" in text


def test_means_over_the_test_sets_are_compared_too_and_the_best_is_named(file, toy_pairs, tmp_path):
    tests = {"one": str(toy_pairs / "test.tsv"), "two": str(toy_pairs / "dev.tsv")}
    leave(plan_of(file, data=[{**file["data"][0], "test": tests}]), tmp_path)
    text = write_report(tmp_path)[0]
    lines = [json.loads(line) for line in (tmp_path / "comparisons.jsonl").read_text().splitlines()]
    assert [line["dataset"] for line in lines] == ["mean of 2", "toy/one", "toy/two"]
    assert lines[0]["difference"] == pytest.approx((lines[1]["difference"] + lines[2]["difference"]) / 2)
    assert lines[0]["adjusted"] == lines[0]["p_value"]  # apart from single sets
    assert (
        text.split("| temperature 0.1 |")[1].partition("\n")[0].count("≈") == 3
    )  # a difference by chance, in each column
    assert "| mean of 2 | Spearman | temperature 0.1 - temperature 0.05 |" in text
    assert "of 2 models: Spearman" in text.splitlines()[0]
    assert "≈: not significantly different from temperature 0.05" in text
    assert "of 2 models: Spearman" in (tmp_path / "report.html").read_text()
    first = tmp_path / "one"
    second = tmp_path / "other"
    some = tmp_path / "some"
    leave(plan_of(file), first)
    assert "mean of 1" not in write_report(first)[0]
    leave(plan_of(file, data=[{**file["data"][0], "name": name} for name in ("toy", "again")]), second)
    assert "mean of 2 | Spearman |" not in write_report(second)[0]  # no model is trained on both
    leave(plan_of(file, data=[{**file["data"][0], "test": tests}]), some, [0, 1, 2])
    assert "mean of 2 | Spearman |" not in write_report(some)[0]  # one run is left


def test_paths_of_the_machine_stay_out(file, tiny_trunk, tmp_path):
    teacher = {"method": "rankcse", "pooling": "mean", "teacher": [f"{tiny_trunk}+whiten"], "teacher_cache": "/some/c"}
    data = [{**file["data"][0], "dev": "none"}]
    plan = plan_of(file, seeds=[1], base={**file["base"], **teacher}, grid={}, data=data)
    leave(plan, tmp_path)
    write_report(tmp_path)
    written_settings = rows(gather(tmp_path))[0]["settings"]
    assert written_settings["teacher"] == [f"{tiny_trunk.name}+whiten"]
    for name in ("results.jsonl", "tables.md", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert str(tiny_trunk.parent) not in text
        assert "/some/c" not in text


def test_settings_of_single_data_sets_are_not_shown_as_those_of_all(file, tmp_path):
    again = {**file["data"][0], "name": "again", "settings": {"epochs": 7}}
    leave(plan_of(file, seeds=[1], grid={}, data=[*file["data"], again]), tmp_path)
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "max_steps 4 / " in page
    assert "epochs 7" in page


def test_half_a_grid_has_no_figure_where_nothing_else_stayed_the_same(file, tmp_path):
    plan = plan_of(file, seeds=[1], case=[{"loss": "cosent"}, {"loss": "info-nce", "positive_above": 2.5}])
    leave(plan, tmp_path, [0, 3])
    assert write_report(tmp_path)[1][-1].name == "report.html"


def test_the_number_of_layers_has_a_figure(file, tmp_path):
    leave(plan_of(file, seeds=[1], grid={"layers": [1, 2]}), tmp_path)
    write_report(tmp_path)
    assert "against layers; bands" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_pairs_of_training_in_a_test_set_are_told_beside_the_figures(file, toy_pairs, tmp_path):
    plan = plan_of(file, data=[{**file["data"][0], "test": str(toy_pairs / "train.tsv")}])
    assert plan.warnings[0].startswith("toy: ")
    leave(plan, tmp_path)
    assert f"## Warnings about the data\n\n- {plan.warnings[0]}\n" in write_report(tmp_path)[0]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert plan.warnings[0] in page.partition("<h2>Warnings about the data</h2>")[2].partition("<h2>")[0]


def test_a_test_set_is_not_called_as_a_mean(file):
    with pytest.raises(ConfigError, match=r"^A test set .* not called as their mean is; received 'mean of 2'"):
        plan_of(file, data=[{**file["data"][0], "name": "mean of 2"}])


def test_one_name_for_two_things_is_refused(file):
    again = {**file["data"][0], "name": "a", "test": {"b": file["data"][0]["test"]}}
    for change, message in (
        ({"start": True, "case": [{"name": "start"}], "grid": {}}, "The variants of a sweep must differ; start"),
        ({"data": [again, {**file["data"][0], "name": "a/b"}]}, "The test sets of a sweep must differ; a/b"),
        ({"data": [{**again, "test": {}}]}, "Each data set needs a test set or more; a has none"),
        ({"case": [{"data": []}]}, r"received data = \[\]"),
        ({"case": [{"data": "other"}]}, "received 'other'"),
        ({"against": "start"}, "against names a variant, one of temperature 0.05; temperature 0.1; received 'start'"),
    ):
        with pytest.raises(ConfigError, match=message):
            SweepFile(**{**file, **change})


def test_cut_starts_of_long_names_are_kept_apart(file, tmp_path, monkeypatch):
    import_module("samesense.recipes.run.model_adapters")  # imported now, so that its build stays the real one
    cell = plan_of(file, base={**file["base"], "layers": 1}).cells[0]
    folders = []
    monkeypatch.setattr("samesense.encoder.assembly.build.build", lambda *_, **__: None)
    monkeypatch.setattr("samesense.encoder.assembly.students.first_layers", lambda *_: None)
    monkeypatch.setattr("samesense.encoder.saving.storage.save", lambda _, folder, **__: folders.append(folder))
    for start in ("distilbert-base-cased", "distilbert-base-uncased", "0" * 64):
        cells.with_cut_start(replace(cell, identity={**cell.identity, "start": start}), tmp_path)
    assert [folder.name for folder in folders] == [
        "distilbert-base-cased-first-1",
        "distilbert-base-uncased-first-1",
        f"{'0' * 16}-first-1",
    ]


def test_a_long_name_has_a_folder(file, tmp_path):
    [cell] = plan_of(file, seeds=[1], grid={}, case=[{"name": "很长的名字" * 60}]).cells
    cell.folder(tmp_path).mkdir(parents=True)


def test_files_that_decide_count_by_their_content(file, tmp_path):
    from samesense.recipes.context.settings import ContextSettings
    from samesense.recipes.sweep.identity import deciding

    config = tmp_path / "origin.toml"
    vectors = tmp_path / "words.vec"
    vectors.write_text("a 1 2\n", encoding="utf-8")

    def key(text):
        config.write_text(text, encoding="utf-8")
        retrieved = {"contexts": "retrieved", "word_vectors": str(vectors)}
        options = {"origin_config": str(config), "origin": retrieved}
        return deciding(ContextSettings(**options), {})

    key_before = key("screened = 50\n")
    assert key("screened = 50  # the same\n") == key_before
    assert key("screened = 60\n") != key_before
    vectors.write_text("a 1 3\n", encoding="utf-8")
    assert key("screened = 50\n") != key_before
    vectors.write_text("One text.\n", encoding="utf-8")
    texts = {"origin": {"texts": [str(vectors)]}}
    key_before = deciding(ContextSettings(**texts), {})
    vectors.write_text("Another text.\n", encoding="utf-8")
    assert deciding(ContextSettings(**texts), {}) != key_before


def test_labels_of_groups_are_read_as_the_data_set_says(file, tmp_path):
    words = ("entailment", "neutral", "contradiction")
    lines = [f"anchor {number // 3}\tother {number}\t{number % 3}" for number in range(24)]
    path = tmp_path / "nli.tsv"
    path.write_text("\n".join(["premise\thypothesis\tlabel", *lines]) + "\n", encoding="utf-8")
    keys = set()
    for order in (words, words[::-1]):
        data = [{"name": "nli", "train": str(path), "dev": "none", "test": str(path), "label_order": ",".join(order)}]
        plan = plan_of(file, seeds=[1], grid={}, base={**file["base"], "method": "supmpn"}, data=data)
        keys.add(plan.cells[0].identity["train"])
    assert len(keys) == 2
