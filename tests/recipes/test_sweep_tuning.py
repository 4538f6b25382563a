"""Tuning: every combination runs with the first seed, and the best on dev with all seeds."""

import json
import shutil

import pytest

from samesense.errors import ConfigError
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep.gather import gather
from samesense.recipes.sweep.plan import make_plan
from samesense.recipes.sweep.report import write_report
from samesense.recipes.sweep.run import PLAN, run
from tests.messages import listen
from tests.recipes.sweeps import content, entry, quick

pytest.importorskip("matplotlib")


@pytest.fixture
def toy(tiny_trunk, toy_pairs):
    return content(tiny_trunk, toy_pairs)


def test_what_is_best_on_dev_is_run_with_all_seeds(toy, tmp_path):
    plan = quick(
        toy,
        grid={},
        tune={"learning_rate": [1e-7, 2e-3]},
        start=True,
        case=[{"loss": "cosent"}, {"loss": "mse", "tune": {"learning_rate": [2e-3], "weight_decay": [0.0, 0.1]}}],
        against="mse",
    )
    assert [cell.name for cell in plan.cells] == ["toy, start"]
    assert [cell.variant for cell in plan.tuning] == [
        "cosent: learning_rate 1e-07",
        "cosent: learning_rate 0.002",
        "mse: learning_rate 0.002, weight_decay 0.0",
        "mse: learning_rate 0.002, weight_decay 0.1",
    ]
    assert {cell.seed for cell in plan.tuning} == {1}
    messages = listen()
    ended = run(plan, tmp_path / "s")
    # 4 tried, the start, and the second seed of both: the first seed of what was chosen is there already
    assert (ended.finished, ended.failed, ended.left) == (7, 0, 0)
    assert len(list((tmp_path / "s" / "runs").iterdir())) == 7
    left = gather(tmp_path / "s")
    assert [(gathered.entry.variant, gathered.entry.seed) for gathered in left] == [
        ("start", None),
        ("cosent", 1),
        ("mse", 1),
        ("cosent", 2),
        ("mse", 2),
    ]
    assert {
        gathered.record["settings"]["learning_rate"] for gathered in left if gathered.entry.variant == "cosent"
    } == {2e-3}
    assert any(line.startswith("chosen: toy, cosent: learning_rate 0.002, dev ") for line in messages)
    text = write_report(tmp_path / "s")[0]
    table = text.partition("## Chosen on dev")[2].partition("##")[0].splitlines()[4:8]
    assert [line.endswith("| yes |") for line in table[:2]] == [False, True]
    assert sum(line.endswith("| yes |") for line in table) == 2
    devs = [float(line.split("|")[4]) for line in table[2:]]
    assert table[2 + int(devs[1] > devs[0])].endswith("| yes |")
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "<h3>Chosen on dev</h3>" in page and "<h3>Steps to the best dev score of each: toy</h3>" in page
    again = run(make_plan(plan.file), tmp_path / "s")
    assert again == ended


def planned(folder):
    return json.loads((folder / PLAN).read_text())


def test_some_data_sets_are_run_now_and_the_others_later(toy, toy_pairs, tmp_path):
    plan = quick(
        toy,
        grid={},
        seeds=[1],
        tune={"learning_rate": [1e-3, 2e-3]},
        data=[entry(toy_pairs), entry(toy_pairs, name="other", train_rows=40)],
    )
    messages = listen()
    with pytest.raises(ConfigError, match="datasets names data sets of the sweep, toy, other; received 'toys'"):
        run(plan, tmp_path / "s", datasets=["toys"])
    ended = run(plan, tmp_path / "s", datasets="other")
    assert (ended.finished, ended.left) == (2, 0)
    assert not any(line.startswith(("not run: ", "chosen: toy")) for line in messages)
    assert {cell.entry.dataset for cell in gather(tmp_path / "s")} == {"other"}
    shutil.rmtree(
        plan.tuning[-1].folder(tmp_path / "s")
    )  # as if the tuning on the other data set had been stopped half-way
    messages.clear()
    assert run(plan, tmp_path / "s", datasets=["toy"]).finished == 2
    assert {line.partition(",")[0] for line in messages if line.startswith("chosen: ")} == {"chosen: toy"}
    assert not any(entry["chosen"] for entry in planned(tmp_path / "s")["tuning"] if entry["dataset"] == "other")
    ended = run(make_plan(plan.file), tmp_path / "s")
    assert (ended.finished, ended.left) == (4, 0)
    assert [cell.entry.dataset for cell in gather(tmp_path / "s")] == ["toy", "other"]


def test_what_is_tuned_needs_a_dev_set_values_and_a_finished_cell(toy, toy_pairs, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match='What is tuned is chosen on dev; base is run on toy, which has dev = "none"'):
        quick(toy, grid={}, tune={"learning_rate": [1e-3]}, data=[entry(toy_pairs, dev="none")])
    with pytest.raises(ConfigError, match="that is tuned needs a value or more; learning_rate has none"):
        quick(toy, tune={"learning_rate": []})
    with pytest.raises(ConfigError, match="Seeds of a sweep stand in its list seeds"):
        quick(toy, tune={"seed": [1]})
    monkeypatch.setattr(cells, "evaluate", lambda *_: 1 / 0)
    messages = listen()
    ended = run(quick(toy, grid={}, tune={"learning_rate": [1e-3]}), tmp_path / "s")
    assert (ended.finished, ended.failed, ended.left) == (0, 1, 0)
    assert "not run: toy, base: nothing that was tried for it is finished" in messages
