import json

import pytest

from samesense.errors import DataError
from samesense.reports import append_results
from samesense.reports.store import read_run, sweep_points
from tests.reports.made import result


def run_folder(home, name, settings, dev=(), test=None):
    folder = home / name
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"method": "cosent", "settings": settings}))
    log = [{"loss": 1.0, "step": 5}, *({"eval_dev_spearman": value, "step": step} for step, value in dev)]
    (folder / "history.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in log))
    if test is not None:
        append_results(folder / "results.jsonl", [result("before", 0.1), result("after", test, seed=settings["seed"])])
    return folder


def test_a_run_is_its_dev_curve_its_settings_and_its_results_after_training(tmp_path):
    folder = run_folder(tmp_path, "first", {"seed": 3, "temperature": 0.05}, [(10, 0.5), (20, 0.6)], 0.7)
    run = read_run(folder)
    assert (run.name, run.settings["temperature"]) == ("first", 0.05)
    assert (run.curve.name, run.curve.steps, run.curve.values) == ("first", (10, 20), (0.5, 0.6))
    assert [row.value for row in run.results] == [0.7]
    assert read_run(folder, "mine").curve.name == "mine"


def test_a_run_without_dev_has_no_curve(tmp_path):
    assert read_run(run_folder(tmp_path, "bare", {"seed": 1})).curve is None


def test_terms_of_the_loss_are_curves_by_their_names(tmp_path):
    folder = run_folder(tmp_path, "terms", {"seed": 1})
    entries = [{"loss": 3.0, "loss_rank": 2.0, "loss_rank_if_equal": 2.5, "step": step} for step in (5, 10)]
    (folder / "history.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    terms = read_run(folder).terms
    assert {name: (curve.steps, curve.values) for name, curve in terms.items()} == {
        "rank": ((5, 10), (2.0, 2.0)),
        "rank_if_equal": ((5, 10), (2.5, 2.5)),
    }


def test_what_training_writes_can_be_read(tiny_trunk, toy_pairs, tmp_path):
    from samesense.data import read_pairs
    from samesense.recipes.cosent.settings import CosentSettings
    from samesense.recipes.methods import METHODS
    from samesense.recipes.settings import bind, read_settings

    pairs = read_pairs(toy_pairs / "train.tsv")
    options = {"model": str(tiny_trunk), "epochs": 1, "batch_size": 32, "precision": "float32"}
    settings = bind(CosentSettings, read_settings("cosent"), options)
    dev = read_pairs(toy_pairs / "dev.tsv")
    trained = METHODS["cosent"].run(pairs, settings, tmp_path / "run", dev=dev, test=dev)
    run = read_run(tmp_path / "run")
    assert run.curve.best == (trained.output.best_step, pytest.approx(trained.output.best_dev_spearman))
    assert (run.curve.steps[0], run.curve.values[0]) == (0, trained.output.start_dev_spearman)
    assert run.settings["temperature"] == settings.temperature
    assert {row.metric for row in run.results} == {"spearman", "pearson"}
    assert len(run.results) == 2


def test_runs_are_gathered_by_setting_and_told_apart_by_what_else_differs(tmp_path):
    runs = []
    for temperature in (0.05, 0.1):
        for pooling in ("cls", "mean"):
            for seed in (1, 2):
                settings = {"temperature": temperature, "pooling": pooling, "seed": seed, "epochs": 1}
                value = temperature + seed / 100 + (pooling == "cls") / 10
                runs.append(
                    read_run(run_folder(tmp_path, f"{temperature}-{pooling}-{seed}", settings, [(1, 0.9)], value))
                )
    points = sweep_points(runs, "temperature")
    assert list(points) == ["one.test (pooling = cls)", "one.test (pooling = mean)"]
    assert points["one.test (pooling = cls)"] == {0.05: pytest.approx([16, 17]), 0.1: pytest.approx([21, 22])}


def test_start_models_are_told_apart_by_name_and_not_by_place(tmp_path):
    runs = [
        read_run(run_folder(tmp_path, f"{number}", {"t": 1, "seed": 1, "model": f"/some/place/{name}"}, [(1, 0.5)]))
        for number, name in enumerate(("one", "two"))
    ]
    assert list(sweep_points(runs, "t")) == ["best dev (model = one)", "best dev (model = two)"]


def test_the_best_dev_score_stands_in_for_a_missing_test(tmp_path):
    run = read_run(run_folder(tmp_path, "a", {"t": 5, "seed": 1}, [(1, 0.4), (2, 0.6), (3, 0.5)]))
    assert sweep_points([run], "t") == {"best dev": {5.0: [60.0]}}


def test_what_is_no_run_or_cannot_be_gathered_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no training run \(no manifest.json\)"):
        read_run(tmp_path)
    run = read_run(run_folder(tmp_path, "a", {"t": "warm", "seed": 1}))
    with pytest.raises(DataError, match=r"a has 'warm'\. Its settings: t, seed"):
        sweep_points([run], "t")
    with pytest.raises(DataError, match="neither on test nor on dev"):
        sweep_points([read_run(run_folder(tmp_path, "b", {"t": 1, "seed": 1}))], "t")
    (tmp_path / "a" / "history.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"history\.jsonl cannot be read"):
        read_run(tmp_path / "a")
